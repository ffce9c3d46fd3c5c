import type { RegisteredTool } from "../broker/tool-registry.ts";
import { digestOfJson } from "../contract/json.ts";
import { BUILTIN_ORIGIN, type JsonObject, ToolRef, type ToolSpec } from "../contract/tool.ts";
import { MAX_PDF_BODY, MAX_PDF_TITLE } from "../handlers/create-pdf.ts";
import { MAX_PLAN_STEPS, MAX_STEP } from "../handlers/make-plan.ts";

/** The tools that are written in the source: the whole of the bundle `local`. */

const CREATE_PDF = {
  id: "create_pdf",
  version: "1",
  description:
    "Make a PDF document out of text you already have and hand it to the user as a file. Arguments: body (the text, " +
    "at most 12,000 characters), title (optional heading), filename (optional). Use it only when the user asked for a " +
    "document or a file, once per document; never to answer a question.",
  inputSchema: {
    type: "object",
    additionalProperties: false,
    properties: {
      title: { type: "string", description: `heading on the first page; cut at ${MAX_PDF_TITLE} characters` },
      body: { type: "string", minLength: 1, maxLength: MAX_PDF_BODY, description: "the text of the document" },
      filename: { type: "string", description: "name for the file; the title is used when left out" },
    },
    required: ["body"],
  },
} as const;

const MAKE_PLAN = {
  id: "make_plan",
  version: "1",
  description:
    "Write down a numbered plan as a small text file that the user can keep. Arguments: goal (one sentence), steps " +
    "(at most 20 short texts, in order). Use it only when the user asked for a plan as a thing to have, once per " +
    "request; never to organise your own reasoning.",
  inputSchema: {
    type: "object",
    additionalProperties: false,
    properties: {
      goal: { type: "string", minLength: 1, maxLength: MAX_STEP, description: "what the plan achieves" },
      steps: {
        type: "array",
        minItems: 1,
        maxItems: MAX_PLAN_STEPS,
        items: { type: "string", minLength: 1, maxLength: MAX_STEP },
        description: "ordered steps, each one action",
      },
    },
    required: ["goal", "steps"],
  },
} as const;

/** Spec and binding of each; the handler bears the id's name. */
export const BUNDLED_TOOLS: readonly RegisteredTool[] = [CREATE_PDF, MAKE_PLAN].map((tool) => ({
  spec: toSpec(tool),
  binding: { handler: tool.id, skill: undefined },
}));

/** Specs alone, for {@link loadPolicy}. */
export const BUNDLED_SPECS: readonly ToolSpec[] = BUNDLED_TOOLS.map(({ spec }) => spec);

type Definition = { id: string; version: string; description: string; inputSchema: JsonObject };

function toSpec({ id, version, description, inputSchema }: Definition): ToolSpec {
  const digest = digestOfJson({ name: id, description, inputSchema });
  const ref = ToolRef.parse(`${id}@${version}`);
  return { ref, id, version, kind: "skill", description, inputSchema, origin: BUILTIN_ORIGIN, digest };
}
