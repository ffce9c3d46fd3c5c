import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { Hold } from "./kit/border.ts";
import type { Cloud } from "./kit/cloud.ts";
import type { DeployedFunction } from "./kit/deployed-function.ts";
import { moto } from "./kit/emulators.ts";
import { type Project, projectMaker } from "./kit/project.ts";
import { ALICE, BOB, behindRoute, expectAllAllowed, jsonOf, postJob, send } from "./kit/service.ts";
import { variablesOf, withoutVariables } from "./kit/template.ts";

/** Jobs through the gateway into the deployed bundle, each environment a process of its own. */

const maker = projectMaker();
let project: Project;
let cloud: Cloud;
let http: DeployedFunction;

beforeAll(async () => {
  project = maker.synthesise();
  cloud = await project.deploy();
  http = behindRoute(cloud, "POST", "/v1/jobs");
});

/** Never of nobody: a signal to process 0 would reach this one. */
function onlyPid({ lambda }: DeployedFunction): number {
  const [pid, ...others] = lambda.idlePids();
  if (pid === undefined || others.length > 0) throw new Error("one idle environment expected");
  return pid;
}

/** The first write below `prefix` waits; those after it do not. */
function holdWrite(prefix: string, { border }: DeployedFunction = http): Hold {
  let seen = false;
  return border.hold(({ action, resource }) => {
    const isHeld = !seen && action === "s3:PutObject" && resource.includes(`/${prefix}`);
    seen ||= isHeld;
    return isHeld;
  });
}

describe("a job over HTTP", () => {
  test("runs in the deployed bundle, and its artifact is what the link of its report gives", async () => {
    const answer = await postJob(cloud);
    const report = jsonOf(answer);
    expect({ status: answer.status, report }).toMatchObject({
      status: 200,
      report: { status: "succeeded", results: [{ ok: true }], artifacts: [{ name: "Minutes.pdf" }] },
    });
    const [artifact] = report.artifacts;
    const download = await fetch(artifact.url);
    const bytes = Buffer.from(await download.arrayBuffer());
    const digest = createHash("sha256").update(bytes).digest("hex");
    expect({ status: download.status, digest, size: bytes.length }).toEqual({
      status: 200,
      digest: artifact.sha256,
      size: artifact.size_bytes,
    });
    expect(bytes.subarray(0, 5).toString()).toBe("%PDF-");
  });

  test("is reported again, and its artifact found by its own address, as long as it is kept", async () => {
    const posted = jsonOf(await postJob(cloud));
    const path = `/v1/jobs/${posted.job_id}`;
    const again = await send(cloud, { path });
    expect({ status: again.status, report: jsonOf(again) }).toMatchObject({
      status: 200,
      report: { job_id: posted.job_id, artifacts: [{ sha256: posted.artifacts[0].sha256 }] },
    });
    const link = await send(cloud, { path: `${path}/artifacts/${posted.artifacts[0].artifact_id}` });
    const download = await fetch(link.headers.get("location") ?? "no link");
    expect({ link: link.status, download: download.status }).toEqual({ link: 302, download: 200 });
  });

  test("is of its owner alone: anybody else gets 404 for it and an empty list", async () => {
    const { job_id: id, artifacts } = jsonOf(await postJob(cloud));
    const paths = [`/v1/jobs/${id}`, `/v1/jobs/${id}/artifacts/${artifacts[0].artifact_id}`];
    for (const path of paths) {
      const [own, foreign] = [await send(cloud, { path }), await send(cloud, { path, caller: BOB })];
      expect({ path, own: own.status < 400, foreign: foreign.status }).toEqual({ path, own: true, foreign: 404 });
    }
    const removal = { method: "DELETE", path: paths[1] ?? "", caller: BOB };
    expect((await send(cloud, removal)).status).toBe(404);
    expect(jsonOf(await send(cloud, { path: "/v1/jobs", caller: BOB })).jobs).toEqual([]);
    expect(jsonOf(await send(cloud, { path: "/v1/jobs" })).jobs).toContainEqual(
      expect.objectContaining({ job_id: id }),
    );
  });

  test("is refused by the gateway for nobody and for whom no policy lets in, and no function is asked", async () => {
    const [started, calls] = [http.lambda.coldStarts(), http.lambda.lines().length];
    const mayRead = ["arn:aws:execute-api:*:*:*/*/GET/*"];
    for (const caller of [undefined, { ...ALICE, mayCall: mayRead }, { claims: { iss: "https://idp.test" } }]) {
      const answer = await postJob(cloud, { caller });
      expect({ status: answer.status, body: jsonOf(answer) }).toEqual({ status: 403, body: { message: "Forbidden" } });
    }
    expect([http.lambda.coldStarts(), http.lambda.lines().length]).toEqual([started, calls]);
    expect((await send(cloud, { path: "/v1/jobs", caller: { ...ALICE, mayCall: mayRead } })).status).toBe(200);
  });

  test("of a warm function with one artifact makes three requests to S3 at most, and calls nothing else", async () => {
    await postJob(cloud);
    const before = http.border.calls.length;
    const answer = await postJob(cloud);
    const calls = http.border.calls.slice(before).map(({ action }) => action);
    expect(answer.status).toBe(200);
    expect(calls.filter((action) => !action.startsWith("s3:"))).toEqual([]);
    expect(calls).toContain("s3:PutObject");
    expect(calls.length, calls.join(" ")).toBeLessThanOrEqual(3);
  });
});

