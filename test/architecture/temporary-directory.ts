import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";

/** A directory for all tests of a suite, removed after the last. Call where tests are declared. */
export function temporaryDirectoryOfSuite(): () => string {
  let directory = "";
  beforeAll(() => {
    directory = realpathSync(mkdtempSync(join(tmpdir(), "skillbroker-test-")));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  return () => directory;
}
