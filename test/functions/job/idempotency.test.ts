import { describe, expect, test } from "vitest";
import { succeed } from "../../../functions/contract/fault.ts";
import { type JobRecord, JobRequest } from "../../../functions/contract/job.ts";
import type { HandlerRunner } from "../../../functions/contract/ports.ts";
import { queueJob } from "../../../functions/job/queue-job.ts";
import { runJob } from "../../../functions/job/run-job.ts";
import "../../kit/to-fail.ts";
import { lentWorld, OWNER_ID } from "./async-world.ts";
import { dyingStore } from "./dying-store.ts";
import { type JobWorld, jobWorld, LEASE_MS, OWNER, pdfCall, planCall } from "./job-context.ts";

const KEY = "5f0c3a52-2f0c-4f43-9d3a-0a6f6c1c6e11";
const JOB = { calls: [planCall(), pdfCall()] };
const jobKeys = async (world: JobWorld) => (await world.keys()).filter((key) => key.startsWith("jobs/"));
const artifactKeys = async (world: JobWorld) => (await world.keys()).filter((key) => key.startsWith("artifacts/"));

function recordIn(outcome: Awaited<ReturnType<JobWorld["run"]>>): JobRecord {
  if (!outcome.ok) throw outcome.fault;
  return outcome.value;
}

/** Counts what handlers are asked to do, and can hold them up. */
function countingRunner(until: Promise<unknown> = Promise.resolve()) {
  let runs = 0;
  const runner: HandlerRunner = {
    interrupts: true,
    run: async () => {
      runs += 1;
      await until;
      return succeed({ run: runs });
    },
  };
  return { runner, runs: () => runs };
}

describe("a key that is used again", () => {
  test("with the same job gets the first answer, and nothing runs a second time", async () => {
    const { runner, runs } = countingRunner();
    const world = jobWorld({ runner });
    const first = recordIn(await world.run(JOB, OWNER, KEY));
    world.clock.advance(6 * 24 * 3600_000);
    expect(recordIn(await world.run(JOB, OWNER, KEY))).toEqual(first);
    expect(runs()).toBe(2);
    expect(await jobKeys(world)).toHaveLength(1);
  });

  test("with the same job in other words gets the first answer", async () => {
    const world = jobWorld();
    const call = { id: "c1", tool: "make_plan@1", arguments: { goal: "Go", steps: ["a"] } };
    const first = recordIn(await world.run({ calls: [call] }, OWNER, KEY));
    const reordered = { calls: [{ arguments: { steps: ["a"], goal: "Go" }, tool: "make_plan@1", id: "c1" }] };
    expect(recordIn(await world.run(reordered, OWNER, KEY))).toEqual(first);
  });

  test("with another job is refused", async () => {
    const world = jobWorld();
    await world.run(JOB, OWNER, KEY);
    expect(await world.run({ calls: [planCall("Another")] }, OWNER, KEY)).toFail("IDEMPOTENCY_MISMATCH");
    expect(await jobKeys(world)).toHaveLength(1);
  });

  test("by another owner is another key", async () => {
    const world = jobWorld();
    const mine = recordIn(await world.run(JOB, OWNER, KEY));
    const theirs = recordIn(await world.run({ calls: [planCall("Theirs")] }, "owner-2", KEY));
    expect(theirs.job_id).not.toBe(mine.job_id);
  });

  test("while the first job runs is told so, and gets its answer afterwards", async () => {
    let finish = () => {};
    const held = new Promise<void>((done) => {
      finish = done;
    });
    const { runner, runs } = countingRunner(held);
    const world = jobWorld({ runner });
    const first = world.run(JOB, OWNER, KEY);
    await expect.poll(runs).toBe(1);
    expect(await world.run(JOB, OWNER, KEY)).toFail("IDEMPOTENCY_IN_PROGRESS");
    finish();
    const kept = recordIn(await first);
    expect(recordIn(await world.run(JOB, OWNER, KEY))).toEqual(kept);
    expect(runs()).toBe(2);
  });

  test("by many at the same moment runs one job", async () => {
    const { runner, runs } = countingRunner();
    const world = jobWorld({ runner });
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => world.run(JOB, OWNER, KEY)));
    expect(runs()).toBe(2);
    expect(await jobKeys(world)).toHaveLength(1);
    const ids = new Set(outcomes.flatMap((outcome) => (outcome.ok ? outcome.value.job_id : [])));
    expect(ids.size).toBe(1);
    for (const outcome of outcomes) if (!outcome.ok) expect(outcome).toFail("IDEMPOTENCY_IN_PROGRESS");
  });
});

