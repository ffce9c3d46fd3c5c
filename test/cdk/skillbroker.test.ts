import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { App, RemovalPolicy, Stack, Stage } from "aws-cdk-lib";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { ApiMapping, DomainName } from "aws-cdk-lib/aws-apigatewayv2";
import { Certificate } from "aws-cdk-lib/aws-certificatemanager";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { UserPool } from "aws-cdk-lib/aws-cognito";
import { AccountPrincipal, type IGrantable, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Topic } from "aws-cdk-lib/aws-sns";
import { describe, expect, test } from "vitest";
import { BUILTIN_SKILLS } from "../../cdk/package-places.ts";
import { SkillBroker } from "../../cdk/skillbroker.ts";
import type { SkillBrokerProps } from "../../cdk/skillbroker-props.ts";
import { ROUTES } from "../../functions/contract/api.ts";
import { pinsOf } from "../../functions/repository/pin.ts";
import { formatPins } from "../../functions/repository/pins.ts";
import { readTree } from "../../functions/repository/tree.ts";
import { readFiles } from "./kit/bundle-files.ts";
import { type Properties, placeholderCode, resourcesOf, toWords } from "./kit/stack-template.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";

/** The construct as an app of somebody else uses it, with placeholders for the code of the functions. */

const temp = makeTempDirectory();
const functionsCode = placeholderCode(join(temp, "code"));

const CERTIFICATE = "arn:aws:acm:eu-central-1:123456789012:certificate/0a1b2c3d-1111-4222-8333-444455556666";

const makeStack = () => new Stack(new App({ builtinCloudFormationValidation: false }), "Acme");
const make = (props: SkillBrokerProps = {}, stack = makeStack(), id = "Skills") =>
  new SkillBroker(stack, id, { functionsCode, ...props });
const templateOf = (broker: SkillBroker) => Template.fromStack(Stack.of(broker));
const environmentOf = (broker: SkillBroker, name = "SkillsHttp") =>
  resourcesOf(templateOf(broker), "AWS::Lambda::Function").get(`${name}Function`).Environment.Variables;

/** What is wrong with the props, one line each. */
function problemsOf(props: unknown): readonly string[] {
  try {
    make(Object(props));
  } catch (error) {
    const [first, ...lines] = error instanceof Error ? error.message.split("\n") : [];
    expect(first).toBe("Acme/Skills: this cannot be deployed:");
    return lines.map((line) => line.trim());
  }
  throw new Error("the props were accepted");
}
const pathsOf = (props: unknown) => problemsOf(props).map((line) => line.split(": ")[0]);

/** A directory of one repository of this name with one skill, pinned. */
function addRepository(name: string): string {
  const directory = join(temp, name);
  const skill = join(directory, name, "status-update");
  mkdirSync(join(directory, name), { recursive: true });
  cpSync(join(BUILTIN_SKILLS, "builtin/status-update"), skill, { recursive: true });
  const tool = readFileSync(join(skill, "tool.json"), "utf8");
  writeFileSync(join(skill, "tool.json"), tool.replace('"status_update"', JSON.stringify(`${name}_update`)));
  writeFileSync(join(directory, "pins.json"), formatPins(pinsOf(readTree(directory))));
  return directory;
}

/** The files that are deployed for a function. */
function filesOf(broker: SkillBroker, name: string) {
  return readFiles(join(Stage.of(broker)?.outdir ?? "", "bundles", broker.node.addr, name));
}

test("without props it approves nothing, asks for IAM and has the skills of the package", () => {
  const broker = make();
  const routes = [...resourcesOf(templateOf(broker), "AWS::ApiGatewayV2::Route").values()];
  expect(new Set(routes.map(({ AuthorizationType }) => AuthorizationType))).toEqual(new Set(["AWS_IAM"]));
  expect(filesOf(broker, "http").get("approvals.json")).toBe("[]");
  expect(filesOf(broker, "http").get("pins.json")).toBe(readFileSync(join(BUILTIN_SKILLS, "pins.json"), "utf8"));
});

