import { describe, expect, test } from "vitest";
import { Fault, refuse, succeed } from "../../../functions/contract/fault.ts";
import { JobRecord } from "../../../functions/contract/job.ts";
import { DEFAULT_LIMITS } from "../../../functions/contract/limits.ts";
import type { HandlerRunner, ObjectStore } from "../../../functions/contract/ports.ts";
import { reportJob, toReport } from "../../../functions/job/report-job.ts";
import { createManualClock } from "../../kit/manual-clock.ts";
import { shippedCatalog } from "../catalog/catalogs.ts";
import { jobWorld, OWNER, pdfCall, planCall, START } from "./job-context.ts";
import "../../kit/to-fail.ts";

const ARTIFACT_KEY = /^artifacts\/[A-Za-z0-9_-]+\/[A-Za-z0-9_-]{16,}\.(?:pdf|txt|md|csv|ics)$/;

const violationsOf = (outcome: Awaited<ReturnType<ReturnType<typeof jobWorld>["run"]>>) =>
  outcome.ok ? [] : outcome.fault.violations.map(({ path }) => path);

describe("a job", () => {
  test("runs its calls in order and reports each", async () => {
    const { record } = jobWorld();
    const job = await record({ calls: [pdfCall("a", { title: "One" }), { id: "mine", ...planCall() }] });
    expect(job).toMatchObject({
      status: "succeeded",
      created_at: new Date(START).toISOString(),
      results: [
        { call_id: "c1", tool: "create_pdf@1", ok: true, output: { created: true, pages: 1, artifact_id: "a1" } },
        { call_id: "mine", tool: "make_plan@1", ok: true, output: { step_count: 1, artifact_id: "a2" } },
      ],
      artifacts: [
        { artifact_id: "a1", call_id: "c1", name: "One.pdf", media_type: "application/pdf" },
        { artifact_id: "a2", call_id: "mine", name: "plan.txt", media_type: "text/plain" },
      ],
      usage: { calls: 2 },
      catalog_generation: 0,
    });
  });

  test("goes on after a failing call, and is partial", async () => {
    const { record } = jobWorld();
    const job = await record({ calls: [pdfCall("a"), pdfCall(" "), planCall()] });
    expect(job.status).toBe("partial");
    expect(job.results.map(({ ok }) => ok)).toEqual([true, false, true]);
    expect(job.results[1]).toMatchObject({
      error: { code: "TOOL_INPUT_INVALID", errors: [{ path: "/calls/1/arguments/body" }] },
    });
    expect(job.artifacts.map(({ call_id }) => call_id)).toEqual(["c1", "c3"]);
  });

  test("has failed when no call succeeded, for any reason but its input", async () => {
    const runner: HandlerRunner = { interrupts: true, run: async () => refuse("CALL_TIMEOUT", "too late") };
    const job = await jobWorld({ runner }).record({ calls: [planCall(), pdfCall()] });
    expect([job.status, job.artifacts]).toEqual(["failed", []]);
  });

  test("keeps digests of what was given and called, and the bytes of no file", async () => {
    const { record, store, keys } = jobWorld();
    const job = await record({ calls: [pdfCall("SECRET TEXT")] });
    const [artifactKey = "", jobKey = ""] = await keys();
    const stored = await store.get(jobKey, { maxBytes: 1_000_000 });
    const text = Buffer.from(stored?.bytes ?? []).toString();
    expect(JobRecord.parse(JSON.parse(text))).toEqual(job);
    expect(text).not.toMatch(/SECRET|base64|JVBERi/);
    expect(job.audit).toEqual([
      {
        call_id: "c1",
        ref: "create_pdf@1",
        definition_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
        arguments_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
        outcome: "ok",
        duration_ms: 0,
        output_bytes: '{"created":true,"pages":1}'.length,
        artifact_bytes: job.artifacts[0]?.size_bytes,
      },
    ]);
    expect(job.usage).toMatchObject({
      output_bytes: job.audit[0]?.output_bytes,
      artifact_bytes: job.artifacts[0]?.size_bytes,
    });
    const file = await store.get(artifactKey, { maxBytes: 1_000_000 });
    expect(
      Buffer.from(file?.bytes ?? [])
        .subarray(0, 5)
        .toString(),
    ).toBe("%PDF-");
    expect(file?.mediaType).toBe("application/pdf");
  });

  test("keeps its files under keys of ids only, whatever they are called", async () => {
    const { record, keys } = jobWorld();
    const names = ["a+b c%20d.pdf", "../u2/x.pdf", "x//y.pdf", "é.pdf", "#?.pdf"];
    await record({ calls: names.map((filename) => pdfCall("b", { filename })) });
    const found = await keys();
    expect(found.filter((key) => ARTIFACT_KEY.test(key))).toHaveLength(5);
    expect(found.filter((key) => !ARTIFACT_KEY.test(key))).toEqual([
      expect.stringMatching(/^jobs\/owner-1\/[0-9a-z]{26}\.json$/),
    ]);
  });

  test("answers in less than 16 kB with links, sizes and digests instead of files", async () => {
    const { record, reporting } = jobWorld();
    const report = await toReport(await record({ calls: [pdfCall("line\n".repeat(2_400))] }), reporting);
    const text = JSON.stringify(report);
    expect(text.length).toBeLessThan(16_000);
    expect(text).not.toContain("base64");
    expect(report.artifacts).toEqual([
      expect.objectContaining({
        url: expect.stringMatching(/^http/),
        expires_at: new Date(START + 900_000).toISOString(),
        size_bytes: expect.any(Number),
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      }),
    ]);
    expect(Object.keys(report)).not.toEqual(expect.arrayContaining(["owner"]));
    for (const hidden of ["owner", "audit", "version", "link_seconds"]) expect(report).not.toHaveProperty(hidden);
    expect(report.artifacts[0]).not.toHaveProperty("key");
  });
});