describe("environments", () => {
  test("one is started for the first request and serves the next in the same process", async () => {
    const fresh = await project.deploy();
    const { lambda } = behindRoute(fresh, "POST", "/v1/jobs");
    expect(lambda.coldStarts()).toBe(0);
    await postJob(fresh);
    const first = onlyPid(behindRoute(fresh, "POST", "/v1/jobs"));
    await postJob(fresh);
    expect({ starts: lambda.coldStarts(), pids: lambda.idlePids() }).toEqual({ starts: 1, pids: [first] });
  });

  test("another is started for a request that comes while the first one is at work", async () => {
    const started = http.lambda.coldStarts();
    const busy = http.lambda.idlePids().length;
    const hold = holdWrite("artifacts/");
    const first = postJob(cloud);
    await hold.reached;
    const others = await Promise.all(Array.from({ length: busy }, () => postJob(cloud)));
    hold.release();
    expect([(await first).status, ...others.map(({ status }) => status)]).toEqual([200, ...others.map(() => 200)]);
    expect(http.lambda.coldStarts()).toBe(started + 1);
  });

  test.each(["artifacts/", "jobs/"])(
    "one that is killed at its write below %s answers nothing, leaves no record, and the next request has a new process",
    async (prefix) => {
      await http.lambda.retire();
      const [started, hold] = [http.lambda.coldStarts(), holdWrite(prefix)];
      const posted = postJob(cloud);
      const { resource } = await hold.reached;
      // A whole job later, the one that is held has had its time to go on.
      expect((await postJob(cloud)).status).toBe(200);
      await http.lambda.retire();
      expect(await http.lambda.kill()).toBe(1);
      const answer = await posted;
      hold.release();
      expect({ status: answer.status, body: jsonOf(answer) }).toEqual({
        status: 500,
        body: { message: "Internal Server Error" },
      });
      const jobId = /[0-9a-z]{26}/.exec(resource.split("/").at(-1) ?? "")?.[0] ?? "no id";
      expect((await cloud.keys("jobs/")).filter((key) => key.includes(jobId))).toEqual([]);
      expect((await send(cloud, { path: `/v1/jobs/${jobId}` })).status).toBe(404);
      expect((await postJob(cloud)).status).toBe(200);
      expect(http.lambda.coldStarts()).toBe(started + 3);
    },
  );

  describe("with a tenth of the time that the template gives", () => {
    let hurried: Cloud;
    let impatient: DeployedFunction;

    beforeAll(async () => {
      hurried = await project.deploy({ times: { functions: 0.1 } });
      impatient = behindRoute(hurried, "POST", "/v1/jobs");
      await postJob(hurried);
    });

    test("one that waits for a store that hangs is answered by us before its timeout, and goes on to serve", async () => {
      const pid = onlyPid(impatient);
      const hold = holdWrite("artifacts/", impatient);
      const posted = postJob(hurried);
      await hold.reached;
      const answer = await posted;
      hold.release();
      expect({ status: answer.status, code: jsonOf(answer).code }).toEqual({ status: 504, code: "REQUEST_TIMEOUT" });
      expect((await postJob(hurried)).status).toBe(200);
      expect(onlyPid(impatient)).toBe(pid);
    });

    test("one that does nothing any more is ended at its timeout, and the next request has a new process", async () => {
      const pid = onlyPid(impatient);
      const [started, hold] = [impatient.lambda.coldStarts(), holdWrite("artifacts/", impatient)];
      const posted = postJob(hurried);
      await hold.reached;
      process.kill(pid, "SIGSTOP");
      const answer = await posted;
      hold.release();
      expect({ status: answer.status, body: jsonOf(answer) }).toEqual({
        status: 500,
        body: { message: "Internal Server Error" },
      });
      const seconds = (impatient.lambda.setup.timeoutMs / 1000).toFixed(2);
      expect(impatient.lambda.failures()).toEqual([
        { errorType: "Sandbox.Timedout", errorMessage: expect.stringContaining(`timed out after ${seconds} seconds`) },
      ]);
      expect(() => process.kill(pid, 0)).toThrow("ESRCH");
      expect((await postJob(hurried)).status).toBe(200);
      expect(impatient.lambda.coldStarts()).toBe(started + 1);
    });
  });
});