test("what is asked for is what is deployed", () => {
  const stack = makeStack();
  const broker = make(
    {
      tools: ["local", "mine_update@1", "github/search@3f9a0c1b2d4e"],
      skills: [BUILTIN_SKILLS, addRepository("mine")],
      mcpServers: { github: { url: "https://mcp.github.test/", headers: { Authorization: "Bearer ${ssm:/mcp/t}" } } },
      limits: { max_calls: 3 },
      asyncJobSeconds: 600,
      asyncJobsAtOnce: 4,
      httpConcurrency: 20,
      debounceSeconds: 2,
      logDays: 90,
      removalPolicy: RemovalPolicy.DESTROY,
      tags: { team: "docs" },
    },
    stack,
  );
  const template = Template.fromStack(stack);
  expect(environmentOf(broker)).toMatchObject({
    LIMITS: '{"max_calls":3}',
    ASYNC_JOB_SECONDS: "600",
  });
  const approvals = '["local","mine_update@1","github/search@3f9a0c1b2d4e"]';
  for (const name of ["http", "worker", "refresh"]) expect(filesOf(broker, name).get("approvals.json")).toBe(approvals);
  const functions = resourcesOf(template, "AWS::Lambda::Function");
  expect(functions.get("SkillsHttpFunction")).toMatchObject({
    ReservedConcurrentExecutions: 20,
    Tags: [{ Key: "team", Value: "docs" }],
  });
  expect(functions.get("SkillsWorkerPathWorkerFunction")).toMatchObject({ Timeout: 660 });
  expect(JSON.stringify(functions.get("SkillsWorkerPathWorkerFunction"))).not.toContain("ReservedConcurrent");
  const feeds = [...resourcesOf(template, "AWS::Lambda::EventSourceMapping").values()];
  const fed = feeds.find(({ EventSourceArn }) => toWords(EventSourceArn) === "SkillsJobs.Arn");
  expect(fed).toMatchObject({ BatchSize: 1, ScalingConfig: { MaximumConcurrency: 4 } });
  expect(resourcesOf(template, "AWS::SQS::Queue").get("SkillsJobs")).toMatchObject({ VisibilityTimeout: 6 * 660 });
  expect(resourcesOf(template, "AWS::Events::Rule").size).toBe(1);
  expect([...filesOf(broker, "worker").keys()]).toEqual(
    expect.arrayContaining(["skills/builtin/status-update/SKILL.md", "skills/mine/status-update/SKILL.md"]),
  );
  expect(JSON.parse(filesOf(broker, "notify").get("mcp.json") ?? "").mcpServers).toHaveProperty("github");
});

test("two in one stack share nothing", () => {
  const stack = makeStack();
  const docs = make({ skills: [addRepository("docs")], tools: ["docs_update@1"] }, stack, "Docs");
  const ops = make({ skills: [addRepository("ops")], auth: "none" }, stack, "Ops");
  const template = Template.fromStack(stack);
  for (const type of ["AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::ApiGatewayV2::Api", "AWS::Lambda::Function"]) {
    const names = [...resourcesOf(template, type).keys()];
    expect(names.filter((name) => name.startsWith("Docs")).length, type).toBe(names.length / 2);
  }
  expect([...filesOf(docs, "http").keys()].filter((path) => path.startsWith("skills/ops"))).toEqual([]);
  expect([...filesOf(ops, "http").keys()].filter((path) => path.startsWith("skills/docs"))).toEqual([]);
});

test("its members are what the functions use", () => {
  const stack = makeStack();
  const broker = make({}, stack);
  const { BUCKET_NAME, JOBS_QUEUE_URL, NOTIFICATIONS_QUEUE_URL } = environmentOf(broker);
  expect(stack.resolve(broker.bucket.bucketName)).toEqual(BUCKET_NAME);
  expect(stack.resolve(broker.jobsQueue.queueUrl)).toEqual(JOBS_QUEUE_URL);
  expect(stack.resolve(broker.notificationsQueue.queueUrl)).toEqual(NOTIFICATIONS_QUEUE_URL);
  expect(environmentOf(broker, "SkillsRefreshPathNotify").REFRESH_QUEUE_URL).toEqual(
    stack.resolve(broker.refreshQueue.queueUrl),
  );
  const dead = [broker.jobsDeadLetterQueue, broker.notificationsDeadLetterQueue, broker.refreshDeadLetterQueue];
  const queues = [...resourcesOf(templateOf(broker), "AWS::SQS::Queue").values()];
  const redriven = queues.flatMap(({ RedrivePolicy }) => (RedrivePolicy ? [RedrivePolicy.deadLetterTargetArn] : []));
  expect(new Set(dead.map(({ queueArn }) => toWords(stack.resolve(queueArn))))).toEqual(new Set(redriven.map(toWords)));
  expect(Object.keys(broker.functions)).toEqual(["http", "worker", "dead-jobs", "notify", "refresh", "reconcile"]);
  expect(toWords(stack.resolve(broker.url))).toMatch(/^https:\/\/SkillsApi\.execute-api\.<Region>\.<URLSuffix>\/$/);
});

