import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buildSync } from "esbuild";

/**
 * What each runtime dependency would add to a cold start if it were imported eagerly: process start to import done,
 * bundled and minified like the function, as a ratio over an empty module in the same run.
 */

const ROUNDS = 15;
const root = dirname(import.meta.dirname);
const dependencies = Object.keys(JSON.parse(readFileSync(join(root, "package.json"), "utf8")).dependencies).sort();
const ENTRIES: ReadonlyMap<string, string> = new Map([
  ["ajv", `import { Ajv } from "ajv"; import { Ajv2020 } from "ajv/dist/2020.js"; globalThis.kept = [Ajv, Ajv2020];`],
  ["csv-stringify", `import { stringify } from "csv-stringify/sync"; globalThis.kept = stringify;`],
]);

const directory = mkdtempSync(join(tmpdir(), "skillbroker-bench-"));
try {
  const modules = [{ name: "(empty)", path: bundle("empty", "globalThis.kept = 1;") }];
  for (const name of dependencies) {
    const entry = ENTRIES.get(name) ?? `import * as kept from ${JSON.stringify(name)}; globalThis.kept = kept;`;
    modules.push({ name, path: bundle(name.replaceAll(/\W/g, "_"), entry) });
  }
  const times = new Map<string, number[]>();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { name, path } of modules) times.set(name, [...(times.get(name) ?? []), startMs(path)]);
  }
  const base = median(times.get("(empty)") ?? []);
  for (const { name, path } of modules) {
    const ratio = median(times.get(name) ?? []) / base;
    console.log(
      `${ratio.toFixed(2).padStart(6)}x  ${String(Math.round(statSync(path).size / 1024)).padStart(5)} KiB  ${name}`,
    );
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}

function bundle(name: string, contents: string): string {
  const outfile = join(directory, `${name}.mjs`);
  const banner = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;
  buildSync({
    stdin: { contents, resolveDir: root, loader: "ts" },
    outfile,
    bundle: true,
    minify: true,
    platform: "node",
    format: "esm",
    target: "node24",
    banner: { js: banner },
    logLevel: "error",
  });
  return outfile;
}

function startMs(path: string): number {
  const started = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [path]);
  if (status !== 0) throw new Error(String(stderr));
  return performance.now() - started;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