describe("before anything runs, a job is refused", () => {
  const refusing = (request: unknown) => async () => {
    let ran = 0;
    const runner: HandlerRunner = {
      interrupts: true,
      run: async () => {
        ran += 1;
        return succeed({});
      },
    };
    const world = jobWorld({ runner });
    const outcome = await world.run(request);
    expect(ran).toBe(0);
    expect(await world.keys()).toEqual([]);
    return outcome;
  };

  test.each([
    ["for a tool that is unknown", { calls: [planCall(), { tool: "ghost@1" }] }, "TOOL_UNKNOWN", ["/calls/1/tool"]],
    ["for another version", { calls: [{ tool: "create_pdf@2" }] }, "TOOL_UNKNOWN", ["/calls/0/tool"]],
    [
      "for tools that nobody approved",
      { calls: [{ tool: "data_table@1" }, planCall(), { tool: "incident_report@1" }] },
      "TOOL_NOT_APPROVED",
      ["/calls/0/tool", "/calls/2/tool"],
    ],
    [
      "for a tool that it does not allow",
      { allowed_tools: ["create_pdf@1"], calls: [planCall()] },
      "TOOL_NOT_ALLOWED",
      ["/calls/0/tool"],
    ],
    [
      "for a tool that it allows none of",
      { allowed_tools: [], calls: [planCall()] },
      "TOOL_NOT_ALLOWED",
      ["/calls/0/tool"],
    ],
    [
      "for allowing what is not approved",
      { allowed_tools: ["make_plan@1", "data_table@1"], calls: [planCall()] },
      "TOOL_NOT_APPROVED",
      ["/allowed_tools/1"],
    ],
    [
      "for allowing what is unknown",
      { allowed_tools: ["ghost@1"], calls: [planCall()] },
      "TOOL_UNKNOWN",
      ["/allowed_tools/0"],
    ],
    ["for a skill that is unknown", { allowed_skills: ["builtin/ghost"], calls: [planCall()] }, "SKILL_NOT_FOUND", []],
    [
      "for a tool outside its skills",
      { allowed_skills: ["builtin/status-update"], calls: [planCall()] },
      "TOOL_NOT_ALLOWED",
      ["/calls/0/tool"],
    ],
    [
      "for two calls of one id",
      { calls: [{ id: "a", ...planCall() }, planCall(), { id: "a", ...planCall() }] },
      "REQUEST_INVALID",
      ["/calls/2/id"],
    ],
    [
      "for a raised limit",
      { limits: { max_calls: 17, link_seconds: 901 }, calls: [planCall()] },
      "REQUEST_INVALID",
      ["/limits/max_calls", "/limits/link_seconds"],
    ],
    ["for too many calls", { calls: Array.from({ length: 17 }, () => planCall()) }, "REQUEST_INVALID", ["/calls"]],
  ] as const)("%s", async (_, request, code, paths) => {
    const outcome = await refusing(request)();
    expect(outcome).toFail(code);
    expect(violationsOf(outcome)).toEqual(paths);
  });
});

