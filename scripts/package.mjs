// Makes the package that other CDK apps install: builds, lays out what it holds, packs it once and says where it is.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const WANTED_NODE = ">=24";
/** What npm puts into every package. */
const ALWAYS = ["README.md", "LICENSE"];
/** What is for the checkout alone; a Node of the package's own would take the place of the app's. */
const OF_CHECKOUT = ["private", "scripts", "devDependencies", "optionalDependencies"];
const isWindows = process.platform === "win32";
const root = join(import.meta.dirname, "..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** @param {string} program @param {readonly string[]} words @param {string} cwd @returns {string} what it printed */
function run(program, words, cwd) {
  const { status, stdout, stderr, error } = spawnSync(program, words, {
    cwd,
    encoding: "utf8",
    shell: isWindows && program === "npm",
  });
  if (error) throw error;
  if (status === 0) return stdout;
  process.stderr.write(`${stdout}${stderr}`);
  process.exit(1);
}

/** @param {string} directory */
function layOut(directory) {
  for (const name of [...manifest.files, ...ALWAYS]) {
    if (existsSync(join(root, name))) cpSync(join(root, name), join(directory, name), { recursive: true });
  }
  const kept = Object.entries(manifest).filter(([name]) => !OF_CHECKOUT.includes(name));
  const cleaned = { ...Object.fromEntries(kept), engines: { node: WANTED_NODE } };
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(cleaned, null, 2)}\n`);
}

run(process.execPath, [join(root, "scripts/build.mjs")], root);
const stage = mkdtempSync(join(tmpdir(), "skillbroker-package-"));
try {
  layOut(stage);
  const words = [
    "pack",
    "--offline",
    "--ignore-scripts",
    "--silent",
    "--pack-destination",
    isWindows ? `"${root}"` : root,
  ];
  const [archive = ""] = run("npm", words, stage).trim().split("\n").slice(-1);
  console.log(join(root, archive));
} finally {
  rmSync(stage, { recursive: true, force: true });
}
