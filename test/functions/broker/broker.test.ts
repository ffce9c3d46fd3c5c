import { describe, expect, test } from "vitest";
import { createArgumentChecker } from "../../../functions/broker/argument-schema.ts";
import { ToolBroker } from "../../../functions/broker/broker.ts";
import { type FaultCode, type Outcome, refuse, succeed } from "../../../functions/contract/fault.ts";
import { DEFAULT_LIMITS, type Limits } from "../../../functions/contract/limits.ts";
import type { HandlerCall } from "../../../functions/contract/ports.ts";
import { type JsonObject, ToolRef } from "../../../functions/contract/tool.ts";
import { createManualClock } from "../../kit/manual-clock.ts";
import { toolOf } from "./tools.ts";
import "../../kit/to-fail.ts";

const START = Date.UTC(2026, 0, 1);
const ECHO = ToolRef.parse("echo@1");

type Setting = {
  readonly limits?: Partial<Limits>;
  readonly inputSchema?: JsonObject;
  readonly registered?: readonly string[];
  readonly approved?: readonly string[];
  readonly allowed?: readonly string[];
  readonly answer?: (call: HandlerCall) => Outcome<JsonObject>;
};

/** A broker over a runner that does what the test says and keeps what it was asked. */
function brokerOf(setting: Setting = {}) {
  const {
    registered = ["echo@1"],
    approved = ["echo@1"],
    allowed = ["echo@1"],
    inputSchema = { type: "object" },
  } = setting;
  const refs = (texts: readonly string[]) => new Set(texts.map((text) => ToolRef.parse(text)));
  const clock = createManualClock(START);
  const ran: (HandlerCall & { readonly deadline: number })[] = [];
  const broker = new ToolBroker({
    tools: new Map(registered.map((ref) => [ToolRef.parse(ref), toolOf(ref, { inputSchema })])),
    operatorPolicy: { approved: refs(approved), digests: new Map() },
    refusedRepositories: [],
    lookUpLent: () => ({ state: "absent" }),
    session: { call: async () => expect.unreachable() },
    jobPolicy: { allowed: refs(allowed), limits: { ...DEFAULT_LIMITS, ...setting.limits } },
    runner: {
      interrupts: true,
      run: async (call, { deadline }) => {
        ran.push({ ...call, deadline });
        return setting.answer?.(call) ?? succeed({ echoed: true });
      },
    },
    checkArguments: createArgumentChecker(),
    clock: clock.now,
    createdAt: START,
    startedAt: START,
  });
  const call = async (given: JsonObject = {}, ref = ECHO) => (await broker.call({ ref, arguments: given })).outcome;
  return { broker, call, ran, clock };
}

const fileOf = (content: string, changes: JsonObject = {}): JsonObject => ({
  name: "a.txt",
  media_type: "text/plain",
  base64: Buffer.from(content).toString("base64"),
  size_bytes: Buffer.byteLength(content),
  ...changes,
});
const answering = (...answers: readonly JsonObject[]) => {
  const pending = [...answers];
  return () => succeed(pending.shift() ?? {});
};

describe("a call", () => {
  test("that passes every gate answers with the output, and the artifact apart from it", async () => {
    const { call, ran } = brokerOf({ answer: answering({ made: 1, artifact: fileOf("hello") }) });
    const outcome = await call({ a: 1 });
    expect(outcome).toMatchObject({ ok: true, value: { output: { made: 1 }, outputBytes: 10 } });
    expect(outcome.ok && outcome.value.artifacts[0]).toMatchObject({
      name: "a.txt",
      mediaType: "text/plain",
      bytes: Buffer.from("hello"),
    });
    expect(outcome.ok && Object.keys(outcome.value.output)).toEqual(["made"]);
    expect(ran).toMatchObject([{ handler: "echo", arguments: { a: 1 }, now: START, deadline: START + 5_000 }]);
  });

  test("leaves digests of what was called and given, whatever came of it", async () => {
    const { broker } = brokerOf();
    const digests = async (ref: string, given: JsonObject) => {
      const { argumentsDigest, definitionDigest } = await broker.call({ ref: ToolRef.parse(ref), arguments: given });
      return [argumentsDigest, definitionDigest];
    };
    const [first] = await digests("echo@1", { a: 1, b: 2 });
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(await digests("echo@1", { b: 2, a: 1 })).toEqual([first, "d".repeat(64)]);
    expect(await digests("none@1", { b: 2, a: 1 })).toEqual([first, undefined]);
  });

  test("is timed until the work has ended", async () => {
    const { broker, clock } = brokerOf({
      answer: () => {
        clock.advance(40);
        return succeed({});
      },
    });
    expect((await broker.call({ ref: ECHO, arguments: {} })).durationMs).toBe(40);
  });
});