test("a domain of the app's own can be put before it", () => {
  const stack = makeStack();
  const broker = make({}, stack);
  const certificate = Certificate.fromCertificateArn(stack, "Certificate", CERTIFICATE);
  const domainName = new DomainName(stack, "Domain", { domainName: "skills.acme.test", certificate });
  new ApiMapping(stack, "Mapping", { api: broker.api, domainName, stage: broker.stage });
  const [mapping] = resourcesOf(Template.fromStack(stack), "AWS::ApiGatewayV2::ApiMapping").values();
  expect({ ...mapping, ApiId: toWords(mapping.ApiId), Stage: toWords(mapping.Stage) }).toMatchObject({
    ApiId: "SkillsApi",
    Stage: "$default",
  });
});

test("three of them, and no four, fit into what CloudFormation takes in one stack", () => {
  const count = Object.keys(templateOf(make()).toJSON().Resources).length;
  expect(Math.floor(500 / count)).toBe(3);
});

describe("objects of the app", () => {
  test("every alarm tells the topic and does what else was wanted", () => {
    const stack = makeStack();
    const [alarmTopic, other] = [new Topic(stack, "Told"), new Topic(stack, "Other")];
    const { alarms } = make({ alarmTopic, alarmActions: [new SnsAction(other)] }, stack);
    const found = [...resourcesOf(Template.fromStack(stack), "AWS::CloudWatch::Alarm").values()];
    expect(found).toHaveLength(alarms.length);
    for (const { AlarmActions } of found) expect(AlarmActions.map(toWords).toSorted()).toEqual(["Other", "Told"]);
  });

  test("a topic and a key may be given by their ARN", () => {
    const alarmTopic = "arn:aws:sns:eu-central-1:123456789012:on-call";
    const encryptionKey = "arn:aws:kms:eu-central-1:123456789012:key/0a1b2c3d-1111-4222-8333-444455556666";
    const template = templateOf(make({ alarmTopic, encryptionKey }));
    const alarms = [...resourcesOf(template, "AWS::CloudWatch::Alarm").values()];
    expect(new Set(alarms.flatMap(({ AlarmActions }) => AlarmActions))).toEqual(new Set([alarmTopic]));
    const queues = [...resourcesOf(template, "AWS::SQS::Queue").values()];
    expect(new Set(queues.map(({ KmsMasterKeyId }) => KmsMasterKeyId))).toEqual(new Set([encryptionKey]));
  });

  test("a user pool that is made in the same stack can be the issuer", () => {
    const stack = makeStack();
    const pool = new UserPool(stack, "People");
    const client = pool.addClient("Console");
    const auth = { issuer: pool.userPoolProviderUrl, audience: [client.userPoolClientId] };
    const template = templateOf(make({ auth }, stack));
    const [authorizer] = resourcesOf(template, "AWS::ApiGatewayV2::Authorizer").values();
    expect(toWords(authorizer.JwtConfiguration.Issuer)).toBe("People.ProviderURL");
    expect(authorizer.JwtConfiguration.Audience.map(toWords)).toEqual([expect.stringMatching(/^PeopleConsole/)]);
    const { AUTH } = resourcesOf(template, "AWS::Lambda::Function").get("SkillsHttpFunction").Environment.Variables;
    expect(toWords(AUTH)).toMatch(
      /^\{"issuer":"People\.ProviderURL","audience":\["PeopleConsole.*"\],"scopes":\{.*\}\}$/,
    );
  });
});

