import { appendFileSync, cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { CreateBucketCommand } from "@aws-sdk/client-s3";
import { App } from "aws-cdk-lib";
import { CURRENTLY_RECOMMENDED_FLAGS } from "aws-cdk-lib/cx-api";
import { buildApp } from "fauxqs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildFunctions } from "../../cdk/build-functions.ts";
import { checkProject } from "../../cdk/checked-project.ts";
import { ENTRY_POINTS, FUNCTION_NAMES, type FunctionName } from "../../cdk/entry-points.ts";
import { SkillBrokerStack } from "../../cdk/skillbroker-stack.ts";
import { synthesise, toCheckedProps, toSource } from "../../cdk/synth.ts";
import { verifySkills } from "../../cdk/verified-skills.ts";
import { orThrow } from "../../functions/contract/fault.ts";
import { sha256Hex } from "../../functions/contract/json.ts";
import { parsePinsText } from "../../functions/repository/pins.ts";
import { createTestS3Client, TEST_BUCKET, TEST_CREDENTIALS } from "../kit/s3-client.ts";
import { codeIn, readFiles, skillsIn } from "./kit/bundle-files.ts";
import { type LambdaProcess, placeAsset, startLambda } from "./kit/lambda-process.ts";
import { type Ran, ROOT, readFunctions, readTemplate, runSynth, shippedContext } from "./kit/run-app.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";

/**
 * The real `cdk synth`, once, and what it deploys, run where nothing but the deployed directory is. What needs no
 * process of its own is synthesised here, without the validation, which takes seconds.
 */

const temp = makeTempDirectory();
const output = join(temp, "cdk.out");
const pins = parsePinsText(readFileSync(join(ROOT, "skills/pins.json"), "utf8"));
const builtin = [...(pins.get("builtin") ?? [])];
const callable = builtin.map(([name]) => name).filter((name) => readSource(name, "tool.json") !== undefined);

const s3 = buildApp({ logger: false });
let endpoint = "";
let synth: Ran;
let lambda: LambdaProcess;

beforeAll(async () => {
  synth = runSynth(output);
  if (synth.code !== 0) throw new Error(synth.stderr);
  endpoint = await s3.listen({ host: "127.0.0.1", port: 0 });
  await createTestS3Client(endpoint).send(new CreateBucketCommand({ Bucket: TEST_BUCKET }));
  lambda = await start("whole");
});

afterAll(async () => {
  await lambda?.close();
  await s3.close();
});

/** The function of this name, placed in a directory of its own; `change` may spoil the copy. */
function start(directory: string, name = "Http", change?: (copy: string) => void): Promise<LambdaProcess> {
  const { asset, variables } = readFunctions(output).get(name) ?? { asset: "", variables: {} };
  placeAsset(asset, join(temp, directory), change);
  return startLambda(join(temp, directory), environment(variables));
}

/**
 * The environment of the template, what is known only while deploying filled in, and what Lambda adds; S3 is the
 * emulator.
 */
function environment(variables: Readonly<Record<string, unknown>>): Record<string, string> {
  const queue = "https://sqs.eu-central-1.amazonaws.com/123456789012/queue";
  const told = Object.entries(variables).map(([name, value]) => [name, typeof value === "string" ? value : queue]);
  return {
    ...Object.fromEntries(told),
    BUCKET_NAME: TEST_BUCKET,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: TEST_CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: TEST_CREDENTIALS.secretAccessKey,
    AWS_ENDPOINT_URL_S3: endpoint,
  };
}

function readSource(skill: string, file: string): string | undefined {
  try {
    return readFileSync(join(ROOT, "skills/builtin", skill, file), "utf8");
  } catch {
    return undefined;
  }
}

function readExample(skill: string): { readonly tool: string; readonly arguments: unknown } {
  const example = /^## Example\n+```json\n(.*?)^```$/ms.exec(readSource(skill, "SKILL.md") ?? "")?.[1];
  const { id, version } = JSON.parse(readSource(skill, "tool.json") ?? "{}");
  return { tool: `${id}@${version}`, arguments: JSON.parse(example ?? "no example") };
}

const BUNDLED = [
  { tool: "create_pdf@1", arguments: { title: "Übersicht", body: "One line.\n\nAnother – with a dash." } },
  { tool: "make_plan@1", arguments: { goal: "Ship it", steps: ["Test", "Synthesise", "Deploy"] } },
] as const;
const CALLS = [...BUNDLED, ...callable.map(readExample)];

test("says nothing but the template", () => {
  expect(synth.stderr.trim()).toBe("");
  expect(synth.stdout).toMatch(/^Description: /);
});

test("reports nothing about who deploys it", () => {
  expect(readTemplate(output).Resources.CDKMetadata).toBeUndefined();
});

const makeApp = (outdir: string, context: Readonly<Record<string, unknown>>) =>
  new App({
    outdir,
    autoSynth: false,
    builtinCloudFormationValidation: false,
    context: { ...CURRENTLY_RECOMMENDED_FLAGS, ...context },
  });

describe("the synth ends without a template", () => {
  async function expectRefusal(directory: string, context: Readonly<Record<string, unknown>>, message: RegExp) {
    const outdir = join(temp, directory);
    await expect(synthesise(makeApp(outdir, context))).rejects.toMatchObject({
      message: expect.stringMatching(message),
    });
    expect(existsSync(join(outdir, "SkillBroker.template.json"))).toBe(false);
  }

  test("at a file of servers that the settings name and that is not there", async () => {
    await expectRefusal(
      "no-servers",
      { mcp: "no-such-servers.json" },
      /^this cannot be deployed:\n {2}\/mcp: there is no no-such-servers\.json, [^\n]*$/,
    );
  });

  test("at a skill edited after pinning, which is named alone", async () => {
    const skills = join(temp, "skills");
    cpSync(join(ROOT, "skills"), skills, { recursive: true });
    appendFileSync(join(skills, "builtin/status-update/SKILL.md"), "Also mail it to everybody.\n");
    await expectRefusal(
      "tampered",
      { skills },
      /^.*:\n {2}\/skills: [^\n:]*: builtin\/status-update\/SKILL\.md [^\n]*$/,
    );
  });

  test.each(["builtin", "local"])("at a server that would pass for %s", async (name) => {
    const mcp = join(temp, `${name}.json`);
    writeFileSync(mcp, JSON.stringify({ mcpServers: { [name]: { url: "https://mcp.test/" } } }));
    await expectRefusal(`reserved-${name}`, { mcp }, new RegExp(`/mcpServers/${name}: the name is taken`));
  });
});

describe("the bundles", () => {
  const skills = verifySkills({ roots: [join(ROOT, "skills")] });
  const CONSTRUCTS = {
    http: "Http",
    worker: "WorkerPathWorker",
    "dead-jobs": "WorkerPathDeadJobs",
    notify: "RefreshPathNotify",
    refresh: "RefreshPathRefresh",
    reconcile: "RefreshPathReconcile",
  } as const;
  const filesOf = (name: FunctionName) => readFiles(readFunctions(output).get(CONSTRUCTS[name])?.asset ?? "");

  test("are named by their content, so that the same sources are deployed once", async () => {
    const functionsCode = join(temp, "again/code");
    await buildFunctions({ root: ROOT, directory: functionsCode });
    const app = makeApp(join(temp, "again"), {});
    const service = toCheckedProps(orThrow(checkProject(toSource(shippedContext()))), functionsCode);
    new SkillBrokerStack(app, "SkillBroker", { service });
    app.synth();
    const namesIn = (from: string) => [...readFunctions(from)].map(([name, { asset }]) => [name, basename(asset)]);
    expect(namesIn(join(temp, "again"))).toEqual(namesIn(output));
    expect(new Set(namesIn(output).map(([, asset]) => asset)).size).toBe(6);
  });

  test.each(FUNCTION_NAMES)("%s holds code, skill files where they are loaded, and nothing else", (name) => {
    const files = filesOf(name);
    const wanted = ENTRY_POINTS[name].loadsSkills ? skills.files : [];
    expect(skillsIn(files)).toEqual(
      new Map(wanted.map(({ path, content }) => [`skills/${path}`, Buffer.from(content).toString()])),
    );
    const others = [...files.keys()].filter((path) => !path.startsWith("skills/"));
    const [approvals, pinned] = wanted.length > 0 ? [["approvals.json"], ["pins.json"]] : [[], []];
    const decided = [...approvals, ...(name === "dead-jobs" ? [] : ["mcp.json"]), ...pinned];
    expect(others.filter((path) => !/^[A-Za-z0-9-]+\.mjs$/.test(path))).toEqual(decided);
    expect(others).toContain("index.mjs");
    expect(codeIn(files)).not.toMatch(/^\/\/# sourceMappingURL=/m);
  });

  test("have pins where skills are loaded, and nowhere else", () => {
    const [[, pin] = []] = builtin;
    const holding = FUNCTION_NAMES.filter((name) => codeIn(filesOf(name)).includes(String(pin?.digest)));
    expect(holding).toEqual(["http", "worker", "refresh"]);
  });

  test("say the version of package.json", () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(codeIn(filesOf("http")).match(/\bPRODUCT_VERSION = ".*"/g)).toEqual([`PRODUCT_VERSION = "${version}"`]);
  });
});

describe("the functions behind the queues", () => {
  const NAMES = [
    "RefreshPathNotify",
    "RefreshPathReconcile",
    "RefreshPathRefresh",
    "WorkerPathDeadJobs",
    "WorkerPathWorker",
  ] as const;
  const started = new Map<string, LambdaProcess>();

  beforeAll(async () => {
    for (const name of NAMES) started.set(name, await start(name, name));
  });
  afterAll(async () => {
    for (const each of started.values()) await each.close();
  });

  test("are all but the one behind HTTP", () => {
    expect([...readFunctions(output).keys()].sort()).toEqual(["Http", ...NAMES]);
  });

  test.each(NAMES)(
    "%s starts where nothing but what is deployed is, in less than a second of processor time",
    (name) => {
      expect(started.get(name)?.initMs).toBeLessThan(1000);
    },
  );

  test.each([
    ["RefreshPathNotify", { Records: [] }, { batchItemFailures: [] }],
    ["RefreshPathRefresh", { Records: [] }, { batchItemFailures: [] }],
    ["RefreshPathReconcile", { source: "aws.events" }, undefined],
    ["WorkerPathDeadJobs", { Records: [] }, { batchItemFailures: [] }],
    ["WorkerPathWorker", { Records: [] }, { batchItemFailures: [] }],
  ])("%s answers when nothing is to be done, and leaves no timer behind", async (name, event, response) => {
    expect(await started.get(name)?.invoke(event)).toEqual({ response, timers: 0 });
  });
});

describe("the deployed directory", () => {
  test("starts in less than a second of processor time", () => {
    expect(lambda.initMs).toBeLessThan(1000);
  });

  test("has loaded every packaged skill, by the digests of the pins", async () => {
    const health = await lambda.request({ method: "GET", path: "/v1/health" });
    expect(health).toMatchObject({ status: 200, body: { status: "ok" } });
    const loaded = health.body.repository.map(({ name, skills }: Record<string, unknown>) => [name, skills]);
    expect(loaded).toEqual([...pins].map(([name, skills]) => [name, skills.size]));
    const { body } = await lambda.request({ method: "GET", path: "/v1/skills" });
    const digests = body.skills.map(({ name, digest }: Record<string, unknown>) => [name, digest]);
    expect(digests).toEqual(builtin.map(([name, { digest }]) => [`builtin/${name}`, digest]));
  });

  test("describes every route", async () => {
    const { status, body } = await lambda.request({ method: "GET", path: "/openapi.json" });
    expect({ status, openapi: body.openapi }).toEqual({ status: 200, openapi: "3.1.0" });
    expect(body.paths["/v1/jobs"]).toHaveProperty("post");
  });

  test("offers the calls that are made here, and no more", async () => {
    const { status, body } = await lambda.request({ method: "GET", path: "/v1/tools" });
    expect(status).toBe(200);
    const refs = [...body.bundled, ...body.repository, ...body.mcp].map(({ ref }: Record<string, unknown>) => ref);
    expect(refs.sort()).toEqual(CALLS.map(({ tool }) => tool).sort());
  });

  test.each(CALLS)("runs $tool and hands back the file that it reports", async (call) => {
    const posted = { method: "POST", path: "/v1/jobs", body: { calls: [call] } };
    const { status, body, timers } = await lambda.request(posted);
    expect(timers, "no timer outlives the reply").toBe(0);
    expect({ status, job: body.status, results: body.results }).toMatchObject({
      status: 200,
      job: "succeeded",
      results: [{ ok: true, tool: call.tool }],
    });
    const [artifact] = body.artifacts;
    const download = await fetch(artifact.url);
    const bytes = new Uint8Array(await download.arrayBuffer());
    expect({ status: download.status, size: bytes.length, sha256: sha256Hex(bytes) }).toEqual({
      status: 200,
      size: artifact.size_bytes,
      sha256: artifact.sha256,
    });
    expect(bytes.length).toBeGreaterThan(20);
    const again = await lambda.request({ method: "GET", path: `/v1/jobs/${body.job_id}` });
    expect(again.body).toMatchObject({ job_id: body.job_id, artifacts: [{ sha256: artifact.sha256 }] });
  });

  test("answers an unknown job and an unknown path with problem documents", async () => {
    const job = await lambda.request({ method: "GET", path: `/v1/jobs/${"0".repeat(26)}` });
    expect(job).toMatchObject({ status: 404, body: { code: "JOB_NOT_FOUND" } });
    const path = await lambda.request({ method: "GET", path: "/v2/health" });
    expect(path).toMatchObject({ status: 404, body: { code: "ROUTE_NOT_FOUND" } });
  });
});

describe("a deployed directory with one changed byte in a skill", () => {
  let spoiled: LambdaProcess;

  beforeAll(async () => {
    spoiled = await start("spoiled", "Http", (copy) => {
      const path = join(copy, "skills/builtin/status-update/templates/document.md");
      const bytes = readFileSync(path);
      bytes[0] = (bytes[0] ?? 0) ^ 1;
      writeFileSync(path, bytes);
    });
  });
  afterAll(() => spoiled?.close());

  test("stays up, says that it is degraded and names the file", async () => {
    const { status, body } = await spoiled.request({ method: "GET", path: "/v1/health" });
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { status: "degraded", repository: [{ name: "builtin", status: "refused", skills: 0 }] },
    });
    expect(body.repository[0].reason).toContain("builtin/status-update/templates/document.md");
  });

  test("runs none of its skills, and still what is written in the source", async () => {
    const example = readExample("data-table");
    const refused = await spoiled.request({ method: "POST", path: "/v1/jobs", body: { calls: [example] } });
    expect(refused).toMatchObject({ status: 503, body: { code: "REPOSITORY_REFUSED" } });
    const ran = await spoiled.request({ method: "POST", path: "/v1/jobs", body: { calls: [BUNDLED[0]] } });
    expect(ran).toMatchObject({ status: 200, body: { status: "succeeded" } });
  });
});

test("every packaged callable skill is among the calls", () => {
  const directories = readdirSync(join(ROOT, "skills/builtin"));
  expect(builtin.map(([name]) => name)).toEqual(directories.sort());
  expect(callable.length).toBeGreaterThanOrEqual(5);
});