describe("a job that is refused", () => {
  test("before anything ran leaves the key as good as new, for another job too", async () => {
    const world = jobWorld();
    expect(await world.run({ calls: [{ tool: "no_such@1" }] }, OWNER, KEY)).toFail("TOOL_UNKNOWN");
    expect(await world.run({ calls: [pdfCall("ok", { filename: 7 })] }, OWNER, KEY)).toFail("TOOL_INPUT_INVALID");
    expect(recordIn(await world.run(JOB, OWNER, KEY)).status).toBe("succeeded");
  });

  test("after it ran gets the same refusal again, without a second run", async () => {
    let runs = 0;
    const runner: HandlerRunner = {
      interrupts: true,
      run: async () => {
        runs += 1;
        return succeed({ text: "x".repeat(60_000) });
      },
    };
    const limits = { ...jobWorld().context.limits, max_calls: 200, max_output_bytes: 64 * 1024 };
    const world = jobWorld({ runner, limits });
    const many = { calls: Array.from({ length: 110 }, () => planCall()) };
    expect(await world.run(many, OWNER, KEY)).toFail("OUTPUT_TOO_LARGE");
    expect(await world.run(many, OWNER, KEY)).toFail("OUTPUT_TOO_LARGE");
    expect(runs).toBe(110);
    expect(await world.run(JOB, OWNER, KEY)).toFail("IDEMPOTENCY_MISMATCH");
  });
});

