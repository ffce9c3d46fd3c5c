import { readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";

/** Rules of the house that neither the linter nor the import rule can say. */

const ROOT = join(import.meta.dirname, "../..");

/** What is not part of the project, or was not written by hand. */
const FOREIGN = new Set(["node_modules", ".git", "cdk.out", ".skillbroker", "out"]);
const BINARY = /\.(pdf|png|ico|ics|gz|zip|sqlite)$/;

/** Paths relative to the project of every file below a folder. */
function filesBelow(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (FOREIGN.has(entry.name)) return [];
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

type Line = { readonly path: string; readonly number: number; readonly text: string };

function linesOf(path: string): readonly Line[] {
  const lines = readFileSync(join(ROOT, path), "utf8").split("\n");
  return lines.map((text, index) => ({ path, number: index + 1, text }));
}

function find(pattern: RegExp, paths: readonly string[]): readonly string[] {
  return paths
    .flatMap(linesOf)
    .filter(({ text }) => pattern.test(text))
    .map(({ path, number, text }) => `${path}:${number}: ${text.trim()}`);
}

const functions = filesBelow("functions");
const product = [...functions, ...filesBelow("local"), ...filesBelow("cdk")].filter((path) => path.endsWith(".ts"));
const everything = filesBelow(".").filter((path) => !BINARY.test(path));

test("the search finds what is there", () => {
  expect(product.length).toBeGreaterThan(70);
  expect(everything).toContain(".gitattributes");
  expect(find(/HOUSE_RULE_MARKER/, ["test/architecture/house-rules.test.ts"])).not.toEqual([]);
});

test("only the loader makes a Skill, so that a skill that was not verified cannot be expressed", () => {
  const casts = find(/\bas (unknown as )?Skill\b|<Skill>[({\w]/, product);
  expect(casts.map((line) => line.split(":")[0])).toEqual(["functions/repository/load.ts"]);
});

test("nothing is ordered or written by the locale of the machine: digests and answers are the same everywhere", () => {
  expect(find(/localeCompare|\.toLocale/, functions)).toEqual([]);
});

test("no function leaves work for after its reply, when a Lambda is frozen", () => {
  expect(find(/\bset(Timeout|Interval|Immediate)\b/, functions)).toEqual([]);
});

test("no file holds a path of the machine that it was written on", () => {
  expect(find(/\/(home|Users)\/(?!someone\/)\w/, everything)).toEqual([]);
  const own = [ROOT, homedir()].filter((path) => path.split("/").length > 2);
  expect(everything.flatMap(linesOf).filter(({ text }) => own.some((path) => text.includes(path)))).toEqual([]);
});

describe("packages", () => {
  const Versions = z.record(z.string(), z.string()).optional();
  const Manifest = z.object({
    dependencies: Versions,
    devDependencies: Versions,
    optionalDependencies: Versions,
    peerDependencies: Versions,
    overrides: Versions,
  });
  const Lock = z.object({ packages: z.record(z.string(), z.record(z.string(), z.unknown())) });

  test("every version in package.json is exact, but for what another app brings: from the tested version on", () => {
    const { peerDependencies = {}, ...manifest } = Manifest.parse(
      JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")),
    );
    const tested = Object.keys(peerDependencies).map((name) => [name, `^${manifest.devDependencies?.[name]}`]);
    expect(peerDependencies).toEqual(Object.fromEntries(tested));
    const versions = Object.values(manifest).flatMap((versions) => Object.entries(versions ?? {}));
    expect(versions.length).toBeGreaterThan(20);
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
  });

  test("the lockfile names no registry and holds the digest of every package", () => {
    const { packages } = Lock.parse(JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")));
    const installed = Object.entries(packages).filter(([path]) => path !== "");
    expect(installed.length).toBeGreaterThan(100);
    expect(installed.filter(([, entry]) => "resolved" in entry).map(([path]) => path)).toEqual([]);
    const unpinned = installed.filter(([, entry]) => entry.integrity === undefined && entry.inBundle !== true);
    expect(unpinned.map(([path]) => path)).toEqual([]);
  });
});
