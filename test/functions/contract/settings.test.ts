import { describe, expect, test } from "vitest";
import { parseSettings } from "../../../functions/contract/settings.ts";
import "../../kit/to-fail.ts";

function violationsOf(context: Readonly<Record<string, unknown>>): readonly string[] {
  const parsed = parseSettings(context);
  return parsed.ok ? [] : parsed.fault.violations.map(({ path }) => path);
}

describe("settings", () => {
  test("left out approve nothing and open nothing", () => {
    expect(parseSettings({})).toEqual({
      ok: true,
      value: {
        tools: [],
        skills: "skills",
        auth: "iam",
        asyncJobSeconds: 300,
        asyncJobsAtOnce: 10,
        logDays: 30,
        dataAtRemoval: "keep",
        tags: {},
        artifactDays: 7,
        limits: {},
        mcp: "mcp.json",
        debounceSeconds: 0.5,
        longestWaitSeconds: 15,
        reconcileSeconds: 900,
        maxListAgeSeconds: 86_400,
      },
    });
  });

  test("are taken as they are written", () => {
    const written = {
      tools: ["local", "status_update@1"],
      skills: "elsewhere",
      repositories: ["builtin", "acme"],
      auth: "none",
      artifactDays: 30,
      limits: { max_calls: 4 },
      mcp: "elsewhere/servers.json",
      debounceSeconds: 2.5,
      longestWaitSeconds: 30,
      reconcileSeconds: 60,
      maxListAgeSeconds: 3_600,
      asyncJobSeconds: 60,
      asyncJobsAtOnce: 2,
      httpConcurrency: 20,
      logDays: 365,
      dataAtRemoval: "delete",
      encryptionKeyArn: "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
      alarmTopicArn: "arn:aws:sns:eu-central-1:111122223333:on-call",
      tags: { team: "platform" },
    };
    expect(parseSettings(written)).toEqual({ ok: true, value: written });
  });

  test("are refused with all their mistakes together", () => {
    const context = {
      tools: "local",
      auth: "open",
      artifactDays: 0,
      limits: { max_calls: -1, calls: 3 },
      repositories: ["Acme"],
    };
    expect(violationsOf(context).toSorted()).toEqual([
      "/artifactDays",
      "/auth",
      "/limits/calls",
      "/limits/max_calls",
      "/repositories/0",
      "/tools",
    ]);
    const parsed = parseSettings(context);
    expect(parsed).toFail("REQUEST_INVALID");
    for (const path of violationsOf(context)) expect(!parsed.ok && parsed.fault.message).toContain(path);
  });

  test.each(["tool", "Tools", "artifact_days", "constructor", "toString", "hasOwnProperty"])(
    "with the unknown word %s are refused by it",
    (word) => {
      expect(violationsOf({ [word]: [] })).toEqual([`/${word}`]);
    },
  );

  test("with a key that reaches for a prototype are refused", () => {
    expect(parseSettings(JSON.parse('{"__proto__":{"tools":["local"]}}'))).toFail("REQUEST_INVALID");
  });

  test("are not taken from a prototype", () => {
    const inheriting: Readonly<Record<string, unknown>> = Object.create({ tools: ["local"], auth: "none" });
    expect(parseSettings(inheriting)).toMatchObject({ ok: true, value: { tools: [], auth: "iam" } });
  });

  test.each([
    "cli-telemetry",
    "@aws-cdk/core:target-partitions",
    "aws:cdk:enable-path-metadata",
    "availability-zones:account=1:region=x",
    "acknowledged-issue-numbers",
  ])("pass over the CDK's own key %s", (key) => {
    expect(parseSettings({ [key]: { anything: 1 }, tools: ["local"] })).toMatchObject({
      ok: true,
      value: { tools: ["local"] },
    });
  });

  test.each([
    { tools: [""] },
    { tools: ["x".repeat(301)] },
    { tools: [null] },
    { tools: Array.from({ length: 1_001 }, () => "local") },
    { skills: "" },
    { auth: "IAM" },
    { artifactDays: 1.5 },
    { artifactDays: "7" },
    { artifactDays: 3_651 },
    { limits: null },
    { limits: { link_seconds: 7 * 24 * 3600 + 1 } },
    { repositories: ["../acme"] },
    { repositories: ["acme-"] },
    { mcp: "" },
    { mcp: ["mcp.json"] },
    { debounceSeconds: 0.09 },
    { debounceSeconds: 60.1, longestWaitSeconds: 900 },
    { debounceSeconds: "0.5" },
    { debounceSeconds: null },
    { longestWaitSeconds: 0.9 },
    { longestWaitSeconds: 900.1 },
    { reconcileSeconds: 59 },
    { reconcileSeconds: 60.5 },
    { reconcileSeconds: 86_401 },
    { maxListAgeSeconds: 299 },
    { maxListAgeSeconds: 900.5 },
    { maxListAgeSeconds: 2_592_001 },
  ])("out of range are refused: %j", (context) => {
    expect(parseSettings(context)).toFail("REQUEST_INVALID");
  });

  test.each([
    { debounceSeconds: 0.1, longestWaitSeconds: 1 },
    { debounceSeconds: 60, longestWaitSeconds: 900 },
    { reconcileSeconds: 60, maxListAgeSeconds: 300 },
    { reconcileSeconds: 86_400, maxListAgeSeconds: 2_592_000 },
  ])("at their bounds are taken: %j", (context) => {
    expect(parseSettings(context)).toMatchObject({ ok: true, value: context });
  });

  test("wait at least as long for quiet in the end as at first", () => {
    expect(parseSettings({ debounceSeconds: 15 })).toMatchObject({ ok: true });
    expect(violationsOf({ debounceSeconds: 15.1 })).toEqual(["/longestWaitSeconds"]);
    expect(violationsOf({ debounceSeconds: 3, longestWaitSeconds: 2 })).toEqual(["/longestWaitSeconds"]);
    const parsed = parseSettings({ debounceSeconds: 3, longestWaitSeconds: 2 });
    expect(parsed.ok ? "" : parsed.fault.message).toMatch(/debounceSeconds \(3\), got 2/);
  });

  test("with a wait out of order tell it beside their other mistakes, and once", () => {
    const context = { auth: "open", debounceSeconds: 3, longestWaitSeconds: 2 };
    expect(violationsOf(context).toSorted()).toEqual(["/auth", "/longestWaitSeconds"]);
    expect(violationsOf({ debounceSeconds: 61, longestWaitSeconds: 2 })).toEqual(["/debounceSeconds"]);
  });
});

