import { describe, expect, test } from "vitest";
import type { ObjectStore } from "../../../functions/contract/ports.ts";
import { deleteArtifact, linkArtifact, listJobs, reportJob, toReport } from "../../../functions/job/report-job.ts";
import { ARTIFACT_DAYS, jobWorld, OWNER, pdfCall, planCall, START } from "./job-context.ts";
import "../../kit/to-fail.ts";

const DAY = 24 * 3600_000;
const OTHER = "owner-2";

async function worldWithJob(wrap?: (store: ObjectStore) => ObjectStore) {
  const world = jobWorld({}, wrap);
  const job = await world.record({ calls: [pdfCall("b", { title: "Minutes é" }), planCall()] });
  const { reporting } = world;
  return {
    ...world,
    jobId: job.job_id,
    report: async (owner = OWNER) => reportJob(owner, job.job_id, reporting),
    link: async (artifactId = "a1", owner = OWNER) => linkArtifact(owner, job.job_id, artifactId, reporting),
    remove: async (artifactId = "a1", owner = OWNER) => deleteArtifact(owner, job.job_id, artifactId, reporting),
    artifactKeys: async () => (await world.keys()).filter((key) => key.startsWith("artifacts/")),
  };
}

describe("links", () => {
  test("are minted anew for every report, and lead to the file by its name and type", async () => {
    const { report, store, clock } = await worldWithJob();
    const urlAndEnd = async () => {
      const reported = await report();
      const artifact = reported.ok ? reported.value.artifacts[0] : undefined;
      return [artifact?.url ?? "", artifact?.expires_at ?? ""] as const;
    };
    const [first, firstEnd] = await urlAndEnd();
    expect(firstEnd).toBe(new Date(START + 900_000).toISOString());
    expect(store.readLink(first)).toMatchObject({ value: { fileName: "Minutes-é.pdf", mediaType: "application/pdf" } });
    clock.advance(900_000);
    expect(store.readLink(first)).toFail("ARTIFACT_EXPIRED");
    const [second, secondEnd] = await urlAndEnd();
    expect(secondEnd).toBe(new Date(START + 1_800_000).toISOString());
    expect(store.readLink(second).ok).toBe(true);
  });

  test("live as long as the job asked for", async () => {
    const world = jobWorld();
    const { job_id } = await world.record({ limits: { link_seconds: 60 }, calls: [planCall()] });
    const link = await linkArtifact(OWNER, job_id, "a1", world.reporting);
    expect(link.ok && link.value.expiresAt).toBe(START + 60_000);
  });

  test("never outlive the file", async () => {
    const { link, report, clock } = await worldWithJob();
    clock.advance(ARTIFACT_DAYS * DAY - 100_000);
    const last = await link();
    expect(last.ok && last.value.expiresAt).toBe(START + ARTIFACT_DAYS * DAY);
    clock.advance(99_999);
    expect(await link()).toFail("ARTIFACT_EXPIRED");
    clock.advance(1);
    expect(await link()).toFail("ARTIFACT_EXPIRED");
    const reported = await report();
    expect(reported.ok && reported.value.artifacts.map(({ url, expires_at }) => [url, expires_at])).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ]);
  });

  test("are for artifacts of the job only", async () => {
    const { link } = await worldWithJob();
    expect((await link("a2")).ok).toBe(true);
    for (const id of ["a3", "a0", "", "A1", "../a1", "a1.pdf", "constructor"])
      expect(await link(id)).toFail("ARTIFACT_NOT_FOUND");
  });
});

describe("another owner", () => {
  test("is told of every job that it does not exist, and can change nothing", async () => {
    const { report, link, remove, reporting, artifactKeys } = await worldWithJob();
    expect(await report(OTHER)).toFail("JOB_NOT_FOUND");
    expect(await link("a1", OTHER)).toFail("JOB_NOT_FOUND");
    expect(await remove("a1", OTHER)).toFail("JOB_NOT_FOUND");
    expect(await listJobs(OTHER, {}, reporting)).toEqual({ jobs: [] });
    expect(await artifactKeys()).toHaveLength(2);
  });

  test("whose name begins like the owner's sees nothing of it", async () => {
    const { reporting } = await worldWithJob();
    expect(await listJobs(OWNER.slice(0, -1), {}, reporting)).toEqual({ jobs: [] });
    expect(await listJobs(`${OWNER}0`, {}, reporting)).toEqual({ jobs: [] });
  });
});

