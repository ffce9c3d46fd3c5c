import { beforeAll, describe, expect, test } from "vitest";
import type { Cloud } from "./kit/cloud.ts";
import type { DeployedFunction } from "./kit/deployed-function.ts";
import { type Project, projectMaker } from "./kit/project.ts";
import type { Queue } from "./kit/queues.ts";
import { behindRoute, countIn, expectAllAllowed, feedFrom, jsonOf, postJob, redriveOf, send } from "./kit/service.ts";
import { withoutVariables } from "./kit/template.ts";

/** Jobs that nobody waits for: through the queue of the template to the function that it feeds. */

const PATIENCE = { timeout: 30_000, interval: 50 } as const;
const ASYNC = { "content-type": "application/json", prefer: "respond-async" } as const;

const maker = projectMaker();
let project: Project;
let cloud: Cloud;

beforeAll(async () => {
  project = maker.synthesise();
  cloud = await project.deploy();
});

/** By the variable that tells the function behind the routes where to put them. */
function jobsQueueOf(of: Cloud): Queue {
  const id = behindRoute(of, "POST", "/v1/jobs").queueIn("JOBS_QUEUE_URL");
  const queue = of.queues.find((each) => each.id === id);
  if (queue === undefined) throw new Error("the function behind the routes is told of no queue of jobs");
  return queue;
}

/** What the queue feeds, and its logical id. */
function workerOf(of: Cloud): readonly [string, DeployedFunction] {
  const { lambda } = feedFrom(of, jobsQueueOf(of));
  const found = [...of.functions].find(([, each]) => each.lambda === lambda);
  if (found === undefined) throw new Error("the queue of jobs feeds nothing");
  return found;
}

const statusOf = async (of: Cloud, path: string) => jsonOf(await send(of, { path })).status;

/** Posts a job in the background. Path of its report. */
async function postAsync(to: Cloud): Promise<string> {
  const answer = await postJob(to, { headers: ASYNC });
  const path = answer.headers.get("location") ?? "";
  expect({ status: answer.status, path, report: jsonOf(answer).status }).toEqual({
    status: 202,
    path: expect.stringMatching(/^\/v1\/jobs\/[0-9a-z]{26}$/),
    report: "queued",
  });
  return path;
}

describe("a job in the background", () => {
  test("is accepted at once, waits as queued, and is done by the function that the queue feeds", async () => {
    const path = await postAsync(cloud);
    expect(await statusOf(cloud, path)).toBe("queued");
    const feed = cloud.startFeed(feedFrom(cloud, jobsQueueOf(cloud)));
    await expect.poll(() => statusOf(cloud, path), PATIENCE).toBe("succeeded");
    const { artifacts } = jsonOf(await send(cloud, { path }));
    const download = await fetch(artifacts[0].url);
    expect({ status: download.status, size: (await download.arrayBuffer()).byteLength }).toEqual({
      status: 200,
      size: artifacts[0].size_bytes,
    });
    await expect.poll(() => countIn(cloud, jobsQueueOf(cloud)), PATIENCE).toBe(0);
    await feed.close();
    expect(feed.deliveries.map(({ messages }) => messages.length)).toEqual([1]);
  });

  test("whose function is killed in the midst of it is neither lost nor told as done", async () => {
    const [, worker] = workerOf(cloud);
    const path = await postAsync(cloud);
    const hold = worker.border.hold(
      ({ action, resource }) => action === "s3:PutObject" && resource.includes("/artifacts/"),
    );
    const feed = cloud.startFeed(feedFrom(cloud, jobsQueueOf(cloud)));
    await hold.reached;
    expect(await worker.lambda.kill()).toBe(1);
    hold.release();
    await feed.close();
    expect(feed.deliveries.map(({ messages, failed }) => [messages.length, failed.size])).toEqual([[1, 1]]);
    expect(await countIn(cloud, jobsQueueOf(cloud))).toBe(1);
    expect(await statusOf(cloud, path)).toBe("running");
  });

  test("that no attempt can end is given up by the function behind the dead letters, and says so", async () => {
    const [workerId] = workerOf(cloud);
    const broken = await project.deploy({
      assembly: withoutVariables(project.assembly, workerId, ["BUCKET_NAME"]),
      times: { visibility: 0.0004 },
    });
    const jobs = jobsQueueOf(broken);
    const { deadLetters, maxReceives } = redriveOf(broken, jobs);
    const path = await postAsync(broken);
    const feed = broken.startFeed(feedFrom(broken, jobs));
    broken.startFeed(feedFrom(broken, deadLetters));
    await expect.poll(() => statusOf(broken, path), PATIENCE).toBe("failed");
    expect(jsonOf(await send(broken, { path }))).toMatchObject({ error: { code: "JOB_INTERRUPTED" } });
    expect(feed.deliveries.filter(({ failed }) => failed.size > 0).length).toBe(maxReceives);
    for (const queue of [jobs, deadLetters]) await expect.poll(() => countIn(broken, queue), PATIENCE).toBe(0);
    expectAllAllowed(broken);
  });
});

test("a job that is posted again under its key is the same job, and is run once", async () => {
  const headers = { "content-type": "application/json", "idempotency-key": "the-first" };
  const [first, second] = [await postJob(cloud, { headers }), await postJob(cloud, { headers })];
  expect([first.status, second.status]).toEqual([200, 200]);
  const { artifacts: _, ...lasting } = jsonOf(first);
  expect(jsonOf(second)).toMatchObject(lasting);
  expect((await cloud.keys("artifacts/")).filter((key) => key.includes(jsonOf(first).job_id))).toHaveLength(1);
});

test("no function asks for what its role does not allow", () => {
  expectAllAllowed(cloud);
});
