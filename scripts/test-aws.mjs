// Runs what would be deployed as AWS would run it, on this machine; then says by name what was skipped, and counts.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const root = join(import.meta.dirname, "..");
const env = { ...process.env, PATH: `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH ?? ""}` };
const python = process.env.SKILLBROKER_TEST_PYTHON ?? "python3";

/** Why tests may be skipped by name; undefined when this machine has everything. */
function findAbsence() {
  const { status, error } = spawnSync(python, ["-c", "import moto.server, flask"], { stdio: "ignore" });
  if (status === 0) return undefined;
  return error === undefined ? `moto is not here: ${python} has no moto[server]` : `moto is not here: no ${python}`;
}

/** @param {string} report */
function runTests(report) {
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const words = [vitest, "run", "--config", join(root, "vitest.aws.config.ts"), ...reporters, ...process.argv.slice(2)];
  return spawnSync(process.execPath, words, { cwd: root, stdio: "inherit", env }).status === 0;
}

/** @param {{ testResults: { assertionResults: { status: string, fullName: string }[] }[] }} report */
function skippedIn({ testResults }) {
  const results = testResults.flatMap(({ assertionResults }) => assertionResults);
  return results.filter(({ status }) => status !== "passed" && status !== "failed").map(({ fullName }) => fullName);
}

const directory = mkdtempSync(join(tmpdir(), "skillbroker-aws-report-"));
try {
  const file = join(directory, "report.json");
  const ok = runTests(file);
  const none = { numPassedTests: 0, numFailedTests: 0, testResults: [] };
  const report = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : none;
  const skipped = skippedIn(report);
  const absence = findAbsence();
  if (absence !== undefined) console.log(`\n${absence}; S3 was the tests' own server instead`);
  for (const name of skipped) console.log(`skipped: ${name}`);
  // A file that cannot be loaded fails the run without failing a test; a run of nothing shows nothing.
  const failed = ok && report.numPassedTests > 0 ? report.numFailedTests : Math.max(1, report.numFailedTests);
  console.log(`\n${report.numPassedTests} passed, ${failed} failed, ${skipped.length} skipped`);
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
