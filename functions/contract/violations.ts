import type * as z from "zod";
import type { Violation } from "./fault.ts";

/** zod's issues as {@link Violation}s; each unknown key is its own violation, sorted, so that a caller sees them all. */
export function toViolations(error: z.ZodError): readonly Violation[] {
  return error.issues.flatMap((issue) => {
    if (issue.code !== "unrecognized_keys") return [{ path: toPointer(issue.path), message: toPlainWords(issue) }];
    return issue.keys
      .toSorted()
      .map((key) => ({ path: toPointer([...issue.path, key]), message: "unknown field; leave it out" }));
  });
}

/** zod begins its own messages with a headline that says no more than the path does. */
function toPlainWords({ code, message }: z.core.$ZodIssue): string {
  if (code === "invalid_type" && message.endsWith(", received undefined")) return "is required";
  return message
    .replace(/^(?:Invalid (?:input|option|key)|Too (?:big|small)): /, "")
    .replace("expected record", "expected object");
}

/** RFC 6901 JSON Pointer; the whole document is `""`. */
export function toPointer(segments: readonly PropertyKey[]): string {
  return segments.map((segment) => `/${String(segment).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