describe("allowances", () => {
  test("a skill allows itself and its flattened tool set, as far as it is approved", async () => {
    const minutes = { tool: "meeting_minutes@1", arguments: { title: "T", date: "D" } };
    const update = { tool: "status_update@1", arguments: { title: "T", summary: "S" } };
    const { record } = jobWorld();
    const job = await record({ allowed_skills: ["builtin/weekly-review"], calls: [minutes, update] });
    expect(job.status).toBe("succeeded");
    expect((await record({ allowed_skills: ["builtin/status-update"], calls: [update] })).status).toBe("succeeded");
    const fewer = jobWorld({ catalog: shippedCatalog(["status_update@1"]) });
    expect((await fewer.record({ allowed_skills: ["builtin/weekly-review"], calls: [update] })).status).toBe(
      "succeeded",
    );
    expect(await fewer.run({ allowed_skills: ["builtin/weekly-review"], calls: [minutes] })).toFail(
      "TOOL_NOT_APPROVED",
    );
  });

  test("tools and skills add up", async () => {
    const { record } = jobWorld();
    const job = await record({
      allowed_tools: ["make_plan@1"],
      allowed_skills: ["builtin/calendar-event"],
      calls: [planCall(), { tool: "calendar_event@1", arguments: { title: "T", start: "2026-12-01" } }],
    });
    expect(job.artifacts.map(({ media_type }) => media_type)).toEqual(["text/plain", "text/calendar"]);
  });
});

describe("call ids", () => {
  test("are c1, c2, … by place, and pass over those that were given", async () => {
    const { record } = jobWorld();
    const ids = async (...given: (string | undefined)[]) => {
      const job = await record({ calls: given.map((id) => ({ ...planCall(), ...(id === undefined ? {} : { id }) })) });
      return job.results.map(({ call_id }) => call_id);
    };
    expect(await ids(undefined, "x", undefined)).toEqual(["c1", "x", "c3"]);
    expect(await ids(undefined, "c1")).toEqual(["c3", "c1"]);
    expect(new Set(await ids("c2", undefined, undefined, "c5", "c3", "c9")).size).toBe(6);
  });
});

describe("input", () => {
  test("of every call refused refuses the job, with pointers into what was sent, and leaves nothing", async () => {
    const { run, keys } = jobWorld();
    const outcome = await run({
      calls: [
        pdfCall(" "),
        { tool: "create_pdf@1", arguments: { body: "x", Title: "t", fliename: 1 } },
        { tool: "make_plan@1", arguments: { goal: "g", steps: ["a", "\u200b"] } },
      ],
    });
    expect(outcome).toFail("TOOL_INPUT_INVALID");
    expect(violationsOf(outcome)).toEqual([
      "/calls/0/arguments/body",
      "/calls/1/arguments/Title",
      "/calls/1/arguments/fliename",
      "/calls/2/arguments/steps/1",
    ]);
    expect(await keys()).toEqual([]);
  });

  test("too large for the only call refuses the job", async () => {
    const outcome = await jobWorld().run({ calls: [pdfCall("b", { title: "x".repeat(300_000) })] });
    expect(outcome).toFail("PAYLOAD_TOO_LARGE");
    expect(violationsOf(outcome)).toEqual(["/calls/0/arguments"]);
  });

  test.each([
    ["😀".repeat(12_000), true],
    ["a".repeat(12_001), false],
    ["😀".repeat(12_001), false],
  ])("of a body counts code points (case %#)", async (body, accepted) => {
    expect((await jobWorld().run({ calls: [pdfCall(body)] })).ok).toBe(accepted);
  });

  test("of null for an optional argument is refused, and says null", async () => {
    const outcome = await jobWorld().run({ calls: [pdfCall("b", { title: null })] });
    expect(outcome.ok ? "" : JSON.stringify(outcome.fault.violations)).toMatch(/title.*null/);
  });
});