test("a list may grow older than the time after which it is fetched anew, by a second at least", () => {
  expect(parseSettings({ reconcileSeconds: 900, maxListAgeSeconds: 901 }).ok).toBe(true);
  const equal = parseSettings({ reconcileSeconds: 900, maxListAgeSeconds: 900 });
  expect(equal.ok ? [] : equal.fault.violations.map(({ path }) => path)).toEqual(["/maxListAgeSeconds"]);
  expect(parseSettings({ maxListAgeSeconds: 600 }).ok).toBe(false);
});

describe("authorisation by tokens", () => {
  const JWT = { issuer: "https://id.acme.test/", audience: ["skills"] };

  test("has a scope of its own for each group of routes, unless others are chosen", () => {
    const parsed = parseSettings({ auth: { ...JWT, scopes: { run: "jobs:run" } } });
    expect(parsed.ok && parsed.value.auth).toEqual({
      ...JWT,
      scopes: {
        run: "jobs:run",
        read: "skillbroker/read",
        notify: "skillbroker/notify",
        operate: "skillbroker/operate",
      },
    });
  });

  test.each([
    ["an issuer that is no URL", { ...JWT, issuer: "id.acme.test" }, ["/auth/issuer"]],
    ["an issuer whose keys could be changed on the way", { ...JWT, issuer: "http://id.acme.test" }, ["/auth/issuer"]],
    ["an issuer with a blank", { ...JWT, issuer: "https://id.acme.test/ " }, ["/auth/issuer"]],
    ["an issuer with a blank before it", { ...JWT, issuer: " https://id.acme.test/" }, ["/auth/issuer"]],
    ["an issuer with a line break", { ...JWT, issuer: "https://id.acme.test/\n" }, ["/auth/issuer"]],
    ["an issuer with a query", { ...JWT, issuer: "https://id.acme.test/?a=b" }, ["/auth/issuer"]],
    ["an issuer with a fragment", { ...JWT, issuer: "https://id.acme.test/#c" }, ["/auth/issuer"]],
    ["an issuer with a password", { ...JWT, issuer: "https://u:p@id.acme.test/" }, ["/auth/issuer"]],
    ["a blank audience", { ...JWT, audience: [" "] }, ["/auth/audience/0"]],
    ["an audience with a blank at its end", { ...JWT, audience: ["skills "] }, ["/auth/audience/0"]],
    ["an audience twice", { ...JWT, audience: ["a", "b", "a"] }, ["/auth/audience"]],
    ["no audience", { ...JWT, audience: [] }, ["/auth/audience"]],
    ["nothing but braces", {}, ["/auth/audience", "/auth/issuer"]],
    ["a scope of two words", { ...JWT, scopes: { read: "a b" } }, ["/auth/scopes/read"]],
    ["a group that there is not", { ...JWT, scopes: { write: "w" } }, ["/auth/scopes/write"]],
    ["a field that there is not", { ...JWT, aud: "x" }, ["/auth/aud"]],
    ["a list", [JWT], ["/auth"]],
    ["nothing", null, ["/auth"]],
    ["another word", "jwt", ["/auth"]],
  ])("with %s is refused by that path", (_, auth, paths) => {
    expect(violationsOf({ auth }).toSorted()).toEqual(paths);
  });
});

const tagsOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));

describe("a mistake in a context", () => {
  const messageOf = (context: Readonly<Record<string, unknown>>) => {
    const parsed = parseSettings(context);
    return parsed.ok ? [] : parsed.fault.violations.map(({ path, message }) => `${path}: ${message}`);
  };

  test.each([
    ["artifact-days", "artifactDays"],
    ["artifact_days", "artifactDays"],
    ["ArtifactDays", "artifactDays"],
    ["http-concurrency", "httpConcurrency"],
  ])("in the name %s says how it is written", (key, name) => {
    expect(messageOf({ [key]: 7 })).toEqual([`/${key}: is written ${name}`]);
  });

  test.each([{ artifactDays: "7" }, { tools: "local" }, { limits: "{}" }])(
    "that comes of -c, which makes texts, says so: %j",
    (context) => {
      const [message, ...others] = messageOf(context);
      expect(others).toEqual([]);
      expect(message).toMatch(
        /expected \w+, received string; -c makes texts of all values, so write it into cdk\.json$/,
      );
    },
  );

  test("in a text says nothing of -c where that was not it", () => {
    expect(messageOf({ tools: [7], repositories: [""], limits: { max_calls: "4" } }).join()).not.toContain("-c ");
  });
});

describe("settings of a deployment", () => {
  test.each([
    ["asyncJobSeconds", [1, 840], [0, 841, 1.5]],
    ["asyncJobsAtOnce", [2, 1_000], [1, 1_001]],
    ["httpConcurrency", [1, 10_000], [0, 10_001]],
    ["logDays", [1, 3_653], [0, 2, 31, 3_654]],
    ["dataAtRemoval", ["keep", "delete"], ["destroy", "", true]],
    [
      "encryptionKeyArn",
      ["arn:aws:kms:eu-central-1:111122223333:key/mrk-0123456789abcdef0123456789abcdef"],
      [
        "alias/mine",
        "arn:aws:kms:eu-central-1:111122223333:key/0a1b",
        "arn:aws:kms:eu-central-1:111122223333:alias/mine",
      ],
    ],
    ["alarmTopicArn", [], ["on-call", "arn:aws:sqs:eu-central-1:111122223333:on-call"]],
    [
      "tags",
      [{}, { team: "" }, { "kosten:stelle/Süd": "a b+c=d@e" }, tagsOf(50)],
      [
        { "": "x" },
        { team: 1 },
        ["team"],
        { ["k".repeat(129)]: "v" },
        { "aws:x": "v" },
        { "AWS:x": "v" },
        { "k<>": "v" },
        { k: "what?" },
        { team: "a", Team: "b" },
        tagsOf(51),
      ],
    ],
  ])("%s is taken at its bounds and refused beyond", (name, good, bad) => {
    for (const value of good) expect([value, violationsOf({ [name]: value })]).toEqual([value, []]);
    for (const value of bad) {
      const paths = violationsOf({ [name]: value });
      expect([value, paths.length > 0, paths.every((path) => path.startsWith(`/${name}`))]).toEqual([
        value,
        true,
        true,
      ]);
    }
  });
});
