import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import * as z from "zod";
import { ROOT } from "../../cdk/kit/run-app.ts";

/**
 * The package as `npm run package` makes it, in the node_modules of an app outside the checkout, beside what it
 * declares to need and nothing else of the checkout.
 */

/**
 * What the package is made from. A copy is built, since a checkout that others work in should not change under them.
 */
const SOURCES = ["cdk", "docs", "functions", "local", "scripts", "skills"] as const;
const FILES = [
  "LICENSE",
  "README.md",
  "cdk.json",
  "mcp.json",
  "package.json",
  "tsconfig.json",
  "tsconfig.build.json",
] as const;

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

export type PackedApp = {
  /** Directory of the app. */
  readonly directory: string;
  /** Directory of the package in it. */
  readonly packageDirectory: string;
  readonly manifest: Manifest;
  write(path: string, text: string): void;
  /** Runs Node in the app's directory, with nothing in the environment but these and where programs are. */
  node(words: readonly string[], env?: Readonly<Record<string, string>>): Ran;
};

const Versions = z.record(z.string(), z.string());
const Manifest = z.object({
  bin: z.record(z.string(), z.string()),
  dependencies: Versions,
  peerDependencies: Versions,
});
type Manifest = z.infer<typeof Manifest>;

/** Throws what a program said that did not end well. */
export function packApp(): PackedApp {
  const temp = mkdtempSync(join(tmpdir(), "skillbroker-packed-"));
  const directory = join(temp, "app");
  const packageDirectory = join(directory, "node_modules", "skillbroker");
  unpack(pack(join(temp, "checkout")), packageDirectory);
  const manifest = Manifest.parse(JSON.parse(readFileSync(join(packageDirectory, "package.json"), "utf8")));
  const needed = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies), "@types/node"];
  for (const name of needed) link(name, directory);
  const node = (words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    run(process.execPath, words, { cwd: directory, env: { PATH, ...env } });
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  };
  return { directory, packageDirectory, manifest, node, write };
}

const PATH = [dirname(process.execPath), ...(process.env.PATH ?? "").split(delimiter)].join(delimiter);

function run(program: string, words: readonly string[], options: { cwd: string; env: Record<string, string> }): Ran {
  const { status, stdout, stderr, error } = spawnSync(program, words, { ...options, encoding: "utf8" });
  if (error) throw error;
  return { code: status, stdout, stderr };
}

function must({ code, stdout, stderr }: Ran): string {
  if (code !== 0) throw new Error(`ended with ${code}: ${stderr}${stdout}`);
  return stdout;
}

/** Path of the archive. */
function pack(checkout: string): string {
  for (const name of [...SOURCES, ...FILES]) cpSync(join(ROOT, name), join(checkout, name), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(checkout, "node_modules"));
  const options = { cwd: checkout, env: { PATH, HOME: checkout } };
  const told = must(run(process.execPath, ["scripts/package.mjs"], options));
  if (!/^\/.*\.tgz\n$/.test(told)) throw new Error(`the path of an archive alone was expected, it said ${told}`);
  return told.trim();
}

function unpack(archive: string, directory: string): void {
  mkdirSync(directory, { recursive: true });
  const words = ["-xzf", basename(archive), "-C", directory, "--strip-components=1"];
  must(run("tar", words, { cwd: dirname(archive), env: { PATH } }));
}

function link(name: string, app: string): void {
  const target = join(app, "node_modules", name);
  mkdirSync(dirname(target), { recursive: true });
  symlinkSync(join(ROOT, "node_modules", name), target);
}