describe("limits", () => {
  test("of calls that the job lowered refuse the calls beyond", async () => {
    const job = await jobWorld().record({ limits: { max_calls: 1 }, calls: [planCall(), planCall()] });
    expect(job.results[1]).toMatchObject({ ok: false, error: { code: "QUOTA_EXCEEDED" } });
  });

  test("of time stop later calls from beginning", async () => {
    const clock = createManualClock(START);
    const runner: HandlerRunner = {
      interrupts: true,
      run: async () => {
        clock.advance(12_000);
        return succeed({});
      },
    };
    const job = await jobWorld({ clock: clock.now, runner }).record({ calls: [planCall(), planCall(), planCall()] });
    expect(job.results.map((result) => (result.ok ? "ok" : result.error.code))).toEqual(["ok", "ok", "CALL_TIMEOUT"]);
    expect(job.usage.duration_ms).toBe(24_000);
  });

  test("of all files together keep the first and refuse what does not fit", async () => {
    const job = await jobWorld().record({
      limits: { max_total_artifact_bytes: 40 },
      calls: [planCall(), planCall(), planCall()],
    });
    expect(job.results.map(({ ok }) => ok)).toEqual([true, false, false]);
  });

  test("of the report refuse a job whose answers could not be read back", async () => {
    const runner: HandlerRunner = { interrupts: true, run: async () => succeed({ text: `"`.repeat(30_000) }) };
    const world = jobWorld({ runner, limits: { ...DEFAULT_LIMITS, max_calls: 100 } });
    expect(await world.run({ calls: Array.from({ length: 80 }, () => planCall()) })).toFail("OUTPUT_TOO_LARGE");
    expect(await world.keys()).toEqual([]);
  });
});

describe("trouble", () => {
  const failingOn =
    (prefix: string) =>
    (store: ObjectStore): ObjectStore => ({
      ...store,
      put: async (request) => {
        if (request.key.startsWith(prefix)) throw new Error("the store is away");
        return store.put(request);
      },
    });

  test("with storing a file leaves no record", async () => {
    const world = jobWorld({}, failingOn("artifacts/"));
    await expect(world.run({ calls: [planCall()] })).rejects.toThrow();
    expect(await world.keys()).toEqual([]);
  });

  test("with storing the record leaves a file that no report shows", async () => {
    const world = jobWorld({}, failingOn("jobs/"));
    await expect(world.run({ calls: [planCall()] })).rejects.toThrow();
    const [orphan = ""] = await world.keys();
    const jobId = orphan.slice("artifacts/owner-1/".length).split("-")[0] ?? "";
    expect(await reportJob(OWNER, jobId, world.reporting)).toFail("JOB_NOT_FOUND");
  });

  test("with an id that was drawn twice overwrites nothing", async () => {
    const world = jobWorld({ randomBytes: (count) => new Uint8Array(count) });
    const first = await world.record({ calls: [planCall("first")] });
    await expect(world.run({ calls: [planCall("second")] })).rejects.toFail("DEFECT");
    const report = await reportJob(OWNER, first.job_id, world.reporting);
    expect(report.ok && report.value.results).toEqual(first.results);
    const file = await world.store.get(first.artifacts[0]?.key ?? "", { maxBytes: 1_000 });
    expect(Buffer.from(file?.bytes ?? []).toString()).toContain("first");
  });

  test("of ours is logged with its cause and told without it", async () => {
    const cause = new Error("/var/task/secret");
    const runner: HandlerRunner = {
      interrupts: true,
      run: async ({ handler }) =>
        handler === "make_plan" ? { ok: false, fault: new Fault("DEFECT", "secret", { cause }) } : succeed({}),
    };
    const world = jobWorld({ runner });
    const job = await world.record({ calls: [planCall(), pdfCall()] });
    expect(job.results[0]).toMatchObject({ ok: false, error: { code: "DEFECT" } });
    expect(JSON.stringify(job)).not.toContain("secret");
    expect(world.logged.filter(({ level }) => level !== "info")).toMatchObject([
      { level: "error", fields: { job_id: job.job_id, call_id: "c1", code: "DEFECT", cause } },
    ]);
  });

  test("of the caller's is logged by its code alone: its words are for the caller", async () => {
    const world = jobWorld();
    const { job_id } = await world.record({ calls: [planCall(), pdfCall(" ")] });
    const call = { job_id, duration_ms: 0 };
    expect(world.logged).toEqual([
      { level: "info", fields: { ...call, call_id: "c1", ref: "make_plan@1" } },
      { level: "info", fields: { ...call, call_id: "c2", ref: "create_pdf@1", code: "TOOL_INPUT_INVALID" } },
      { level: "info", fields: expect.objectContaining({ job_id, status: "partial", calls: 2, artifacts: 1 }) },
    ]);
  });
});
