#!/usr/bin/env node
// Plain JavaScript that any Node from 18 on can read: everything else needs the Node that the lockfile installs.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const WANTED_MAJOR = 24;
const here = dirname(fileURLToPath(import.meta.url));
const main = join(here, "main.ts");

if (Number(process.versions.node.split(".")[0]) >= WANTED_MAJOR) {
  await import(main);
} else {
  const bundled = join(here, "..", "node_modules", ".bin", process.platform === "win32" ? "node.cmd" : "node");
  if (!existsSync(bundled)) {
    console.error(
      `skillbroker needs Node ${WANTED_MAJOR} or newer, this is ${process.versions.node}; run "npm ci" first, it installs one beside the project`,
    );
    process.exit(1);
  }
  const run = spawnSync(bundled, [main, ...process.argv.slice(2)], {
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  process.exit(run.status ?? 1);
}