describe("a runner that is killed", () => {
  /** Runs the keyed job over a store that dies at a step; answers the world as it is left. */
  async function killAt(at: number, done: boolean) {
    const world = jobWorld();
    const dying = dyingStore(world.store, at, { done });
    const submission = { owner: OWNER, request: JobRequest.parse(JOB), idempotencyKey: KEY, requestId: "r" };
    const ended = await runJob(submission, { ...world.context, store: dying.store }).then(
      () => true,
      () => false,
    );
    return { world, ended, steps: dying.steps() };
  }

  test.each([false, true])("at any step, done (%s) or not, leaves one job to whoever asks again", async (done) => {
    for (let at = 1; ; at += 1) {
      const { world, ended } = await killAt(at, done);
      world.clock.advance(LEASE_MS + 1);
      const record = recordIn(await world.run(JOB, OWNER, KEY));
      expect([at, record.status]).toEqual([at, "succeeded"]);
      expect([at, (await jobKeys(world)).length]).toEqual([at, 1]);
      // The files of the first run are those of the second: the same bytes under the same keys.
      expect([at, await artifactKeys(world)]).toEqual([at, record.artifacts.map(({ key }) => key)]);
      expect(recordIn(await world.run(JOB, OWNER, KEY))).toEqual(record);
      if (ended) {
        expect(at).toBeGreaterThan(4);
        return;
      }
    }
  });

  test("holds the key until its lease is over and not longer", async () => {
    const { world } = await killAt(2, false);
    world.clock.advance(LEASE_MS - 1);
    expect(await world.run(JOB, OWNER, KEY)).toFail("IDEMPOTENCY_IN_PROGRESS");
    world.clock.advance(1);
    expect(recordIn(await world.run(JOB, OWNER, KEY)).status).toBe("succeeded");
  });

  test("that could still say so lets the next one run at once", async () => {
    const world = jobWorld({}, (store) => {
      let failed = false;
      return {
        ...store,
        put: async (request) => {
          if (failed || !request.key.startsWith("artifacts/")) return store.put(request);
          failed = true;
          throw new Error("the store is down");
        },
      };
    });
    await expect(world.run(JOB, OWNER, KEY)).rejects.toThrow("the store is down");
    expect(recordIn(await world.run(JOB, OWNER, KEY)).status).toBe("succeeded");
  });

  test("that was only slow leaves the job that was kept meanwhile as it is", async () => {
    let finish = () => {};
    const held = new Promise<void>((done) => {
      finish = done;
    });
    const slow = countingRunner(held);
    const world = jobWorld();
    const submission = { owner: OWNER, request: JobRequest.parse(JOB), idempotencyKey: KEY, requestId: "r" };
    const first = runJob(submission, { ...world.context, runner: slow.runner });
    await expect.poll(slow.runs).toBe(1);
    world.clock.advance(LEASE_MS + 1);
    const second = recordIn(await world.run(JOB, OWNER, KEY));
    finish();
    await expect(first).rejects.toFail("REQUEST_TIMEOUT");
    expect(recordIn(await world.run(JOB, OWNER, KEY))).toEqual(second);
    expect(await jobKeys(world)).toHaveLength(1);
  });

  test("while it called a server's tool leaves a failed job: nobody calls that tool a second time", async () => {
    const { world, job, calls } = await lentWorld();
    const submission = { owner: OWNER, request: JobRequest.parse(job), idempotencyKey: KEY, requestId: "r" };
    // The third step keeps the record; the second notes that the tool is called.
    const dying = dyingStore(world.store, 3, { done: false });
    await expect(runJob(submission, { ...world.context, store: dying.store })).rejects.toThrow("killed");
    expect(calls()).toBe(1);
    world.clock.advance(LEASE_MS + 1);
    const record = recordIn(await world.run(job, OWNER, KEY));
    expect(record).toMatchObject({ status: "failed", error: { code: "JOB_INTERRUPTED" }, results: [] });
    expect(recordIn(await world.run(job, OWNER, KEY))).toEqual(record);
    expect(calls()).toBe(1);
  });
});

describe("a job that calls a server's tool", () => {
  async function brokenOff(at: number) {
    const { world, job, calls, changes } = await lentWorld();
    const submission = { owner: OWNER_ID, request: JobRequest.parse(job), idempotencyKey: KEY, requestId: "r" };
    const dying = dyingStore(world.store, at, { done: false });
    await expect(runJob(submission, { ...world.context, store: dying.store })).rejects.toThrow("killed");
    world.clock.advance(LEASE_MS + 1);
    return { world, job, calls, submission, changes };
  }

  test("is run by the next one when nothing was called yet", async () => {
    const { world, job, calls } = await brokenOff(2);
    expect(recordIn(await world.run(job, OWNER_ID, KEY)).status).toBe("succeeded");
    expect(calls()).toBe(1);
  });

  test("leaves the key as good as new when every call's input is refused, so that nothing was called", async () => {
    const { world, job, calls } = await lentWorld();
    const [call] = job.calls;
    const tooLarge = { calls: [{ ...call, arguments: { text: "x".repeat(300_000) } }] };
    expect(await world.run(tooLarge, OWNER_ID, KEY)).toFail("PAYLOAD_TOO_LARGE");
    expect(calls()).toBe(0);
    expect(recordIn(await world.run(job, OWNER_ID, KEY)).status).toBe("succeeded");
  });

  test("is not run a second time by one who does not wait for it", async () => {
    const { world, calls, submission } = await brokenOff(3);
    const sent: unknown[] = [];
    const jobs = { send: async (message: unknown) => void sent.push(message) };
    const queued = await queueJob(submission, { ...world.context, jobs });
    expect(recordIn(queued)).toMatchObject({ status: "failed", error: { code: "JOB_INTERRUPTED" } });
    expect(sent).toEqual([]);
    expect(calls()).toBe(1);
  });

  test("keeps its key for itself, though it is refused in between", async () => {
    const { world, job, calls, submission } = await brokenOff(3);
    const { catalog } = jobWorld().context;
    // Without the approval, and so without the record of the interrupted job as well.
    const refused = await runJob(submission, { ...world.context, catalog });
    expect(refused.ok && refused.value.error?.code).toBe("JOB_INTERRUPTED");
    expect(recordIn(await world.run(job, OWNER_ID, KEY))).toMatchObject({ status: "failed" });
    expect(calls()).toBe(1);
  });

  test("is not run by one whose key was taken over before the first call", async () => {
    const { world, job, calls } = await lentWorld();
    let stolen = false;
    const submission = { owner: OWNER_ID, request: JobRequest.parse(job), idempotencyKey: KEY, requestId: "r" };
    const slow = {
      ...world.store,
      put: async (request: Parameters<typeof world.store.put>[0]) => {
        if (request.condition?.type === "match" && !stolen) {
          stolen = true;
          world.clock.advance(LEASE_MS + 1);
          await world.run(job, OWNER_ID, KEY);
        }
        return world.store.put(request);
      },
    };
    expect(await runJob(submission, { ...world.context, store: slow })).toFail("IDEMPOTENCY_IN_PROGRESS");
    expect(calls()).toBe(1);
  });
});

