import { appendFileSync, cpSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { checkProject } from "../../cdk/checked-project.ts";
import { BUILTIN_SKILLS } from "../../cdk/package-places.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";
import "../kit/to-fail.ts";

const temp = makeTempDirectory();
const servers = (mcpServers: unknown) => ({ value: { mcpServers } });

test("mistakes in settings, skills and servers are one list, in the message and by path", () => {
  const skills = join(temp, "skills");
  cpSync(BUILTIN_SKILLS, skills, { recursive: true });
  appendFileSync(join(skills, "builtin/data-table/tool.json"), " ");
  const checked = checkProject({
    settings: { debounceSeconds: 0, tools: ["data_table@1", "data_table@2", "docs/find@3f9a0c1b2d4e"] },
    skills: [skills],
    servers: servers({ builtin: { url: "https://a.test/" }, docs: { url: "http://b.test/" } }),
    violations: [{ path: "/before", message: "was found before" }],
  });
  expect(checked).toFail("REQUEST_INVALID");
  const violations = checked.ok ? [] : checked.fault.violations;
  expect(violations.map(({ path }) => path)).toEqual([
    "/before",
    "/debounceSeconds",
    "/tools/1",
    "/skills",
    "/mcpServers/builtin",
    "/mcpServers/docs/url",
  ]);
  const lines = violations.map(({ path, message }) => `  ${path}: ${message}`);
  expect(checked.ok ? "" : checked.fault.message).toBe(["this cannot be deployed:", ...lines].join("\n"));
});

test("a server cannot pass for a repository that is not even loaded because it was refused", () => {
  const skills = join(temp, "more-skills");
  cpSync(BUILTIN_SKILLS, skills, { recursive: true });
  cpSync(join(skills, "builtin"), join(skills, "acme"), { recursive: true });
  const checked = checkProject({
    settings: {},
    skills: [skills],
    servers: servers({ acme: { url: "https://a.test/" } }),
  });
  expect(checked.ok ? [] : checked.fault.violations.map(({ path }) => path)).toContain("/mcpServers/acme");
});

describe("where the region is known", () => {
  const secret = (region: string) => `arn:aws:secretsmanager:${region}:123456789012:secret:mcp-a1B2c3`;
  const check = (region: string | undefined, of = "eu-west-1", account?: string) =>
    checkProject({
      settings: {
        encryptionKeyArn: `arn:aws:kms:${of}:123456789012:key/0a1b2c3d-1111-4222-8333-444455556666`,
        alarmTopicArn: `arn:aws:sns:${of}:123456789012:on-call`,
      },
      skills: [BUILTIN_SKILLS],
      servers: servers({ docs: { url: "https://a.test/", headers: { "X-Key": `\${secretsmanager:${secret(of)}}` } } }),
      region,
      account,
    });

  test("a key, a topic and a secret of another one are refused", () => {
    const checked = check("eu-central-1");
    const violations = checked.ok ? [] : checked.fault.violations;
    expect(violations.map(({ path }) => path)).toEqual(["/encryptionKeyArn", "/alarmTopicArn", "/mcpServers"]);
    for (const { message } of violations) expect(message).toMatch(/is of eu-west-1, and the stack .* eu-central-1$/);
  });

  test("a secret of another account is refused where that is known", () => {
    const checked = check("eu-west-1", "eu-west-1", "210987654321");
    expect(checked.ok ? [] : checked.fault.violations.map(({ path }) => path)).toEqual(["/mcpServers"]);
    expect(check("eu-west-1", "eu-west-1", "123456789012").ok).toBe(true);
  });

  test("those of the same one are taken, and any where it is not known", () => {
    expect([check("eu-west-1").ok, check(undefined).ok]).toEqual([true, true]);
  });
});

test("a mistake in a setting is told in the words of who wrote it", () => {
  const checked = checkProject({
    settings: { logDays: 2 },
    skills: [BUILTIN_SKILLS],
    servers: servers({}),
    toOwnWords: ({ path, message }) => ({ path: path.toUpperCase(), message }),
  });
  expect(checked.ok ? [] : checked.fault.violations.map(({ path }) => path)).toEqual(["/LOGDAYS"]);
});

test("what is in order is what is deployed", () => {
  const url = "https://mcp.docs.test/";
  const settings = { tools: ["local", "docs/find@3f9a0c1b2d4e"], repositories: ["builtin"] };
  const checked = checkProject({ settings, skills: [BUILTIN_SKILLS], servers: servers({ docs: { url } }) });
  expect(checked).toMatchObject({
    ok: true,
    value: { settings, servers: { names: ["docs"], json: JSON.stringify({ mcpServers: { docs: { url } } }) } },
  });
  expect(checked.ok && [...checked.value.skills.pins.keys()]).toEqual(["builtin"]);
});
