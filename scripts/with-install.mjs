// Installs what the lockfile says when it is missing or stale, then runs a program on the Node that came with it.
// Plain JavaScript for any Node from 18 on, without dependencies: it is what runs before there are any.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const WANTED_MAJOR = 24;
const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const stamp = join(root, "node_modules", ".skillbroker-lock");
const isWindows = process.platform === "win32";

/** @param {string} message @returns {never} */
function stop(message) {
  console.error(message);
  process.exit(1);
}

function lockfileDigest() {
  return createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
}

function isInstalled() {
  return existsSync(stamp) && readFileSync(stamp, "utf8") === lockfileDigest();
}

function install() {
  console.error("Installing the dependencies of the lockfile (once, about a minute) …");
  const npm = process.env.npm_execpath;
  const words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const [program, args] = npm?.endsWith(".js") ? [process.execPath, [npm, ...words]] : ["npm", words];
  const { status, error } = spawnSync(program, args, {
    cwd: root,
    stdio: ["ignore", 2, 2],
    shell: isWindows && program === "npm",
  });
  if (error) stop(`npm could not be started: ${error.message}`);
  if (status !== 0) stop("npm ci failed; its messages are above. Check the network and run the command again.");
  // Written last, so that an installation that was cut off is done again.
  writeFileSync(stamp, lockfileDigest());
}

function findNode() {
  const bundled = join(root, "node_modules", ".bin", isWindows ? "node.cmd" : "node");
  if (existsSync(bundled)) return bundled;
  if (Number(process.versions.node.split(".")[0]) >= WANTED_MAJOR) return process.execPath;
  return stop(
    `Node ${WANTED_MAJOR} is needed; npm has none for ${process.platform}-${process.arch}. Install it and run the command again.`,
  );
}

if (!isInstalled()) install();
const run = spawnSync(findNode(), process.argv.slice(2), { cwd: root, stdio: "inherit", shell: isWindows });
if (run.error) stop(`the program could not be started: ${run.error.message}`);
process.exit(run.status ?? 1);
