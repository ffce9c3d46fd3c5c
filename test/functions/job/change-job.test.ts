import { describe, expect, test } from "vitest";
import type { ObjectStore } from "../../../functions/contract/ports.ts";
import { changeJob } from "../../../functions/job/change-job.ts";
import "../../kit/to-fail.ts";
import { jobWorld, OWNER, planCall } from "./job-context.ts";

async function worldWithJob(wrap = (store: ObjectStore) => store) {
  const world = jobWorld();
  const { job_id: jobId } = await world.record({ calls: [planCall()] });
  return { jobId, place: { store: wrap(world.store), clock: world.clock.now, owner: OWNER, jobId } };
}

describe("a record", () => {
  test("is written as it was changed, and the etag is that of what stands", async () => {
    const { place } = await worldWithJob();
    const first = await changeJob(place, (record) => ({ ...record, attempts: 1 }));
    expect(first).toMatchObject({ changed: true, record: { attempts: 1 } });
    const second = await changeJob(place, () => undefined);
    expect(second).toEqual({ changed: false, record: first?.record, etag: first?.etag });
  });

  test("that another one changes in between is changed from what that one left", async () => {
    let others = 3;
    const { place } = await worldWithJob((store) => ({
      ...store,
      get: async (key, limits) => {
        const found = await store.get(key, limits);
        if (others > 0) {
          others -= 1;
          await changeJob({ ...place, store }, (record) => ({ ...record, attempts: (record.attempts ?? 0) + 1 }));
        }
        return found;
      },
    }));
    const changed = await changeJob(place, (record) => ({ ...record, attempts: (record.attempts ?? 0) + 10 }));
    expect(changed?.record.attempts).toBe(13);
  });

  test("that is never the same twice is given up", async () => {
    const { place } = await worldWithJob((store) => ({ ...store, put: async () => ({ stored: false }) }));
    await expect(changeJob(place, (record) => ({ ...record, attempts: 1 }))).rejects.toFail("DEFECT");
  });
});

test("a job that is not there is not changed", async () => {
  const { place } = await worldWithJob();
  expect(await changeJob({ ...place, jobId: "no-such-job" }, (record) => record)).toBeUndefined();
  expect(await changeJob({ ...place, owner: "somebody-else" }, (record) => record)).toBeUndefined();
});
