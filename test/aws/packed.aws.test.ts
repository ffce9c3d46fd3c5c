import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CreateBucketCommand } from "@aws-sdk/client-s3";
import { buildApp } from "fauxqs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LambdaProcess, placeAsset, startLambda } from "../cdk/kit/lambda-process.ts";
import { ROOT } from "../cdk/kit/run-app.ts";
import { createTestS3Client, TEST_BUCKET, TEST_CREDENTIALS } from "../kit/s3-client.ts";
import { type PackedApp, packApp, type Ran } from "./kit/packed-app.ts";

/** An app of somebody else that has skillbroker as a package, with a skill of its own. */

const APP = `
import { App, CfnOutput, RemovalPolicy, Stack } from "aws-cdk-lib";
import { AccountRootPrincipal, Role } from "aws-cdk-lib/aws-iam";
import { BUILTIN_SKILLS, SkillBroker, type SkillBrokerProps, SkillBrokerStack } from "skillbroker/cdk";

const props: SkillBrokerProps = {
  tools: ["local", "greeting_card@1", "status_update@1"],
  skills: [BUILTIN_SKILLS, "my-skills"],
  mcpServers: { docs: { url: "https://mcp.docs.test/" } },
  limits: { max_calls: 4 },
  removalPolicy: RemovalPolicy.DESTROY,
};

const app = new App();
const stack = new Stack(app, "Mine");
const skills = new SkillBroker(stack, "Skills", props);
const caller = new Role(stack, "Caller", { assumedBy: new AccountRootPrincipal() });
skills.grantInvoke(caller);
new CfnOutput(stack, "Url", { value: skills.url });
new CfnOutput(stack, "Waiting", { value: skills.jobsQueue.queueArn });
new SkillBrokerStack(app, "Ready", { service: { tools: ["local"], auth: "iam" } });
app.synth();
`;

/** What docs/cdk.md shows, for a reader to copy. */
const EXAMPLE = /^```ts\n(.*?)^```$/ms.exec(readFileSync(join(ROOT, "docs/cdk.md"), "utf8"))?.[1] ?? "no example";

/** The files that it shows with their names. */
const SHOWN = [
  ...readFileSync(join(ROOT, "docs/cdk.md"), "utf8").matchAll(/^```\w+ (?<name>[\w.]+)\n(?<text>.*?)^```$/gms),
].map(({ groups }) => ({ name: groups?.name ?? "", text: groups?.text ?? "" }));

/** Each line that should be refused says so: one that is not would be an error of its own. */
const WRONG = `
import type { SkillBrokerProps } from "skillbroker/cdk";

// @ts-expect-error
export const auth: SkillBrokerProps = { auth: "open" };
// @ts-expect-error
export const limits: SkillBrokerProps = { limits: { max_call: 4 } };
// @ts-expect-error
export const command: SkillBrokerProps = { mcpServers: { files: { command: "npx" } } };
`;

const SKILL_MD = `---
name: greeting-card
description: Write a greeting card as a Markdown file. Use when the user asks for a card to send.
---
# Greeting card

Call \`greeting_card@1\` once, with the name of who is greeted.
`;
const TOOL_JSON = JSON.stringify({
  id: "greeting_card",
  version: "1",
  handler: "markdown_document",
  templates: { document: "templates/card.md" },
  input_schema: {
    type: "object",
    additionalProperties: false,
    properties: { title: { type: "string", minLength: 1, maxLength: 80 } },
    required: ["title"],
  },
});
const CARD = "# Dear {{title}}\n\nAll the best!\n";
const SKILL = "my-skills/acme/greeting-card";

const TSCONFIG = JSON.stringify({
  compilerOptions: {
    strict: true,
    skipLibCheck: false,
    noEmit: true,
    target: "es2024",
    module: "nodenext",
    types: ["node"],
  },
  files: ["app.ts", "example.ts", "wrong.ts"],
});

let app: PackedApp;
let pinned: Ran;
let synth: Ran;

const skillbroker = (...words: readonly string[]) =>
  app.node([join("node_modules/skillbroker", app.manifest.bin.skillbroker ?? "no command"), ...words]);
const synthesise = (output: string) => app.node(["app.ts"], { CDK_OUTDIR: output, CDK_VALIDATION: "false" });
const templateIn = (output: string) =>
  JSON.parse(readFileSync(join(app.directory, output, "Mine.template.json"), "utf8"));

beforeAll(() => {
  app = packApp();
  app.write("package.json", JSON.stringify({ name: "mine", private: true, type: "module" }));
  app.write("cdk.json", JSON.stringify({ app: "node app.ts" }));
  app.write("tsconfig.json", TSCONFIG);
  app.write("app.ts", APP);
  app.write("example.ts", EXAMPLE);
  app.write("wrong.ts", WRONG);
  app.write(`${SKILL}/SKILL.md`, SKILL_MD);
  app.write(`${SKILL}/tool.json`, TOOL_JSON);
  app.write(`${SKILL}/templates/card.md`, CARD);
  pinned = skillbroker("pin", "my-skills");
  synth = synthesise("cdk.out");
}, 240_000);

