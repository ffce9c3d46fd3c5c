import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A new directory outside the checkout, removed after the file's last test. */
export function makeTempDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "skillbroker-cdk-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
