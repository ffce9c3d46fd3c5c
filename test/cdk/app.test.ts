import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runApp } from "./kit/run-app.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";

const temp = makeTempDirectory();

test("mistakes in the settings end the synth in one list, with no stack and no template", () => {
  const output = join(temp, "settings");
  const ran = runApp(output, { tools: ["status_update"], auth: "open", artifactDays: "7" });
  expect(ran.code).toBe(1);
  const listed = ran.stderr.split("\n").filter((line) => line.startsWith("  "));
  expect(listed.map((line) => line.trim().split(":")[0]).sort()).toEqual(["/artifactDays", "/auth", "/tools/0"]);
  expect(ran.stderr).not.toMatch(/^\s+at |node:internal|\.ts:\d/m);
  expect(existsSync(join(output, "SkillBroker.template.json"))).toBe(false);
});