describe("grants", () => {
  type Statement = { readonly actions: readonly string[]; readonly resources: readonly string[] };

  /** What a role may do after this, in words; the API's ARN is left out. */
  function granted(
    props: SkillBrokerProps,
    grant: (broker: SkillBroker, to: IGrantable) => void,
  ): readonly Statement[] {
    const stack = makeStack();
    const role = new Role(stack, "Caller", { assumedBy: new ServicePrincipal("ec2.amazonaws.com") });
    grant(make(props, stack), role);
    const policies = [...resourcesOf(Template.fromStack(stack), "AWS::IAM::Policy").values()];
    const own = policies.filter(({ Roles }) => Roles.map(toWords).includes("Caller"));
    const statements: readonly Properties[] = own.flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
    return statements.map(({ Action, Resource }) => ({
      actions: [Action].flat(),
      resources: [Resource]
        .flat()
        .map(toWords)
        .map((arn) => arn.replace(API, "")),
    }));
  }
  const API = "arn:<Partition>:execute-api:<Region>:<AccountId>:SkillsApi/$default/";
  const pathsOf = (...groups: readonly string[]) =>
    ROUTES.filter(({ group }) => groups.includes(group)).map(
      ({ method, path }) => `${method}${path.replaceAll(/\{\w+\}/g, "*")}`,
    );
  const routes = (...groups: readonly string[]) => [{ actions: ["execute-api:Invoke"], resources: pathsOf(...groups) }];

  test("to invoke allows to run jobs and to read, by the exact routes", () => {
    const allowed = granted({}, (broker, to) => broker.grantInvoke(to));
    expect(allowed).toEqual(routes("run", "read"));
    expect(allowed[0]?.resources).toEqual(
      expect.arrayContaining(["POST/v1/jobs", "GET/v1/jobs/*", "DELETE/v1/jobs/*"]),
    );
    expect(allowed[0]?.resources).not.toContain("POST/v1/refreshes");
  });

  test("to read allows nothing that is no GET", () => {
    const allowed = granted({}, (broker, to) => broker.grantRead(to));
    expect(allowed).toEqual(routes("read"));
    expect(allowed[0]?.resources.filter((path) => !path.startsWith("GET/"))).toEqual([]);
  });

  test("to operate allows to refresh", () => {
    expect(granted({}, (broker, to) => broker.grantOperate(to))).toEqual([
      { actions: ["execute-api:Invoke"], resources: ["POST/v1/refreshes"] },
    ]);
  });

  test("to notify allows to post a notification and to send it into the queue, and not to read there", () => {
    expect(granted({}, (broker, to) => broker.grantNotify(to))).toEqual([
      { actions: ["sqs:SendMessage"], resources: ["SkillsQueuesNotifications.Arn"] },
      { actions: ["execute-api:Invoke"], resources: ["POST/v1/notifications"] },
    ]);
  });

  test("to notify allows to encrypt by the key of the queue", () => {
    const encryptionKey = "arn:aws:kms:eu-central-1:123456789012:key/0a1b2c3d-1111-4222-8333-444455556666";
    expect(granted({ encryptionKey }, (broker, to) => broker.grantNotify(to))).toContainEqual({
      actions: ["kms:Decrypt", "kms:GenerateDataKey"],
      resources: [encryptionKey],
    });
  });

  test("to who has no policy throws, where nothing else could be written", () => {
    const others = new AccountPrincipal("210987654321");
    for (const grant of ["grantInvoke", "grantRead", "grantOperate"] as const) {
      expect(() => make()[grant](others)).toThrow(/^Acme\/Skills: nothing was granted to call the API: /);
    }
  });

  test.each([
    ["an account", new AccountPrincipal("210987654321"), "210987654321"],
    ["a service", new ServicePrincipal("events.amazonaws.com"), "events.amazonaws.com"],
  ])("to notify lets %s in by the policy of the queue", (_, principal, name) => {
    const broker = make();
    expect(broker.grantNotify(principal).success).toBe(true);
    const policies = [...resourcesOf(templateOf(broker), "AWS::SQS::QueuePolicy").values()];
    const statements: Properties[] = policies.flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
    const allowed = statements.filter(({ Effect }) => Effect === "Allow");
    expect(allowed).toHaveLength(1);
    expect({ ...allowed[0], Resource: toWords(allowed[0].Resource) }).toMatchObject({
      Action: "sqs:SendMessage",
      Resource: "SkillsQueuesNotifications.Arn",
    });
    expect(JSON.stringify(allowed[0].Principal)).toContain(name);
  });

  test("to notify throws where a key is known by its ARN alone, which cannot be told", () => {
    const encryptionKey = "arn:aws:kms:eu-central-1:123456789012:key/0a1b2c3d-1111-4222-8333-444455556666";
    expect(() => make({ encryptionKey }).grantNotify(new ServicePrincipal("events.amazonaws.com"))).toThrow(
      /^Acme\/Skills: nothing was granted to use the key of the queue: /,
    );
  });

  test("where an issuer is known later only, no token of the CDK is in the message", () => {
    const stack = makeStack();
    const pool = new UserPool(stack, "People");
    const broker = make({ auth: { issuer: pool.userPoolProviderUrl, audience: ["agents"] } }, stack);
    expect(() => broker.grantRead(new AccountPrincipal("1"))).toThrow(
      /have its issuer give the client skillbroker\/read$/,
    );
  });

  test("where tokens decide, no role can be let in, and the scope that can is named", () => {
    const auth = { issuer: "https://tokens.acme.test/", audience: ["agents"] };
    const broker = make({ auth });
    const role = new Role(Stack.of(broker), "Caller", { assumedBy: new ServicePrincipal("ec2.amazonaws.com") });
    expect(() => broker.grantInvoke(role)).toThrow(
      /^Acme\/Skills: .*tokens.* https:\/\/tokens\.acme\.test\/ give the client skillbroker\/run and skillbroker\/read$/,
    );
    expect(() => make({ auth: "none" }).grantRead(role)).toThrow(/lets everybody in/);
    expect(granted({ auth }, (each, to) => each.grantNotify(to))).toEqual([
      { actions: ["sqs:SendMessage"], resources: ["SkillsQueuesNotifications.Arn"] },
    ]);
  });
});

