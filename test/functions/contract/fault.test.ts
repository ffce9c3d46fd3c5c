import { STATUS_CODES } from "node:http";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  FAULTS,
  Fault,
  HTTP_ERROR_PHRASES,
  isFaultCode,
  SkillError,
  SkillExecutionError,
  ToolInputError,
  toWireFault,
} from "../../../functions/contract/fault.ts";

/** The wire contract: callers branch on these codes and statuses. */
const PROMISED = {
  REQUEST_INVALID: 400,
  TOOL_INPUT_INVALID: 400,
  PAYLOAD_TOO_LARGE: 413,
  MEDIA_TYPE_UNSUPPORTED: 415,
  TOOL_NOT_APPROVED: 403,
  TOOL_NOT_ALLOWED: 403,
  TOOL_UNKNOWN: 404,
  TOOL_DEFINITION_CHANGED: 403,
  SKILL_NOT_FOUND: 404,
  JOB_NOT_FOUND: 404,
  ARTIFACT_NOT_FOUND: 404,
  ARTIFACT_EXPIRED: 410,
  IDEMPOTENCY_MISMATCH: 422,
  IDEMPOTENCY_IN_PROGRESS: 409,
  QUOTA_EXCEEDED: 429,
  CALL_TIMEOUT: 504,
  OUTPUT_TOO_LARGE: 413,
  ARTIFACT_INVALID: 422,
  ARTIFACT_TOO_LARGE: 413,
  SERVER_UNAVAILABLE: 502,
  REPOSITORY_REFUSED: 503,
  DEFECT: 500,
  ACCESS_DENIED: 403,
  ROUTE_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
};

describe("the table", () => {
  test("keeps every promised code with its status", () => {
    const statuses = Object.fromEntries(Object.entries(FAULTS).map(([code, { status }]) => [code, status]));
    expect(statuses).toMatchObject(PROMISED);
  });

  test("blames the caller for 4xx that a caller can mend, and nobody else's fault on the caller", () => {
    for (const [code, { remedy, status }] of Object.entries(FAULTS)) {
      expect(code).toMatch(/^[A-Z]+(?:_[A-Z]+)*$/);
      if (status === 500) expect([code, remedy]).toEqual([code, "us"]);
      if (status === 502 || status === 503) expect([code, remedy]).toEqual([code, "operator"]);
    }
  });

  test("has the phrase of every status, as HTTP has it", () => {
    // Node still prints the older names of RFC 7231 for two of them.
    const renamed: Readonly<Record<string, string>> = { 413: "Content Too Large", 422: "Unprocessable Content" };
    for (const [status, phrase] of Object.entries(HTTP_ERROR_PHRASES))
      expect(phrase).toBe(renamed[status] ?? STATUS_CODES[status]);
    const used = new Set(Object.values(FAULTS).map(({ status }) => String(status)));
    expect([...used].sort()).toEqual(Object.keys(HTTP_ERROR_PHRASES).sort());
  });

  test.each(["constructor", "toString", "__proto__", "defect", ""])("has no code %j", (text) => {
    expect(isFaultCode(text)).toBe(false);
  });
});

describe("a fault", () => {
  test("knows status and remedy by its code", () => {
    expect(new Fault("JOB_NOT_FOUND", "x")).toMatchObject({ status: 404, remedy: "caller", violations: [] });
  });

  test.each([
    [new ToolInputError("x"), "ToolInputError", "TOOL_INPUT_INVALID"],
    [new SkillError("x"), "SkillError", "REPOSITORY_REFUSED"],
    [new SkillExecutionError("SKILL_NOT_FOUND", "x"), "SkillExecutionError", "SKILL_NOT_FOUND"],
  ])("of a special kind is a fault with its own name: %s", (fault, name, code) => {
    expect(fault).toBeInstanceOf(Fault);
    expect(fault).toMatchObject({ name, code });
    expect(String(fault)).toContain(name);
  });

  test("keeps what was caught as its cause, and no cause when there is none", () => {
    const cause = new Error("x");
    expect(new Fault("DEFECT", "y", { cause }).cause).toBe(cause);
    expect(Object.hasOwn(new Fault("DEFECT", "y"), "cause")).toBe(false);
  });
});

describe("on the wire", () => {
  test("is its code, message and violations, never its cause or stack", () => {
    const fault = new Fault("REQUEST_INVALID", "no", {
      violations: [{ path: "/a", message: "b" }],
      cause: new Error("secret"),
    });
    expect(toWireFault(fault)).toEqual({
      code: "REQUEST_INVALID",
      message: "no",
      errors: [{ path: "/a", message: "b" }],
    });
  });

  test("is a fixed sentence for anything else, whatever it is", () => {
    fc.assert(
      fc.property(fc.anything(), (thrown) => {
        expect(toWireFault(thrown)).toEqual({
          code: "DEFECT",
          message: "the service failed; its log has the cause, under the request id or the job id",
        });
      }),
    );
    expect(toWireFault(new Fault("DEFECT", "secret")).message).not.toContain("secret");
    expect(toWireFault({ code: "REQUEST_INVALID", message: "secret" }).code).toBe("DEFECT");
  });

  test("has a bounded size and stays well-formed", () => {
    const long = "😀".repeat(2_000);
    const violations = Array.from({ length: 1_000 }, () => ({ path: `a${long}`, message: long }));
    const wire = toWireFault(new Fault("REQUEST_INVALID", `a${long}`, { violations }));
    expect(wire.errors).toHaveLength(50);
    const text = JSON.stringify(wire);
    expect(text.length).toBeLessThan(120_000);
    expect(text).not.toMatch(/\\ud[89a-f]/);
  });
});
