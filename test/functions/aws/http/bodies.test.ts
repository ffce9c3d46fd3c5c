import { describe, expect, test } from "vitest";
import {
  createTestService,
  expectProblem,
  httpEvent,
  jobEvent,
  jsonOf,
  violationPaths,
} from "../../../kit/http-events.ts";

const JSON_TYPE = { "content-type": "application/json" };
const service = createTestService({ maxBodyBytes: 20_000 });

function post(body: string, headers: Readonly<Record<string, string>> = JSON_TYPE, base64 = false) {
  return service.send(httpEvent({ method: "POST", path: "/v1/jobs", headers, body, base64 }));
}

function pdfJob(given: unknown) {
  return { calls: [{ tool: "create_pdf@1", arguments: given }] };
}

const GOOD = JSON.stringify(pdfJob({ body: "é" }));

describe("a body that is no job", () => {
  test.each([
    ["nothing", ""],
    ["white space", " \n\t"],
    ["cut off", '{"a":'],
    ["not JSON", "calls=1"],
    ["two documents", "{}{}"],
    ["null", "null"],
    ["a number", "1"],
    ["a text", '"calls"'],
    ["an array", "[1]"],
    ["true", "true"],
    ["an empty object", "{}"],
    ["calls that are no array", '{"calls":{}}'],
    ["no call", '{"calls":[]}'],
    ["calls of null", '{"calls":[null]}'],
    ["a number beyond a double", '{"calls":1e999}'],
    ["a key twice", '{"calls":[],"calls":[]}'],
    ["a lone surrogate", '{"calls":"\\ud800"}'],
    ["arguments that are an array", '{"calls":[{"tool":"create_pdf@1","arguments":[]}]}'],
    ["arguments that are a text", '{"calls":[{"tool":"create_pdf@1","arguments":"{}"}]}'],
    ["nesting without end", `{"calls":${"[".repeat(5_000)}${"]".repeat(5_000)}}`],
    ["brackets that never close", "[".repeat(19_000)],
  ])("is refused: %s", async (_, body) => {
    expectProblem(await post(body), 400, "REQUEST_INVALID");
  });

  test("is refused when the event has none at all", async () => {
    expectProblem(
      await service.send(httpEvent({ method: "POST", path: "/v1/jobs", headers: JSON_TYPE })),
      400,
      "REQUEST_INVALID",
    );
  });

  test.each([null, 7, {}, ["{}"]])("is refused when the event's body is %j", async (body) => {
    const event = { ...jobEvent({}), body };
    expectProblem(await service.send(event), 400, "REQUEST_INVALID");
  });
});

