import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { cruise, type ICruiseOptions, type ICruiseResult } from "dependency-cruiser";
import extractDepcruiseOptions from "dependency-cruiser/config-utl/extract-depcruise-options";
import { beforeAll, describe, expect, test } from "vitest";
import { temporaryDirectoryOfSuite } from "./temporary-directory.ts";

/** The import rule, run over the project and over a copy with one violation of each rule planted. */

const ROOT = join(import.meta.dirname, "../..");
const SOURCES = ["functions", "local", "cdk", "bench"];

const options: ICruiseOptions = await extractDepcruiseOptions(join(ROOT, ".dependency-cruiser.mjs"));
const rules = options.ruleSet?.forbidden ?? [];

async function cruiseAt(baseDir: string, folders: readonly string[]): Promise<ICruiseResult> {
  const { output } = await cruise([...folders], { ...options, baseDir });
  if (typeof output === "string") throw new Error("the result of the cruise is text");
  return output;
}

/** Names of the rules that each module breaks. */
function brokenRules({ summary }: ICruiseResult): ReadonlyMap<string, ReadonlySet<string>> {
  const broken = new Map<string, Set<string>>();
  for (const { from, rule } of summary.violations) {
    broken.set(from, (broken.get(from) ?? new Set()).add(rule.name));
  }
  return broken;
}

function typescriptFiles(root: string, folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => join(folder, path));
}

describe("the project", () => {
  test("every import goes the way that the rules allow", async () => {
    const { summary } = await cruiseAt(ROOT, [...SOURCES, "test"]);
    const violations = summary.violations.map(({ from, to, rule }) => {
      const comment = rules.find(({ name }) => name === rule.name)?.comment;
      return `${from} imports ${to} (${rule.name}): ${comment}`;
    });
    expect(violations).toEqual([]);
  });

  test("every source file is among the modules that were looked at, with what it imports", async () => {
    const { modules } = await cruiseAt(ROOT, SOURCES);
    const seen = new Map(modules.map((module) => [module.source, module.dependencies.length]));
    const files = SOURCES.flatMap((folder) => typescriptFiles(ROOT, folder));
    expect(files.length).toBeGreaterThan(70);
    for (const file of files) expect([...seen.keys()]).toContain(file);
    for (const file of files) {
      const imports = readFileSync(join(ROOT, file), "utf8").match(/^(?:import|\} from) .*"/gm) ?? [];
      if (imports.length > 0) expect(seen.get(file), file).toBeGreaterThan(0);
    }
  });
});

type Plant = { readonly rule: string; readonly path: string; readonly text: string };

function plant(rule: string, path: string, ...lines: readonly string[]): Plant {
  return { rule, path, text: lines.join("\n") };
}

const typeOf = (name: string, module: string) => `import type { ${name} } from "${module}"; export type X = ${name};`;

