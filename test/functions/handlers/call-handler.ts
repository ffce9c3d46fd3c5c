import { ArtifactEnvelope } from "../../../functions/contract/artifact.ts";
import { Fault, type Violation } from "../../../functions/contract/fault.ts";
import type { Handler } from "../../../functions/contract/ports.ts";
import type { CallableSkill } from "../../../functions/contract/skill.ts";
import { parseToolRef } from "../../../functions/contract/tool.ts";

/** When every job of these tests was created. */
export const NOW = Date.UTC(2026, 10, 30, 7, 0, 0, 123);

/** The answer without its artifact, and the file: its name, its bytes and, as UTF-8, its text. */
export function callHandler(handler: Handler, given: Readonly<Record<string, unknown>>, skill?: CallableSkill) {
  const { artifact, ...output } = handler({ arguments: given, skill, now: NOW });
  const { name, media_type: mediaType, base64, size_bytes: declared } = ArtifactEnvelope.parse(artifact);
  const bytes = Buffer.from(base64, "base64");
  if (bytes.length !== declared) throw new Error(`${declared} bytes declared, ${bytes.length} given`);
  return { output, name, mediaType, bytes, text: bytes.toString("utf8") };
}

/** The violations with which a handler refuses; throws when it does not. */
export function refusalsOf(
  handler: Handler,
  given: Readonly<Record<string, unknown>>,
  skill?: CallableSkill,
): readonly Violation[] {
  try {
    handler({ arguments: given, skill, now: NOW });
  } catch (error) {
    if (error instanceof Fault && error.code === "TOOL_INPUT_INVALID") return error.violations;
    throw error;
  }
  throw new Error("the handler accepted the arguments");
}

/** A skill that never saw a disk, for handlers that read templates. */
export function skillWithTemplate(document: string | undefined): CallableSkill {
  const ref = parseToolRef("demo_document@1");
  if (ref === undefined) throw new Error("no ref");
  const templates = new Map(document === undefined ? [] : [["document", document]]);
  return { ref, id: "demo_document", version: "1", handler: "markdown_document", inputSchema: {}, templates };
}
