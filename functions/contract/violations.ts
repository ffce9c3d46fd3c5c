import type * as z from "zod";
import type { Violation } from "./fault.ts";

/** zod's issues as {@link Violation}s; each unknown key is its own violation, sorted, so that a caller sees them all. */
export function toViolations(error: z.ZodError): readonly Violation[] {
  return error.issues.flatMap((issue) => {
    if (issue.code !== "unrecognized_keys") return [{ path: toPointer(issue.path), message: issue.message }];
    return issue.keys
      .toSorted()
      .map((key) => ({ path: toPointer([...issue.path, key]), message: "unknown field; leave it out" }));
  });
}

/** RFC 6901 JSON Pointer; the whole document is `""`. */
export function toPointer(segments: readonly PropertyKey[]): string {
  return segments.map((segment) => `/${String(segment).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