describe("encodings", () => {
  test("a base64 body arrives byte for byte", async () => {
    const response = await post(Buffer.from(GOOD).toString("base64"), { "Content-Type": "application/json" }, true);
    expect(response.statusCode).toBe(200);
    expect(jsonOf(response)).toMatchObject({ status: "succeeded" });
  });

  test("a byte-order mark is passed over, in text and in base64", async () => {
    const marked = `\ufeff${GOOD}`;
    expect((await post(marked)).statusCode).toBe(200);
    expect((await post(Buffer.from(marked).toString("base64"), JSON_TYPE, true)).statusCode).toBe(200);
  });

  const encoded = Buffer.from(GOOD).toString("base64");
  test.each([
    "%%%",
    `${encoded.slice(0, 8)}*${encoded.slice(8)}`,
    `${encoded.slice(0, 8)}\n${encoded.slice(8)}`,
    ` ${encoded}`,
    `${encoded}====`,
    `${encoded}\u0000`,
    encoded.replace(/=*$/, "=!"),
  ])("refuses base64 that is none, though a lenient reader would find a job in it: %j", async (body) => {
    const problem = expectProblem(await post(body, JSON_TYPE, true), 400, "REQUEST_INVALID");
    expect(problem.detail).toContain("base64");
  });

  test.each([
    ["a lone continuation byte", [0x22, 0x80, 0x22]],
    ["an over-long slash", [0x22, 0xc0, 0xaf, 0x22]],
    ["an encoded surrogate", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["UTF-16", [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ])("refuses invalid UTF-8: %s", async (_, bytes) => {
    const problem = expectProblem(
      await post(Buffer.from(bytes).toString("base64"), JSON_TYPE, true),
      400,
      "REQUEST_INVALID",
    );
    expect(problem.detail).toContain("UTF-8");
  });

  test("refuses text with half a surrogate pair", async () => {
    expectProblem(await post(GOOD.replace("é", "\ud800")), 400, "REQUEST_INVALID");
  });
});

describe("media types", () => {
  test.each([
    "application/json",
    "Application/JSON",
    "application/json; charset=utf-8",
    'application/json;charset="UTF-8"',
    "application/json; charset=utf8; q=1",
    "application/vnd.acme.job+json",
  ])("takes %s", async (type) => {
    expect((await post(GOOD, { "content-type": type })).statusCode).toBe(200);
  });

  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonp",
    "application/json, text/plain",
    "application/json; charset=utf-16",
    "application/json; charset=iso-8859-1",
    "json",
    "",
  ])("refuses %j", async (type) => {
    expectProblem(await post(GOOD, { "content-type": type }), 415, "MEDIA_TYPE_UNSUPPORTED");
  });

  test("refuses a body of no type", async () => {
    expectProblem(await post(GOOD, {}), 415, "MEDIA_TYPE_UNSUPPORTED");
  });
});

describe("the longest body", () => {
  const sized = (bytes: number) => JSON.stringify(pdfJob({ body: "x" })).padEnd(bytes, " ");

  test("may have just the allowed bytes", async () => {
    expect((await post(sized(20_000))).statusCode).toBe(200);
    expect((await post(Buffer.from(sized(20_000)).toString("base64"), JSON_TYPE, true)).statusCode).toBe(200);
  });

  test("is refused one byte beyond, as text and as base64", async () => {
    expectProblem(await post(sized(20_001)), 413, "PAYLOAD_TOO_LARGE");
    expectProblem(await post(Buffer.from(sized(20_001)).toString("base64"), JSON_TYPE, true), 413, "PAYLOAD_TOO_LARGE");
  });

  test("is counted in bytes, not in characters", async () => {
    expectProblem(await post(`"${"€".repeat(7_000)}"`), 413, "PAYLOAD_TOO_LARGE");
  });
});

describe("events that gateways really send", () => {
  const events = [
    [400, { body: null, headers: JSON_TYPE }],
    [400, { body: "", headers: JSON_TYPE }],
    [
      200,
      {
        body: Buffer.from(GOOD).toString("base64"),
        isBase64Encoded: true,
        headers: { "Content-Type": "application/json" },
      },
    ],
    [415, { body: "{}", headers: null }],
    [400, { body: "\ufeff{}", headers: JSON_TYPE }],
    [400, { body: "[1]", headers: { "content-type": "application/json; charset=utf-8" } }],
    [415, { body: "{}", headers: { "content-type": "text/plain" } }],
    [400, { body: '{"a":', headers: JSON_TYPE }],
  ] as const;

  test.each(events)("are answered %i: %j", async (status, shape) => {
    const event = { ...jobEvent({}), ...shape };
    expect((await service.send(event)).statusCode).toBe(status);
  });
});

describe("unknown words", () => {
  test("are all listed, sorted, with their places", async () => {
    const problem = expectProblem(
      await post(JSON.stringify({ zeta: 1, calls: [{ tool: "create_pdf@1", args: {}, Tool: "x" }], alpha: 2 })),
      400,
      "REQUEST_INVALID",
    );
    expect(violationPaths(problem)).toEqual(["/calls/0/Tool", "/calls/0/args", "/alpha", "/zeta"]);
  });

  test("in arguments are all listed, sorted", async () => {
    const job = pdfJob({ body: "x", fliename: "a.pdf", Title: "t" });
    const problem = expectProblem(await post(JSON.stringify(job)), 400, "TOOL_INPUT_INVALID");
    expect(violationPaths(problem)).toEqual(["/calls/0/arguments/Title", "/calls/0/arguments/fliename"]);
  });

  test("by the hundred thousand are answered briefly", async () => {
    const roomy = createTestService({ maxBodyBytes: 4_500_000 });
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`key${index}`, 1]));
    const response = await roomy.send(jobEvent(many));
    expect(violationPaths(expectProblem(response, 400, "REQUEST_INVALID"))).toHaveLength(50);
    const long = await roomy.send(jobEvent({ ["k".repeat(4_000_000)]: 1 }));
    expectProblem(long, 400, "REQUEST_INVALID");
    expect(Math.max(response.body?.length ?? 0, long.body?.length ?? 0)).toBeLessThan(200_000);
  });
});

describe("keys that reach for a prototype", () => {
  const raw = (given: string) => `{"calls":[{"tool":"create_pdf@1","arguments":${given}}]}`;
  const pristine = Reflect.ownKeys(Object.prototype);

  test.each([
    '{"body":"x","__proto__":{"filename":"../../x"},"constructor":{"prototype":{"y":1}}}',
    '{"body":"x","\\u005f_proto__":{"filename":"../../x"}}',
    '{"__proto__":{"body":"x"}}',
  ])("are refused and change nothing: %s", async (given) => {
    expectProblem(await post(raw(given)), 400, "REQUEST_INVALID");
    expect(Reflect.ownKeys(Object.prototype)).toEqual(pristine);
  });

  test("are unknown arguments when they are only words", async () => {
    const problem = expectProblem(
      await post(raw('{"body":"x","constructor":1,"toString":2}')),
      400,
      "TOOL_INPUT_INVALID",
    );
    expect(violationPaths(problem)).toEqual(["/calls/0/arguments/constructor", "/calls/0/arguments/toString"]);
  });

  test.each([
    '{"__proto__":{"calls":[]}}',
    '{"calls":[],"constructor":1}',
    '{"calls":[{"tool":"create_pdf@1","__proto__":{}}]}',
  ])("are refused in the job itself: %s", async (body) => {
    expectProblem(await post(body), 400, "REQUEST_INVALID");
  });
});
