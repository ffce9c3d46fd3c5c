// Makes what the package holds beside its skills: JavaScript and types of the sources, and the code of the functions.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { buildFunctions } from "../cdk/build-functions.ts";

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");
const compiler = join(root, "node_modules", "typescript", "bin", "tsc");

rmSync(dist, { recursive: true, force: true });
const { status } = spawnSync(process.execPath, [compiler, "-p", "tsconfig.build.json"], {
  cwd: root,
  stdio: "inherit",
});
if (status === 0) await buildFunctions({ root, directory: join(dist, "functions-code") });
process.exitCode = status === 0 ? 0 : 1;