test.each(["", "x", "../owner-1/x", "0".repeat(26), `../${OWNER}/${"0".repeat(26)}`, "a".repeat(10_000)])(
  "the id %j is no job",
  async (id) => {
    const { reporting } = jobWorld();
    expect(await reportJob(OWNER, id, reporting)).toFail("JOB_NOT_FOUND");
    expect(await linkArtifact(OWNER, id, "a1", reporting)).toFail("JOB_NOT_FOUND");
    expect(await deleteArtifact(OWNER, id, "a1", reporting)).toFail("JOB_NOT_FOUND");
  },
);

describe("deleting", () => {
  test("removes the file, says so in the report and keeps the other", async () => {
    const { remove, link, report, artifactKeys, clock } = await worldWithJob();
    clock.advance(1_000);
    expect(await remove()).toEqual({ ok: true, value: null });
    expect(await artifactKeys()).toEqual([expect.stringMatching(/-a2-[0-9a-f]{32}\.txt$/)]);
    expect(await link()).toFail("ARTIFACT_NOT_FOUND");
    expect((await link("a2")).ok).toBe(true);
    const reported = await report();
    const [deleted, kept] = reported.ok ? reported.value.artifacts : [];
    expect(deleted).toMatchObject({ name: "Minutes-é.pdf", deleted_at: new Date(START + 1_000).toISOString() });
    expect(deleted).not.toHaveProperty("url");
    expect(kept).toHaveProperty("url");
  });

  test("twice is as good as once", async () => {
    const { remove, report, clock } = await worldWithJob();
    await remove();
    clock.advance(5_000);
    expect((await remove()).ok).toBe(true);
    const reported = await report();
    expect(reported.ok && reported.value.artifacts[0]?.deleted_at).toBe(new Date(START).toISOString());
  });

  test("what never was is not found", async () => {
    const { remove } = await worldWithJob();
    expect(await remove("a3")).toFail("ARTIFACT_NOT_FOUND");
  });

  test("two files at once loses neither mark", async () => {
    const { remove, report, artifactKeys } = await worldWithJob();
    expect(await Promise.all([remove("a1"), remove("a2")])).toEqual([
      { ok: true, value: null },
      { ok: true, value: null },
    ]);
    expect(await artifactKeys()).toEqual([]);
    const reported = await report();
    expect(reported.ok && reported.value.artifacts.filter(({ deleted_at }) => deleted_at === undefined)).toEqual([]);
  });

  test("that dies before the file is gone mints no link any more, and is mended by asking again", async () => {
    let dying = true;
    const world = await worldWithJob((store) => ({
      ...store,
      delete: async (key) => {
        if (dying) throw new Error("killed");
        return store.delete(key);
      },
    }));
    await expect(world.remove()).rejects.toThrow();
    expect(await world.link()).toFail("ARTIFACT_NOT_FOUND");
    expect(await world.artifactKeys()).toHaveLength(2);
    dying = false;
    expect((await world.remove()).ok).toBe(true);
    expect(await world.artifactKeys()).toHaveLength(1);
  });

  test("against a record that always changes gives up instead of going on for ever", async () => {
    const world = await worldWithJob((store) => ({
      ...store,
      put: async (request) => (request.condition?.type === "match" ? { stored: false } : store.put(request)),
    }));
    await expect(world.remove()).rejects.toFail("DEFECT");
    expect(await world.artifactKeys()).toHaveLength(2);
  });
});

test("a file is kept for its days from when it was made, however long its job waited", async () => {
  const world = jobWorld();
  const record = await world.record({ calls: [planCall()] });
  const waited = { ...record, created_at: new Date(START - 10 * 24 * 3600_000).toISOString() };
  const report = await toReport(waited, world.reporting);
  expect(report.artifacts[0]?.url).toBeDefined();
  world.clock.advance(ARTIFACT_DAYS * 24 * 3600_000);
  expect((await toReport(waited, world.reporting)).artifacts[0]?.url).toBeUndefined();
});