afterAll(() => rmSync(dirname(app.directory), { recursive: true, force: true }));

test("holds what was built, the skills and the command, and no sources, tests or bundler", () => {
  const paths = readdirSync(app.packageDirectory, { recursive: true, encoding: "utf8" });
  const has = (path: string) => paths.includes(path);
  expect(["dist/cdk/index.js", "dist/cdk/index.d.ts", "dist/local/main.js"].filter((path) => !has(path))).toEqual([]);
  expect(["skills/pins.json", "LICENSE", "README.md"].filter((path) => !has(path))).toEqual([]);
  const sources = paths.filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts"));
  expect(sources).toEqual([]);
  expect(paths.filter((path) => /^(?:test|bench|cdk|functions)(?:\/|$)|esbuild|build-functions/.test(path))).toEqual(
    [],
  );
});

test("brings no Node of its own and nothing for building, and says which Node it wants", () => {
  const manifest = JSON.parse(readFileSync(join(app.packageDirectory, "package.json"), "utf8"));
  const ofCheckout = ["private", "scripts", "devDependencies", "optionalDependencies"];
  expect(ofCheckout.filter((name) => name in manifest)).toEqual([]);
  expect(manifest).toMatchObject({
    name: "skillbroker",
    engines: { node: ">=24" },
    peerDependencies: { "aws-cdk-lib": "^2.276.0", constructs: "^10.8.1" },
  });
  expect(Object.keys(manifest.dependencies).filter((name) => /^node-|esbuild|typescript/.test(name))).toEqual([]);
});

test("its command pins a repository of the app's own", () => {
  expect(pinned).toMatchObject({ code: 0, stderr: "" });
  expect(
    Object.keys(JSON.parse(readFileSync(join(app.directory, "my-skills/pins.json"), "utf8")).repositories),
  ).toEqual(["acme"]);
});

test("its types are sound, refuse what is wrong, and are checked strictly with those of every library", () => {
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  expect(app.node([compiler, "-p", "."])).toEqual({ code: 0, stdout: "", stderr: "" });
}, 240_000);

test("can be required by an app that is written in CommonJS", () => {
  const { code, stdout } = app.node(["-p", 'Object.keys(require("skillbroker/cdk")).sort().join()']);
  expect({ code, stdout }).toEqual({ code: 0, stdout: "BUILTIN_SKILLS,SkillBroker,SkillBrokerStack\n" });
});

describe("the app's template", () => {
  test("is made with no word on standard error, and no network is needed for it", () => {
    expect(synth).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(existsSync(join(app.directory, "cdk.out/Ready.template.json"))).toBe(true);
  });

  test("is made by the example of the documentation too", () => {
    const env = { CDK_OUTDIR: "example.out", CDK_VALIDATION: "false" };
    expect(app.node(["example.ts"], env)).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(existsSync(join(app.directory, "example.out/Documents.template.json"))).toBe(true);
  });

  test("is made by the whole app of the documentation, as it stands there", () => {
    expect(SHOWN.map(({ name }) => name)).toEqual(["package.json", "cdk.json", "tsconfig.json", "app.ts", "domain.ts"]);
    for (const { name, text } of SHOWN) app.write(`shown/${name}`, text);
    const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
    expect(app.node([compiler, "-p", "shown"])).toEqual({ code: 0, stdout: "", stderr: "" });
    for (const [file, stack] of [
      ["app.ts", "Skills"],
      ["domain.ts", "Documents"],
    ]) {
      const env = { CDK_OUTDIR: "shown.out", CDK_VALIDATION: "false" };
      expect(app.node([`shown/${file}`], env)).toEqual({ code: 0, stdout: "", stderr: "" });
      expect(existsSync(join(app.directory, `shown.out/${stack}.template.json`))).toBe(true);
    }
    expect(JSON.parse(SHOWN[1]?.text ?? "")).toMatchObject({ app: "node app.ts", context: { skills: "my-skills" } });
  });

  test("has what was asked for", () => {
    const { Resources, Outputs } = templateIn("cdk.out");
    const resources = Object.entries<{ Type: string; Properties: { Environment: { Variables: object } } }>(Resources);
    const functions = resources.filter(([, { Type }]) => Type === "AWS::Lambda::Function").map(([id]) => id);
    const own = functions.filter((id) => id.startsWith("Skills"));
    expect(own.map((id) => id.replace(/Function[0-9A-F]{8}$/, "")).sort()).toEqual([
      "SkillsHttp",
      "SkillsRefreshPathNotify",
      "SkillsRefreshPathReconcile",
      "SkillsRefreshPathRefresh",
      "SkillsWorkerPathDeadJobs",
      "SkillsWorkerPathWorker",
    ]);
    const [, http] = resources.find(([id]) => id.startsWith("SkillsHttpFunction")) ?? [];
    expect(http?.Properties.Environment.Variables).toMatchObject({
      LIMITS: '{"max_calls":4}',
    });
    expect(Object.keys(Outputs)).toEqual(["Url", "Waiting"]);
    expect(JSON.stringify(Resources)).toContain("execute-api:Invoke");
  });
});

