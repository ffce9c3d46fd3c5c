import type { Handler } from "../contract/ports.ts";
import type { CallableSkill } from "../contract/skill.ts";
import { calendarEvent } from "./calendar-event.ts";
import { createPdf } from "./create-pdf.ts";
import { dataTable } from "./data-table.ts";
import { makePlan } from "./make-plan.ts";
import { findDocumentProblems, markdownDocument } from "./markdown-document.ts";

/**
 * The fixed table: name -> pure function. A skill names its handler here and nowhere else; importing a module out of a
 * skill's directory would make dropping in a directory equal to running its code.
 */
export const HANDLERS: ReadonlyMap<string, Handler> = new Map([
  ["create_pdf", createPdf],
  ["make_plan", makePlan],
  ["markdown_document", markdownDocument],
  ["data_table", dataTable],
  ["calendar_event", calendarEvent],
]);

/** Handlers that a repository's `tool.json` may name: those that are not a built-in tool by themselves. */
export const SKILL_HANDLERS: ReadonlySet<string> = new Set(["markdown_document", "data_table", "calendar_event"]);

/** Why the handler that a skill names could do nothing with it, one line each; for whoever approves the skill. */
export function findHandlerProblems(skill: CallableSkill): readonly string[] {
  return skill.handler === "markdown_document" ? findDocumentProblems(skill) : [];
}
