#!/usr/bin/env node
// Plain JavaScript that any Node from 18 on can read: everything else needs the Node that the lockfile installs.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const WANTED_MAJOR = 24;
const here = dirname(fileURLToPath(import.meta.url));
const main = findMain();

if (Number(process.versions.node.split(".")[0]) >= WANTED_MAJOR) await import(pathToFileURL(main).href);
else runWith(findNode());

/**
 * The sources, or what was built of them: a package holds only that, since below node_modules Node reads no TypeScript.
 */
function findMain() {
  const source = join(here, "main.ts");
  return existsSync(source) ? source : join(here, "..", "dist", "local", "main.js");
}

/** The program itself and not its shim in `.bin`: a shell between would take the quotes of JSON arguments apart. */
function findNode() {
  const platform = `${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  for (const modules of modulesAbove(here)) {
    for (const name of [`node-${platform}`, `node-bin-${platform}`]) {
      const manifest = join(modules, name, "package.json");
      if (existsSync(manifest)) return join(modules, name, JSON.parse(readFileSync(manifest, "utf8")).bin.node);
    }
  }
  console.error(
    `skillbroker needs Node ${WANTED_MAJOR} or newer, this is ${process.versions.node}; install one and run the command with it, or run "npm ci" in a checkout, which brings one`,
  );
  return process.exit(1);
}

/** Where packages may be, the nearest first: a package's own dependencies are mostly beside it and not in it. */
function modulesAbove(directory) {
  const above = dirname(directory);
  return [join(directory, "node_modules"), ...(above === directory ? [] : modulesAbove(above))];
}

/**
 * The end of the child is the end of this process. A Ctrl-C reaches the child from the terminal, all else from here.
 */
function runWith(node) {
  const child = spawn(node, [main, ...process.argv.slice(2)], { stdio: "inherit" });
  process.on("SIGINT", () => undefined);
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(`skillbroker cannot start ${node}: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
}