describe("wrong props", () => {
  test("are told in one list, of every kind, before anything is made", () => {
    const skills = addRepository("spoilt");
    appendFileSync(join(skills, "spoilt/status-update/SKILL.md"), "!");
    writeFileSync(join(skills, "spoilt/status-update/notes.md"), "not pinned");
    const problems = problemsOf({
      tools: ["create_pdf@2", "status_updat@1", "locl", "spoilt_update@1", "gitlab/search@3f9a0c1b2d4e"],
      skills: [BUILTIN_SKILLS, skills],
      repositories: ["builtin", "spoilt", "ghost"],
      mcpServers: { github: { url: "http://mcp.github.test/" }, files: { command: "npx" } },
      auth: { issuer: "tokens.acme.test", audience: [] },
      debounceSeconds: 0,
      artefactDays: 3,
      mcp: "mcp.json",
      removalPolicy: RemovalPolicy.SNAPSHOT,
    });
    expect(problems.map((line) => line.split(": ")[0])).toEqual([
      "/artefactDays",
      "/mcp",
      "/removalPolicy",
      "/auth/issuer",
      "/auth/audience",
      "/debounceSeconds",
      "/tools/0",
      "/tools/1",
      "/tools/2",
      "/tools/4",
      "/skills",
      "/skills",
      "/skills",
      "/mcpServers/github/url",
      "/mcpServers/files/command",
    ]);
    expect(problems).toContain("/mcp: is called mcpServers here");
    expect(problems.join("\n")).toContain(`${skills}: spoilt/status-update/SKILL.md was changed`);
    expect(problems.join("\n")).toContain(`${skills}: spoilt/status-update/notes.md is not pinned`);
    expect(problems.join("\n")).toContain("ghost/ is wanted and not in ");
  });

  test.each([
    [
      "a server that passes for a repository",
      { mcpServers: { builtin: { url: "https://a.test/" } } },
      "/mcpServers/builtin",
    ],
    ["a file of servers that is not there", { mcpServers: "no-such.json" }, "/mcpServers"],
    ["no directory of skills", { skills: [] }, "/skills"],
    ["a directory of skills that is no text", { skills: [7] }, "/skills"],
    ["the same skills twice", { skills: [BUILTIN_SKILLS, BUILTIN_SKILLS] }, "/skills"],
    ["a key by its alias", { encryptionKey: "alias/mine" }, "/encryptionKey"],
    ["a topic by its name", { alarmTopic: "on-call" }, "/alarmTopic"],
    ["a key that only the CDK would pass over", { "aws:made-up": 1 }, "/aws:made-up"],
    ["a call as long as any job", { limits: { call_timeout_ms: 300_000 } }, "/limits/call_timeout_ms"],
  ])("are refused: %s", (_, props, path) => {
    expect(pathsOf(props)).toContain(path);
  });

  test("an error is a plain one, which Node prints with its list once", () => {
    expect(() => make({ debounceSeconds: 0 })).toThrow(expect.objectContaining({ name: "Error" }));
  });
});