test("removing many files at the same moment removes each", async () => {
  const calls = Array.from({ length: 16 }, () => planCall());
  const world = jobWorld({}, (store) => ({
    ...store,
    // As a store elsewhere: others come in between a read and a write.
    get: async (key, limits) => {
      const found = await store.get(key, limits);
      await new Promise((done) => setImmediate(done));
      return found;
    },
  }));
  const { job_id, artifacts } = await world.record({ calls });
  const removed = await Promise.all(
    artifacts.map(({ artifact_id }) => deleteArtifact(OWNER, job_id, artifact_id, world.reporting)),
  );
  expect(removed.every(({ ok }) => ok)).toBe(true);
  expect((await world.keys()).filter((key) => key.startsWith("artifacts/"))).toEqual([]);
});

describe("the list", () => {
  test("is not lost for one record that cannot be read, which is told to who asks for that job", async () => {
    const world = jobWorld();
    const [first, second] = [await world.record({ calls: [planCall()] }), await world.record({ calls: [planCall()] })];
    const key = `jobs/${OWNER}/${first.job_id}.json`;
    await world.store.put({ key, bytes: Buffer.from("{"), mediaType: "application/json" });
    const { jobs } = await listJobs(OWNER, {}, world.reporting);
    expect(jobs.map(({ job_id }) => job_id)).toEqual([second.job_id]);
    await expect(reportJob(OWNER, first.job_id, world.reporting)).rejects.toFail("DEFECT");
  });

  test("fails when the store does, and does not look empty", async () => {
    const world = jobWorld({}, (store) => ({ ...store, get: async () => Promise.reject(new Error("down")) }));
    await world.record({ calls: [planCall()] });
    await expect(listJobs(OWNER, {}, world.reporting)).rejects.toThrow("down");
  });

  test("shows the newest first, page by page, each once", async () => {
    const world = jobWorld();
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      ids.unshift((await world.record({ calls: [planCall()] })).job_id);
      world.clock.advance(1);
    }
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const page = await listJobs(OWNER, { limit: 2, after }, world.reporting);
      expect(page.jobs.length).toBeLessThanOrEqual(2);
      seen.push(...page.jobs.map(({ job_id }) => job_id));
      after = page.next;
    } while (after !== undefined);
    expect(seen).toEqual(ids);
  });

  test("tells of each what a reader looks for", async () => {
    const { reporting, jobId } = await worldWithJob();
    expect(await listJobs(OWNER, {}, reporting)).toEqual({
      jobs: [{ job_id: jobId, status: "succeeded", created_at: new Date(START).toISOString(), calls: 2, artifacts: 2 }],
    });
  });

  test("has 20 jobs a page unless another number is asked for", async () => {
    const world = jobWorld();
    for (let index = 0; index < 21; index += 1) await world.record({ calls: [planCall()] });
    expect((await listJobs(OWNER, {}, world.reporting)).jobs).toHaveLength(20);
    expect((await listJobs(OWNER, { limit: 100 }, world.reporting)).jobs).toHaveLength(21);
  });

  test.each(["x", "../owner-2/", "", "zzzz"])("after %j shows no other owner's jobs", async (after) => {
    const world = jobWorld();
    await world.record({ calls: [planCall()] }, OTHER);
    expect((await listJobs(OWNER, { after }, world.reporting)).jobs).toEqual([]);
  });
});

test.each(["", "{", "null", "{}", '{"version":2}', "\u0000"])(
  "a record that reads %j is a defect, told to who asks for that job, and is not in the list",
  async (text) => {
    const { store, jobId, report, reporting } = await worldWithJob();
    await store.put({ key: `jobs/${OWNER}/${jobId}.json`, bytes: Buffer.from(text), mediaType: "application/json" });
    await expect(report()).rejects.toFail("DEFECT");
    expect(await listJobs(OWNER, {}, reporting)).toEqual({ jobs: [] });
  },
);