describe("a start", () => {
  test("of every function needs nothing but what the template deploys", async () => {
    const fresh = await project.deploy();
    expect(fresh.functions.size).toBeGreaterThanOrEqual(4);
    for (const [id, { lambda }] of fresh.functions) {
      await lambda.invoke({});
      // Whatever it says to such an event, the process that started is there and would take the next.
      expect({ id, ready: lambda.idlePids().length, errors: lambda.lines("stderr") }).toEqual({
        id,
        ready: 1,
        errors: [],
      });
    }
  });

  test("with one changed byte in a pinned file is up, and says that the repository is refused", async () => {
    const file = "skills/builtin/status-update/templates/document.md";
    const tampered = await project.deploy({ change: (code) => flipFirstByte(join(code, file)) });
    const health = await send(tampered, { path: "/v1/health" });
    expect({ status: health.status, health: jsonOf(health) }).toMatchObject({
      status: 200,
      health: { status: "degraded", repository: [{ name: "builtin", status: "refused", skills: 0 }] },
    });
    expect(jsonOf(health).repository[0].reason).toContain("builtin/status-update/templates/document.md");
    expect((await postJob(tampered)).status).toBe(200);
  });

  test("without the variables that name places fails, says which, and the gateway answers 500", async () => {
    const ids = [...cloud.functions.keys()];
    const assembly = ids.reduce((cut, id) => withoutVariables(cut, id, placesOf(id)), project.assembly);
    const poor = await project.deploy({ assembly });
    for (const [id, { lambda }] of poor.functions) {
      const invoked = await lambda.invoke({});
      const said = invoked.ok ? "" : invoked.error.errorMessage;
      expect(placesOf(id).length).toBeGreaterThanOrEqual(1);
      expect({ id, named: placesOf(id).filter((name) => said.includes(`${name}: `)) }).toEqual({
        id,
        named: placesOf(id),
      });
      expect(lambda.idlePids()).toEqual([]);
    }
    expect((await postJob(poor)).status).toBe(500);
  });
});

/** Variables of a function whose values are known only while deploying. */
function placesOf(id: string): readonly string[] {
  const variables = Object.entries(variablesOf(project.assembly, id));
  return variables.flatMap(([name, value]) => (typeof value === "string" ? [] : name));
}

test("no function asks for what its role does not allow", () => {
  expectAllAllowed(cloud);
});

test.skipIf(moto === undefined)("S3 is moto's: an implementation that is not ours", () => {
  expect(cloud.storage).toBe("moto");
});

function flipFirstByte(path: string): void {
  if (!existsSync(path)) return;
  const bytes = readFileSync(path);
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}
