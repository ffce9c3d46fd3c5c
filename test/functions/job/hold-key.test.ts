import { describe, expect, test } from "vitest";
import { refuse, succeed } from "../../../functions/contract/fault.ts";
import { underKey } from "../../../functions/job/hold-key.ts";
import type { HeldKey } from "../../../functions/job/idempotency.ts";
import "../../kit/to-fail.ts";
import { jobWorld, OWNER, planCall, START } from "./job-context.ts";

/** What is done with a key in the end; that the claim holds, idempotency.test.ts shows. */
function heldKey(calledServers = false) {
  const done: string[] = [];
  const note = (what: string) => async () => void done.push(what);
  const held: HeldKey = {
    job: { owner: OWNER, jobId: "7ybqaby9kz9yvhyj833nfcx86s", createdAt: START },
    calledServers,
    callServers: async () => true,
    refuse: note("refused"),
    release: note("released"),
    giveUp: note("given up"),
  };
  return { held, done };
}

describe("a key", () => {
  test("is kept for a job that stands", async () => {
    const { held, done } = heldKey();
    const world = jobWorld();
    const record = await world.record({ calls: [planCall()] });
    expect(await underKey(held, world.context, async () => succeed(record))).toEqual(succeed(record));
    expect(done).toEqual([]);
  });

  test.each([
    ["TOOL_UNKNOWN", "released"],
    ["TOOL_INPUT_INVALID", "released"],
    ["OUTPUT_TOO_LARGE", "refused"],
  ] as const)("of a job that ends with %s is %s", async (code, what) => {
    const { held, done } = heldKey();
    expect(await underKey(held, jobWorld().context, async () => refuse(code, "no"))).toFail(code);
    expect(done).toEqual([what]);
  });

  test("of a job that broke off is given up, and the reason is not hidden", async () => {
    const { held, done } = heldKey();
    const breaking = underKey(held, jobWorld().context, async () => Promise.reject(new Error("the store is down")));
    await expect(breaking).rejects.toThrow("the store is down");
    expect(done).toEqual(["given up"]);
  });

  test("under which servers were called before has a failed job, told in the log, and nothing is done", async () => {
    const { held } = heldKey(true);
    const world = jobWorld();
    let acted = false;
    const outcome = await underKey(held, world.context, async () => {
      acted = true;
      return refuse("DEFECT", "no");
    });
    expect(outcome.ok && outcome.value).toMatchObject({ status: "failed", error: { code: "JOB_INTERRUPTED" } });
    expect(acted).toBe(false);
    expect(world.logged).toMatchObject([{ fields: { status: "failed", code: "JOB_INTERRUPTED" } }]);
  });
});
