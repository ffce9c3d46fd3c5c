// The one test command: types, lint and every test, then one line that counts them.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const root = join(import.meta.dirname, "..");
const bin = join(root, "node_modules", ".bin");
const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ""}` };
/** Independent programs that judge our PDF files, and the Debian packages that have them. */
const JUDGES = { pdftotext: "poppler-utils", qpdf: "qpdf" };
const APT_TIMEOUT_MS = 180_000;

/** @param {string} program */
function isOnPath(program) {
  return (env.PATH ?? "").split(delimiter).some((directory) => existsSync(join(directory, program)));
}

function installJudges() {
  const missing = Object.keys(JUDGES).filter((program) => !isOnPath(program));
  if (missing.length === 0) return;
  const packages = missing.map((program) => JUDGES[program]);
  if (process.getuid?.() === 0 && isOnPath("apt-get")) {
    console.log(`installing ${packages.join(", ")} for the tests of PDF files`);
    const quiet = { stdio: "ignore", timeout: APT_TIMEOUT_MS, env: { ...env, DEBIAN_FRONTEND: "noninteractive" } };
    spawnSync("apt-get", ["update"], quiet);
    spawnSync("apt-get", ["install", "-y", "--no-install-recommends", ...packages], quiet);
  }
  const absent = missing.filter((program) => !isOnPath(program));
  if (absent.length > 0) console.log(`not here: ${absent.join(", ")}; the tests that need them are skipped by name`);
}

/** @param {string} name @param {string[]} words @returns {boolean} */
function check(name, words) {
  const started = performance.now();
  const [program = "", ...args] = words;
  const { status } = spawnSync(program, args, {
    cwd: root,
    stdio: "inherit",
    env,
    shell: process.platform === "win32",
  });
  console.log(`${status === 0 ? "ok    " : "FAILED"} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  return status === 0;
}

function runTests() {
  const directory = mkdtempSync(join(tmpdir(), "skillbroker-tests-"));
  const report = join(directory, "report.json");
  try {
    const passed = check("tests", [
      "vitest",
      "run",
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
    ]);
    if (!existsSync(report)) return { passed: 0, failed: 1, skipped: 0 };
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = JSON.parse(readFileSync(report, "utf8"));
    // A file that cannot be loaded fails the run without failing a test.
    const failed = passed ? numFailedTests : Math.max(1, numFailedTests);
    return { passed: numPassedTests, failed, skipped: numPendingTests + numTodoTests };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

installJudges();
const checks = [
  check("types", ["tsc", "--noEmit", "-p", "."]),
  check("lint and format", ["biome", "check", "--error-on-warnings", "."]),
];
const tests = runTests();
const passed = checks.filter(Boolean).length + tests.passed;
const failed = checks.filter((ok) => !ok).length + tests.failed;
console.log(`\n${passed} passed, ${failed} failed${tests.skipped > 0 ? `, ${tests.skipped} skipped` : ""}`);
process.exitCode = failed === 0 ? 0 : 1;