describe("a run that outlasts its lease, as one does that was frozen with its function and goes on with a later request", () => {
  /** Time passes while the thing named is done. */
  async function frozenIn(what: "a call" | "a file") {
    const pass = () => world.clock.advance(LEASE_MS);
    const runner: HandlerRunner = {
      interrupts: true,
      run: async () => {
        if (what === "a call") pass();
        return succeed({ artifact: { name: "a.txt", media_type: "text/plain", base64: "YQ==", size_bytes: 1 } });
      },
    };
    const world = jobWorld({ runner }, (store) => ({
      ...store,
      put: async (request) => {
        if (what === "a file" && request.key.startsWith("artifacts/")) pass();
        return store.put(request);
      },
    }));
    return world;
  }

  test.each(["a call", "a file"] as const)("in %s leaves no record, with a key or without one", async (what) => {
    for (const key of [KEY, undefined]) {
      const world = await frozenIn(what);
      await expect(world.run({ calls: [planCall()] }, OWNER, key)).rejects.toFail("REQUEST_TIMEOUT");
      expect(await jobKeys(world)).toEqual([]);
      expect((await artifactKeys(world)).length).toBe(what === "a call" ? 0 : 1);
    }
  });

  test("begins no further call", async () => {
    let runs = 0;
    const runner: HandlerRunner = {
      interrupts: true,
      run: async () => {
        runs += 1;
        world.clock.advance(LEASE_MS);
        return succeed({});
      },
    };
    const world = jobWorld({ runner });
    await expect(world.run({ calls: [planCall(), planCall()] })).rejects.toFail("REQUEST_TIMEOUT");
    expect(runs).toBe(1);
  });
});

test("a claim that cannot be read stops the job instead of running it twice", async () => {
  const world = jobWorld();
  await world.run(JOB, OWNER, KEY);
  const [claim = ""] = (await world.keys()).filter((key) => key.startsWith("idempotency/"));
  await world.store.put({ key: claim, bytes: Buffer.from("{}"), mediaType: "application/json" });
  await expect(world.run(JOB, OWNER, KEY)).rejects.toFail("DEFECT");
});

test("the key itself is stored nowhere", async () => {
  const world = jobWorld();
  await world.run(JOB, OWNER, "alice@example.test");
  for (const key of await world.keys()) {
    const object = await world.store.get(key, { maxBytes: 1_000_000 });
    expect(key + Buffer.from(object?.bytes ?? []).toString()).not.toContain("alice@");
  }
});
