import { appendFileSync, cpSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
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
