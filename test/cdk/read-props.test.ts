import { RemovalPolicy, Token } from "aws-cdk-lib";
import { describe, expect, test } from "vitest";
import { checkProject } from "../../cdk/checked-project.ts";
import { BUILTIN_SKILLS } from "../../cdk/package-places.ts";
import { toProjectSource, withLaterValues } from "../../cdk/read-props.ts";
import type { SkillBrokerProps } from "../../cdk/skillbroker-props.ts";
import { ROUTE_GROUPS } from "../../functions/contract/auth.ts";
import { orThrow } from "../../functions/contract/fault.ts";
import { DEFAULT_LIMITS } from "../../functions/contract/limits.ts";
import { OperatorSettings } from "../../functions/contract/settings.ts";

/** As JavaScript or a wrong type would give them. */
const read = (props: object) => toProjectSource(Object(props));

describe("every setting of the ready app", () => {
  const RENAMED = ["mcp", "encryptionKeyArn", "alarmTopicArn", "dataAtRemoval"];
  const names = Object.keys(OperatorSettings.shape);

  test.each(names.filter((name) => !RENAMED.includes(name)))("%s is a prop", (name) => {
    const { violations, settings, skills } = read({ [name]: ["value"] });
    expect(violations).toEqual([]);
    if (name === "skills") expect(skills).toEqual(["value"]);
    else expect(settings).toEqual({ [name]: ["value"] });
  });

  test.each(RENAMED)("%s has another name among the props, and is told of it", (name) => {
    expect(names).toContain(name);
    const [violation, ...others] = read({ [name]: "value" }).violations ?? [];
    expect(others).toEqual([]);
    expect(violation).toMatchObject({ path: `/${name}`, message: expect.stringMatching(/^is called \w+ here$/) });
  });
});

test("the limits and scopes that are written out are those that there are", () => {
  const limits: Required<NonNullable<SkillBrokerProps["limits"]>> = DEFAULT_LIMITS;
  const scopes: Record<(typeof ROUTE_GROUPS)[number], string> = { run: "a", read: "b", notify: "c", operate: "d" };
  const auth = { issuer: "https://tokens.test/", audience: ["a"], scopes };
  const { settings } = orThrow(checkProject(toProjectSource({ auth, limits: { ...limits, job_timeout_ms: 22_000 } })));
  expect(settings.limits).toEqual({ ...DEFAULT_LIMITS, job_timeout_ms: 22_000 });
  expect(settings.auth).toEqual(auth);
  expect(Object.keys(scopes)).toEqual(ROUTE_GROUPS);
});

test("what is left out or undefined is as in the ready app, with the skills of the package", () => {
  const props = {
    repositories: undefined,
    httpConcurrency: undefined,
    encryptionKey: undefined,
    mcpServers: undefined,
  };
  const { settings, servers } = orThrow(checkProject(toProjectSource(props)));
  expect(settings).toEqual(OperatorSettings.parse({}));
  expect(servers.names).toEqual([]);
  expect(toProjectSource({}).skills).toEqual([BUILTIN_SKILLS]);
});

test.each([
  [RemovalPolicy.RETAIN, "keep"],
  [RemovalPolicy.DESTROY, "delete"],
])("removal policy %s means to %s the data", (removalPolicy, dataAtRemoval) => {
  expect(orThrow(checkProject(toProjectSource({ removalPolicy }))).settings).toMatchObject({ dataAtRemoval });
});

describe("what is known only while deploying", () => {
  const later = Token.asString({ Ref: "Later" });
  const told = (props: object) => (read(props).violations ?? []).map(({ path, message }) => `${path}: ${message}`);

  test.each([
    ["a number", { artifactDays: Token.asNumber({ Ref: "Days" }) }, "/artifactDays"],
    ["a number among the limits", { limits: { max_calls: Token.asNumber({ Ref: "Calls" }) } }, "/limits/max_calls"],
    ["an approval", { tools: ["local", later] }, "/tools/1"],
    ["a list of audiences", { auth: { issuer: later, audience: Token.asList({ Ref: "All" }) } }, "/auth/audience"],
  ])("is refused by one line of its own: %s", (_, props, path) => {
    expect(told(props)).toEqual([`${path}: must be known at the synth, and is known later only`]);
    const checked = checkProject(read(props));
    expect(checked.ok ? [] : checked.fault.violations).toHaveLength(1);
  });

  test("is to be handed over as an object where that is a key or a topic", () => {
    expect(told({ encryptionKey: later, alarmTopic: later })).toEqual([
      "/encryptionKey: an ARN that is known later only is handed over as Key.fromKeyArn(scope, id, arn)",
      "/alarmTopic: an ARN that is known later only is handed over as Topic.fromTopicArn(scope, id, arn)",
    ]);
  });

  test("can be the value of a tag, and stays what it was", () => {
    const props = { tags: { stage: later, team: "docs" } };
    const project = orThrow(checkProject(toProjectSource(props)));
    expect(withLaterValues(project, props).settings.tags).toEqual(props.tags);
  });

  test("can be an audience, one or several", () => {
    const audience = [later, Token.asString({ Ref: "Other" }), "agents"];
    const props = { auth: { issuer: "https://tokens.test/", audience } };
    expect(withLaterValues(orThrow(checkProject(toProjectSource(props))), props).settings.auth).toMatchObject({
      audience,
    });
  });
});

describe("objects that are none of the CDK's", () => {
  test.each([
    ["encryptionKey", [5, {}, null, ["arn"], { keyArn: 5 }]],
    ["alarmTopic", [5, {}, null, { topicArn: 5 }]],
    ["alarmActions", [5, {}, ["arn:aws:sns:eu-west-1:123456789012:on-call"], [{}], null]],
    ["functionsCode", [5, {}, null]],
    ["skills", [[7], [], ""]],
  ])("are refused by the name of the prop: %s", (name, values) => {
    for (const value of values) {
      const paths = (read({ [name]: value }).violations ?? []).map(({ path }) => path);
      expect([value, paths]).toEqual([value, [`/${name}`]]);
    }
  });
});

test("what is undefined is left out, whatever it is called", () => {
  expect(read({ foo: undefined, tools: undefined })).toMatchObject({ violations: [], settings: {} });
});

describe("an issuer that is known only while deploying", () => {
  const issuer = Token.asString({ "Fn::GetAtt": ["People", "ProviderURL"] });

  test("passes the checks and stays what it was", () => {
    const props = { auth: { issuer, audience: ["a"] } };
    const project = withLaterValues(orThrow(checkProject(toProjectSource(props))), props);
    expect(project.settings.auth).toMatchObject({ issuer, audience: ["a"], scopes: { run: "skillbroker/run" } });
  });

  test("hides no other mistake", () => {
    const checked = checkProject(toProjectSource({ auth: { issuer, audience: [] } }));
    expect(checked.ok ? [] : checked.fault.violations.map(({ path }) => path)).toEqual(["/auth/audience"]);
  });
});