describe("warnings of the synth", () => {
  const warningsOf = (props: SkillBrokerProps) => {
    const stack = makeStack();
    make(props, stack);
    return Annotations.fromStack(stack)
      .findWarning("*", Match.anyValue())
      .map(({ entry }) => String(entry.data));
  };

  test("tell what is seldom meant, by where it is written", () => {
    const scopes = { run: "jobs", read: "jobs" };
    const [approval, equal, credential, ...others] = warningsOf({
      tools: ["github/search@3f9a0c1b2d4e"],
      mcpServers: { github: { url: "https://mcp.github.test/", headers: { Authorization: "Bearer sk-123" } } },
      auth: { issuer: "https://tokens.acme.test/", audience: ["agents"], scopes },
    });
    expect(others).toEqual([]);
    expect(approval).toMatch(/^\/tools\/0: .* \[ack: skillbroker:short-approval\]$/);
    expect(equal).toMatch(/^\/auth\/scopes: jobs stands for run and read/);
    expect(credential).toMatch(/^\/mcpServers\/github\/headers\/Authorization: looks like a secret/);
  });

  test("are none where there is nothing to say", () => {
    expect(warningsOf({ tools: ["local"] })).toEqual([]);
  });
});

describe("an error says where", () => {
  test.each([
    ["directly in an app", () => new App()],
    ["directly in a stage", () => new Stage(new App(), "Acme")],
  ])("when it is placed %s", (_, makeScope) => {
    expect(() => new SkillBroker(makeScope(), "Skills", { functionsCode })).toThrow(
      /^(?:Acme\/)?Skills: belongs into a stack/,
    );
  });

  test.each([null, 5, []])("when the props are %j", (props) => {
    expect(() => Reflect.construct(SkillBroker, [makeStack(), "Skills", props])).toThrow(
      /^Acme\/Skills: an object of props expected/,
    );
  });

  test("when the directory of the code is another one, a file, or lacks a function", () => {
    const short = placeholderCode(join(temp, "short"));
    rmSync(join(short, "notify"), { recursive: true });
    const file = join(short, "http/index.mjs");
    expect(() => make({ functionsCode: temp })).toThrow(/^Acme\/Skills: the code of the functions is not at /);
    expect(() => make({ functionsCode: file })).toThrow(/^Acme\/Skills: the code of the functions is not at /);
    expect(() => make({ functionsCode: short })).toThrow(/^Acme\/Skills: notify\/index\.mjs is not at /);
  });
});

test("where the stack says its region, what is of another one is refused", () => {
  const env = { region: "eu-central-1", account: "123456789012" };
  const stack = new Stack(new App({ builtinCloudFormationValidation: false }), "Acme", { env });
  const alarmTopic = "arn:aws:sns:eu-west-1:123456789012:on-call";
  expect(() => make({ alarmTopic }, stack)).toThrow(
    /\n {2}\/alarmTopic: is of eu-west-1, and the stack is deployed to/,
  );
});

test("without the built code it says how to get it", () => {
  expect(() => new SkillBroker(makeStack(), "Skills", { functionsCode: join(temp, "none") })).toThrow(
    /^Acme\/Skills: the code of the functions is not at .*none; run npm run build/,
  );
  expect(existsSync(join(temp, "none"))).toBe(false);
});