describe("the gates", () => {
  /** In their order; each spoils the one before it no more. */
  const SPOILT: readonly [FaultCode, Setting][] = [
    ["TOOL_UNKNOWN", { registered: [] }],
    ["TOOL_NOT_APPROVED", { approved: [] }],
    ["TOOL_NOT_ALLOWED", { allowed: [] }],
    ["QUOTA_EXCEEDED", { limits: { max_calls: 0 } }],
    ["PAYLOAD_TOO_LARGE", { limits: { max_argument_bytes: 1 } }],
    ["TOOL_INPUT_INVALID", { inputSchema: { type: "object", required: ["x"] } }],
    ["CALL_TIMEOUT", { limits: { job_timeout_ms: 0 } }],
    ["OUTPUT_TOO_LARGE", { limits: { max_output_bytes: 1 } }],
    ["ARTIFACT_INVALID", { answer: () => succeed({ artifact: fileOf("hello", { name: "../x" }) }) }],
  ];

  test.each(SPOILT.map(([code], index) => [code, index] as const))(
    "%s comes before every later one",
    async (code, index) => {
      const later = SPOILT.slice(index).map(([, setting]) => setting);
      const limits = Object.assign({}, ...later.map((setting) => setting.limits ?? {}));
      const { call } = brokerOf({ ...Object.assign({}, ...later), limits });
      expect(await call()).toFail(code);
    },
  );

  test("what a runner refuses is the call's refusal", async () => {
    const { call } = brokerOf({ answer: () => refuse("CALL_TIMEOUT", "too late") });
    expect(await call()).toFail("CALL_TIMEOUT");
  });

  test("nothing runs that a gate refused", async () => {
    for (const [, setting] of SPOILT.slice(0, 7)) {
      const { call, ran } = brokerOf(setting);
      await call();
      expect(ran).toEqual([]);
    }
  });

  test("a job may call what is registered, approved and allowed, and nothing else", () => {
    const letters = ["a@1", "b@1", "c@1", "ab@1", "ac@1", "bc@1", "abc@1"];
    const having = (letter: string) => letters.filter((ref) => ref.split("@")[0]?.includes(letter));
    const { broker } = brokerOf({ registered: having("a"), approved: having("b"), allowed: having("c") });
    expect(letters.filter((ref) => broker.admit(ToolRef.parse(ref)).ok)).toEqual(["abc@1"]);
  });
});

describe("limits", () => {
  test("calls: as many as allowed, and a refused one costs nothing", async () => {
    const { call, ran } = brokerOf({ limits: { max_calls: 2 } });
    expect(await call({}, ToolRef.parse("none@1"))).toFail("TOOL_UNKNOWN");
    expect((await call()).ok).toBe(true);
    expect((await call()).ok).toBe(true);
    expect(await call()).toFail("QUOTA_EXCEEDED");
    expect(ran).toHaveLength(2);
  });

  test("calls: never more at once either", async () => {
    const { call } = brokerOf({ limits: { max_calls: 3 } });
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => call()));
    expect(outcomes.filter(({ ok }) => ok)).toHaveLength(3);
  });

  test("arguments: bytes of their JSON in UTF-8, at the limit and one past", async () => {
    const given = { a: "é" };
    const bytes = Buffer.byteLength(JSON.stringify(given));
    expect((await brokerOf({ limits: { max_argument_bytes: bytes } }).call(given)).ok).toBe(true);
    expect(await brokerOf({ limits: { max_argument_bytes: bytes - 1 } }).call(given)).toFail("PAYLOAD_TOO_LARGE");
  });

  test("output: bytes of its JSON without the artifact, at the limit and one past", async () => {
    const answer = { text: "é😀" };
    const bytes = Buffer.byteLength(JSON.stringify(answer));
    const withFile = answering({ ...answer, artifact: fileOf("x".repeat(1_000)) });
    expect(await brokerOf({ limits: { max_output_bytes: bytes }, answer: withFile }).call()).toMatchObject({
      value: { outputBytes: bytes },
    });
    const tooLarge = brokerOf({ limits: { max_output_bytes: bytes - 1 }, answer: answering(answer) });
    expect(await tooLarge.call()).toFail("OUTPUT_TOO_LARGE");
  });

  test("one artifact: at the limit and one past", async () => {
    const answer = () => answering({ artifact: fileOf("12345") });
    expect((await brokerOf({ limits: { max_artifact_bytes: 5 }, answer: answer() }).call()).ok).toBe(true);
    expect(await brokerOf({ limits: { max_artifact_bytes: 4 }, answer: answer() }).call()).toFail("ARTIFACT_TOO_LARGE");
  });

  test("all artifacts: what does not fit is refused and leaves room for what does", async () => {
    const files = ["1234", "123", "12", ""].map((content) => ({ artifact: fileOf(content) }));
    const { call } = brokerOf({ limits: { max_total_artifact_bytes: 6 }, answer: answering(...files) });
    expect((await call()).ok).toBe(true);
    expect(await call()).toFail("ARTIFACT_TOO_LARGE");
    expect((await call()).ok).toBe(true);
    expect((await call()).ok).toBe(true);
  });

  test("time: a call has its own deadline, or what is left of the job's", async () => {
    const { call, ran, clock } = brokerOf({ limits: { call_timeout_ms: 5_000, job_timeout_ms: 8_000 } });
    await call();
    clock.advance(4_000);
    await call();
    clock.advance(3_999);
    await call();
    expect(ran.map(({ deadline }) => deadline - START)).toEqual([5_000, 8_000, 8_000]);
    clock.advance(1);
    expect(await call()).toFail("CALL_TIMEOUT");
    expect(ran).toHaveLength(3);
    expect(new Set(ran.map(({ now }) => now))).toEqual(new Set([START]));
  });
});

test("an artifact that is null or no envelope is refused, not passed on", async () => {
  for (const artifact of [null, "file", [], {}, { name: "a.txt" }]) {
    const { call } = brokerOf({ answer: answering({ artifact }) });
    expect(await call()).toFail("ARTIFACT_INVALID");
  }
});
