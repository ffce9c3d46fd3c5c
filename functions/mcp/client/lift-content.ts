import * as z from "zod";
import { type Outcome, refuse, succeed } from "../../contract/fault.ts";
import type { RemoteAnswer } from "../../contract/ports.ts";
import { toVisible } from "../../contract/printable.ts";
import { firstCodePoints, utf8ByteCount } from "../../contract/text.ts";
import { toViolations } from "../../contract/violations.ts";
import { liftBlocks } from "./lift-blocks.ts";
import { findUnkeepable, withMendedText } from "./plain-json.ts";

/** What a tool of a server answered, judged as a whole, its files taken out. */

export type LiftOptions = {
  /** Bytes of the answer as JSON, files included. */
  readonly maxBytes: number;
  readonly maxFiles: number;
  /**
   * Takes out what was sent to the server in confidence: a tool that shows the headers or variables that it was given
   * would hand the operator's credential to whoever may call it.
   */
  readonly redact: (text: string) => string;
};

/** Arrays and objects inside one another; what walks a deeper answer recursively would overflow. */
const MAX_DEPTH = 64;
const MAX_FAILURE_CODE_POINTS = 500;

const ToolAnswer = z
  .object({
    content: z.array(z.unknown()).optional(),
    structuredContent: z.unknown().optional(),
    isError: z.boolean().optional(),
  })
  .refine((answer) => answer.content !== undefined || answer.structuredContent !== undefined, "has no content");

/**
 * `{content, structured_content?}` and the files. `TOOL_FAILED` when the answer says so, with what it says;
 * `OUTPUT_TOO_LARGE` past the limit; `ARTIFACT_INVALID` for a file that is not base64; `SERVER_UNAVAILABLE` for what is
 * no answer of a tool.
 */
export function liftContent(answer: unknown, { maxBytes, maxFiles, redact }: LiftOptions): Outcome<RemoteAnswer> {
  const unkeepable = findUnkeepable(answer, { maxDepth: MAX_DEPTH, mendsText: true });
  if (unkeepable !== undefined) return refuse("SERVER_UNAVAILABLE", `its answer cannot be kept: ${unkeepable}`);
  // A tool that cuts its texts by UTF-16 units leaves half a character at the end.
  const kept = withMendedText(answer, (text) => redact(text.toWellFormed()));
  const bytes = utf8ByteCount(JSON.stringify(kept) ?? "");
  if (bytes > maxBytes) return refuse("OUTPUT_TOO_LARGE", `the answer has ${bytes} bytes, at most ${maxBytes} allowed`);
  const parsed = ToolAnswer.safeParse(kept);
  if (!parsed.success) return refuseAnswer(parsed.error);
  const { content = [], structuredContent, isError } = parsed.data;
  if (isError === true) return refuse("TOOL_FAILED", failureOf(content));
  const lifted = liftBlocks(content, { maxFiles });
  if (!lifted.ok) return lifted;
  const { blocks, artifacts } = lifted.value;
  const structured = structuredContent === undefined ? {} : { structured_content: structuredContent };
  return succeed({ output: { content: blocks, ...structured }, artifacts });
}

function refuseAnswer(error: z.ZodError): Outcome<never> {
  const [first] = toViolations(error);
  return refuse("SERVER_UNAVAILABLE", `its answer is none of a tool: ${first?.path || "/"}: ${first?.message}`);
}

const Text = z.object({ type: z.literal("text"), text: z.string() });

function failureOf(content: readonly unknown[]): string {
  const said = content.flatMap((block) => Text.safeParse(block).data?.text ?? []).join("\n");
  return said.trim() === "" ? "the tool failed, and does not say why" : `the tool failed: ${toMessage(said)}`;
}

/** Text of others for a message: one line of bounded length, nothing in it that acts on a reader. */
export function toMessage(text: string): string {
  return toVisible(firstCodePoints(text.trim(), MAX_FAILURE_CODE_POINTS));
}
