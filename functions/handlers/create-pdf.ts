import * as z from "zod";
import type { Handler } from "../contract/ports.ts";
import { codePointCount, firstCodePoints, isBlank, toSingleLine } from "../contract/text.ts";
import { readArguments, refuseArgument } from "./arguments.ts";
import { toEnvelope } from "./envelope.ts";
import { renderPdf } from "./pdf/pdf-document.ts";

/** Limits in code points. */
export const MAX_PDF_BODY = 12_000;
export const MAX_PDF_TITLE = 160;

const CreatePdfArguments = z.strictObject({
  title: z.string().optional(),
  body: z.string(),
  filename: z.string().optional(),
});

/**
 * Text -> A4 PDF. Answers `{created, pages, artifact}`, and `replaced_characters` when the standard fonts could not
 * write some (each became "?"), `title_truncated` when the title was cut to its limit. Equal arguments give equal
 * bytes on one build of zlib.
 */
export const createPdf: Handler = ({ arguments: given }) => {
  const { title, body, filename } = readArguments(CreatePdfArguments, given);
  if (isBlank(body)) refuseArgument("/body", "must hold some visible text");
  if (codePointCount(body) > MAX_PDF_BODY) refuseArgument("/body", `must have at most ${MAX_PDF_BODY} characters`);
  const heading = toSingleLine(title ?? "");
  const shownTitle = firstCodePoints(heading, MAX_PDF_TITLE).trimEnd();
  const pdf = renderPdf({ title: shownTitle, blocks: [{ kind: "text", text: body }] });
  return {
    created: true,
    pages: pdf.pages,
    ...(pdf.replacedCharacters > 0 ? { replaced_characters: pdf.replacedCharacters } : {}),
    ...(shownTitle === heading ? {} : { title_truncated: true }),
    artifact: toEnvelope({
      content: pdf.bytes,
      mediaType: "application/pdf",
      filename,
      title: shownTitle,
      fallback: "document",
    }),
  };
};
