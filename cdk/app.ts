import { App } from "aws-cdk-lib";
import { CURRENTLY_RECOMMENDED_FLAGS } from "aws-cdk-lib/cx-api";
import { Fault } from "../functions/contract/fault.ts";
import { synthesise } from "./synth.ts";

/**
 * What `cdk synth` runs. Mistakes of the operator are told in one list, without a stack; `autoSynth` is off, because
 * it would write an empty template after they were told.
 */

// What `cdk init` would write into cdk.json, 85 lines; the library's exact version fixes them as well.
const app = new App({ autoSynth: false, context: CURRENTLY_RECOMMENDED_FLAGS });

try {
  await synthesise(app);
} catch (error) {
  if (!(error instanceof Fault)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