/** Types count, so most of these would leave no trace when the program runs. */
const PLANTS: readonly Plant[] = [
  plant("no-cycle", "functions/job/planted-1.ts", typeOf("X as Y", "./planted-2.ts").replace("= X as Y", "= Y")),
  plant("everything-resolves", "local/planted-unresolved.ts", 'import "./no-such-file.ts";'),
  plant("packages-are-declared", "local/planted-undeclared.ts", 'import "acorn";'),
  plant("functions-use-no-dev-package", "functions/wiring/planted-dev.ts", 'import "esbuild";'),
  plant("contract-folders", "functions/contract/planted.ts", typeOf("Pins", "../repository/pins.ts")),
  plant("contract-packages", "functions/contract/planted-yaml.ts", 'import "yaml";'),
  plant("contract-does-nothing", "functions/contract/planted-net.ts", 'import "node:net";'),
  plant("repository-folders", "functions/repository/planted.ts", typeOf("Quota", "../broker/quota.ts")),
  plant("handlers-folders", "functions/handlers/planted.ts", typeOf("Pins", "../repository/pins.ts")),
  plant("broker-folders", "functions/broker/planted.ts", typeOf("SkillRegistry", "../catalog/skill-registry.ts")),
  plant("mcp-folders", "functions/mcp/planted.ts", typeOf("Quota", "../broker/quota.ts")),
  plant("aws-folders", "functions/aws/planted.ts", typeOf("ApiOptions", "../wiring/create-api.ts")),
  plant(
    "catalog-folders",
    "functions/catalog/planted.ts",
    'import { runJob } from "../job/run-job.ts"; export const x = runJob;',
  ),
  plant("job-folders", "functions/job/planted.ts", typeOf("Pins", "../repository/pins.ts")),
  plant("refresh-folders", "functions/refresh/planted.ts", typeOf("Quota", "../broker/quota.ts")),
  plant(
    "wiring-folders",
    "functions/wiring/planted.ts",
    'import { createS3Client } from "../aws/s3-object-store.ts"; export const x = createS3Client;',
  ),
  plant("folders-have-a-rule", "functions/utils/planted.ts", 'import "../contract/text.ts";'),
  plant("repository-packages", "functions/repository/planted-package.ts", 'import "mustache";'),
  plant("handlers-packages", "functions/handlers/planted-ajv.ts", 'import "ajv";'),
  plant("broker-packages", "functions/broker/planted-package.ts", 'import "yaml";'),
  plant("mcp-packages", "functions/mcp/planted-package.ts", 'import "yaml";'),
  plant("aws-packages", "functions/aws/planted-package.ts", 'import "yaml";'),
  plant("catalog-packages", "functions/catalog/planted-package.ts", 'import "yaml";'),
  plant("job-packages", "functions/job/planted-package.ts", 'import "yaml";'),
  plant("refresh-packages", "functions/refresh/planted-package.ts", 'import "yaml";'),
  plant("wiring-packages", "functions/wiring/planted-package.ts", 'import "yaml";'),
  plant("handlers-are-pure", "functions/handlers/planted-process.ts", 'import "node:child_process";'),
  plant("only-tree-reads-files", "functions/repository/planted-files.ts", 'import "node:fs/promises";'),
  plant("functions-stand-alone", "functions/job/planted-local.ts", typeOf("Project", "../../local/project.ts")),
  plant("entry-points-are-not-imported", "local/planted-entry.ts", 'import "../functions/http.lambda.ts";'),
  plant("local-sees-functions", "local/planted-cdk.ts", 'import "../cdk/app.ts";'),
  plant("cdk-sees-contract-and-repository", "cdk/planted.ts", typeOf("Quota", "../functions/broker/quota.ts")),
  plant("aws-stays-at-the-edge", "functions/job/planted-aws.ts", typeOf("Context", "aws-lambda")),
  plant("local-uses-aws-types-only", "local/planted-aws.ts", 'import "@aws-sdk/client-s3";'),
  plant("cdk-packages-stay-in-cdk", "local/planted-cdk-library.ts", typeOf("Stack", "aws-cdk-lib")),
  plant("only-mcp-speaks-mcp", "functions/wiring/planted-mcp.ts", 'import "@modelcontextprotocol/client";'),
  plant("nothing-imports-tests", "cdk/planted-test.ts", 'import "../test/planted-kit.ts";'),
  plant("skills-are-data", "local/planted-skill.ts", 'import "../skills/planted/run.ts";'),
  plant("pins-are-compiled-in", "functions/wiring/planted-pins.ts", 'import "../../skills/pins.json";'),
];

/** What the planted modules import and the project does not have. */
const TARGETS: Readonly<Record<string, string>> = {
  "functions/job/planted-2.ts": typeOf("X", "./planted-1.ts").replace("type X =", "type Y ="),
  "test/planted-kit.ts": "export const x = 1;",
  "skills/planted/run.ts": "export const x = 1;",
  "skills/pins.json": "{}",
};

/** Imports that look like violations and are none. */
const ALLOWED: Readonly<Record<string, string>> = {
  "functions/planted.lambda.ts":
    'import "./aws/s3-object-store.ts"; import "../skills/pins.json"; import "@middy/core";',
  "local/planted-allowed.ts": `${typeOf("Context", "aws-lambda")} import "../functions/wiring/create-api.ts";`,
  "cdk/planted-allowed.ts": 'import "../functions/handlers/table.ts"; import "../functions/repository/load.ts";',
  "functions/contract/planted-allowed.ts": 'import "zod"; import "node:crypto";',
};

describe("a copy with violations planted", () => {
  let broken: ReadonlyMap<string, ReadonlySet<string>> = new Map();

  const directory = temporaryDirectoryOfSuite();

  beforeAll(async () => {
    const root = directory();
    for (const folder of ["functions", "local", "cdk", "package.json"]) {
      cpSync(join(ROOT, folder), join(root, folder), { recursive: true });
    }
    mkdirSync(join(root, "node_modules"));
    for (const name of readdirSync(join(ROOT, "node_modules"))) {
      symlinkSync(join(ROOT, "node_modules", name), join(root, "node_modules", name));
    }
    const planted = PLANTS.map(({ path, text }) => [path, text] as const);
    for (const [path, text] of [...planted, ...Object.entries(TARGETS), ...Object.entries(ALLOWED)]) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    broken = brokenRules(await cruiseAt(root, ["functions", "local", "cdk"]));
  });

  test.each(PLANTS)("$rule fires for $path", ({ rule, path }) => {
    expect([...(broken.get(path) ?? [])]).toContain(rule);
  });

  test.each(Object.keys(ALLOWED))("no rule fires for %s", (path) => {
    expect([...(broken.get(path) ?? [])]).toEqual([]);
  });

  test("there is a violation for every rule, and every rule says what to do", () => {
    expect(PLANTS.map(({ rule }) => rule).toSorted()).toEqual(rules.map(({ name }) => name ?? "").toSorted());
    for (const { comment, severity } of rules) {
      expect(severity).toBe("error");
      expect(comment?.length).toBeGreaterThan(40);
    }
  });
});
