import type * as z from "zod";
import type { Violation } from "./fault.ts";

/**
 * zod's issues as {@link Violation}s; each unknown key is its own violation, sorted, so that a caller sees them all.
 */
export function toViolations(error: Pick<z.ZodError, "issues">): readonly Violation[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === "invalid_union") return ofMeantOption(issue);
    if (issue.code !== "unrecognized_keys") return [{ path: toPointer(issue.path), message: toPlainWords(issue) }];
    return issue.keys
      .toSorted()
      .map((key) => ({ path: toPointer([...issue.path, key]), message: "unknown field; leave it out" }));
  });
}

/**
 * zod says of a union only that nothing fitted; the option that was meant is the one that fits at its root, else the
 * first.
 */
function ofMeantOption({ path, errors, message }: z.core.$ZodIssueInvalidUnion): readonly Violation[] {
  const fits = (issues: readonly z.core.$ZodIssue[]) =>
    issues.every((issue) => issue.path.length > 0 || issue.code === "unrecognized_keys");
  const issues = errors.find(fits) ?? errors[0];
  if (issues === undefined) return [{ path: toPointer(path), message }];
  return toViolations({ issues }).map((violation) => ({ ...violation, path: toPointer(path) + violation.path }));
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