describe("the code that the package deploys", () => {
  const s3 = buildApp({ logger: false });
  let lambda: LambdaProcess;

  beforeAll(async () => {
    const endpoint = await s3.listen({ host: "127.0.0.1", port: 0 });
    await createTestS3Client(endpoint).send(new CreateBucketCommand({ Bucket: TEST_BUCKET }));
    const resources = Object.entries<{ Properties: Properties }>(templateIn("cdk.out").Resources);
    const [, http] = resources.find(([id]) => id.startsWith("SkillsHttpFunction")) ?? [];
    const { Code, Environment } = http?.Properties ?? NOTHING;
    const alone = join(dirname(app.directory), "alone");
    placeAsset(join(app.directory, "cdk.out", `asset.${Code.S3Key.replace(".zip", "")}`), alone);
    const queue = "https://sqs.eu-central-1.amazonaws.com/123456789012/queue";
    const told = Object.entries(Environment.Variables);
    lambda = await startLambda(alone, {
      ...Object.fromEntries(told.map(([name, value]) => [name, typeof value === "string" ? value : queue])),
      BUCKET_NAME: TEST_BUCKET,
      AWS_REGION: "eu-central-1",
      AWS_ACCESS_KEY_ID: TEST_CREDENTIALS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: TEST_CREDENTIALS.secretAccessKey,
      AWS_ENDPOINT_URL_S3: endpoint,
    });
  });
  afterAll(async () => {
    await lambda?.close();
    await s3.close();
  });

  type Properties = { readonly Code: { S3Key: string }; readonly Environment: { Variables: Record<string, unknown> } };
  const NOTHING: Properties = { Code: { S3Key: "" }, Environment: { Variables: {} } };

  test("has loaded the skills of both directories", async () => {
    const { body } = await lambda.request({ method: "GET", path: "/v1/health" });
    expect(body.repository).toMatchObject([
      { name: "acme", status: "loaded", skills: 1 },
      { name: "builtin", status: "loaded" },
    ]);
  });

  test("runs the app's own skill", async () => {
    const call = { tool: "greeting_card@1", arguments: { title: "Ada" } };
    const { status, body } = await lambda.request({ method: "POST", path: "/v1/jobs", body: { calls: [call] } });
    expect({ status, job: body.status }).toEqual({ status: 200, job: "succeeded" });
    const file = await fetch(body.artifacts[0].url);
    expect(await file.text()).toBe("# Dear Ada\n\nAll the best!\n");
  });
});

describe("the synth of the app fails, names the file and leaves no template", () => {
  /** As it stands after the change, which is taken back. */
  function refusalAfter(change: () => void, restore: () => void): Ran & { readonly template: boolean } {
    change();
    try {
      const ran = synthesise("refused.out");
      return { ...ran, template: existsSync(join(app.directory, "refused.out/Mine.template.json")) };
    } finally {
      restore();
    }
  }

  test("at one changed byte of a pinned file", () => {
    const path = join(app.directory, SKILL, "templates/card.md");
    const { code, stderr, template } = refusalAfter(
      () => writeFileSync(path, CARD.replace("best", "Best")),
      () => writeFileSync(path, CARD),
    );
    expect({ code, template }).toEqual({ code: 1, template: false });
    expect(stderr).toMatch(
      /Error: Mine\/Skills: .*\n {2}\/skills: my-skills: acme\/greeting-card\/templates\/card\.md was changed/,
    );
  });

  test("at a file that is not pinned", () => {
    const path = join(app.directory, SKILL, "notes.md");
    const { code, stderr, template } = refusalAfter(
      () => writeFileSync(path, "Not reviewed."),
      () => rmSync(path),
    );
    expect({ code, template }).toEqual({ code: 1, template: false });
    expect(stderr).toContain("my-skills: acme/greeting-card/notes.md is not pinned");
  });

  test("at everything that is wrong with its props, in one list", () => {
    const wrong = APP.replace('"status_update@1"]', '"status_updat@1"]').replace(
      "limits:",
      "debounceSeconds: 0, limits:",
    );
    const { code, stderr } = refusalAfter(
      () => app.write("app.ts", wrong),
      () => app.write("app.ts", APP),
    );
    expect(code).toBe(1);
    expect(stderr.match(/^ {2}\/.*$/gm)).toEqual([
      expect.stringMatching(/^ {2}\/debounceSeconds: /),
      expect.stringMatching(/^ {2}\/tools\/2: status_updat@1 /),
    ]);
  });
});
