import * as z from "zod";
import type { ArtifactEnvelope } from "../../contract/artifact.ts";
import { type Outcome, refuse, succeed } from "../../contract/fault.ts";
import { toSafeFileName } from "../../contract/file-name.ts";
import { quoted } from "../../contract/printable.ts";
import { firstCodePoints } from "../../contract/text.ts";
import type { JsonObject } from "../../contract/tool.ts";
import { toFileType } from "./media-type.ts";

/**
 * The files of an answer apart from what a model sees. What a model sees of a file is that there is one; what is not
 * understood is left out with a note, because a new type of content must not make an answer a failure.
 */

export type LiftedBlocks = { readonly blocks: readonly JsonObject[]; readonly artifacts: readonly ArtifactEnvelope[] };

const Resource = z.object({
  uri: z.string().optional(),
  mimeType: z.string().optional(),
  text: z.string().optional(),
  blob: z.string().optional(),
});

/**
 * MCP 2026-07-28, content of a tool's result. A link to a resource is not followed: it is the server's to choose where.
 */
const Block = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text"), text: z.string() }),
  z.looseObject({ type: z.literal("resource_link"), uri: z.string() }),
  z.object({ type: z.literal("image"), data: z.string(), mimeType: z.string().optional() }),
  z.object({ type: z.literal("audio"), data: z.string(), mimeType: z.string().optional() }),
  z.object({ type: z.literal("resource"), resource: Resource }),
]);
type Block = z.infer<typeof Block>;

/** A file as it stands in a block. */
type Found = {
  readonly base64: string;
  readonly type: string;
  readonly name: string | undefined;
  readonly kind: "image" | "audio" | "file";
};

/**
 * `ARTIFACT_INVALID` when the content of a file is not base64, `OUTPUT_TOO_LARGE` for more than `maxFiles`. The order
 * of the answer is kept in both lists.
 */
export function liftBlocks(
  content: readonly unknown[],
  { maxFiles }: { readonly maxFiles: number },
): Outcome<LiftedBlocks> {
  const blocks: JsonObject[] = [];
  const artifacts: ArtifactEnvelope[] = [];
  const names = new Set<string>();
  for (const offered of content) {
    const parsed = Block.safeParse(offered);
    const found = parsed.success ? toFound(parsed.data) : undefined;
    if (!parsed.success) blocks.push(toNote(offered));
    else if (found === undefined) blocks.push(parsed.data);
    else {
      const index = artifacts.length;
      if (index === maxFiles) return refuse("OUTPUT_TOO_LARGE", `the answer has more than ${maxFiles} files`);
      const envelope = toEnvelope(found, { index, names });
      if (!envelope.ok) return envelope;
      artifacts.push(envelope.value);
      blocks.push(toPlaceholder(envelope.value, { index, offered: found.type }));
    }
  }
  return succeed({ blocks, artifacts });
}

/** Undefined for a block that stays as it is. */
function toFound(block: Block): Found | undefined {
  if (block.type === "image" || block.type === "audio") {
    return { base64: block.data, type: block.mimeType ?? "", name: undefined, kind: block.type };
  }
  if (block.type !== "resource") return undefined;
  const { uri, mimeType, text, blob } = block.resource;
  const base64 = blob ?? Buffer.from(text ?? "", "utf8").toString("base64");
  return { base64, type: mimeType ?? (blob === undefined ? "text/plain" : ""), name: nameIn(uri), kind: "file" };
}

/** What a URI calls its file, as far as it does; the name is made safe by whoever uses it. */
function nameIn(uri: string | undefined): string | undefined {
  const path = uri === undefined ? undefined : (URL.parse(uri)?.pathname ?? uri);
  if (path === undefined || !/%[0-9a-f]{2}/i.test(path)) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    // Percent signs that encode no text: part of the name.
    return path;
  }
}

type Place = { readonly index: number; readonly names: Set<string> };

function toEnvelope({ base64, type, name, kind }: Found, { index, names }: Place): Outcome<ArtifactEnvelope> {
  const size = base64Size(base64);
  if (size === undefined) return refuse("ARTIFACT_INVALID", `file ${index + 1} of the answer is not base64`);
  const { mediaType, extension } = toFileType(type);
  const safe = toUniqueName(name, { extension, fallback: `${kind}-${index + 1}`, names });
  return succeed({ name: safe, media_type: mediaType, base64, size_bytes: size });
}

/** Short enough that a number fits behind it within the longest name. */
const MAX_NUMBERED_CODE_POINTS = 40;

type NameOptions = { readonly extension: string; readonly fallback: string; readonly names: Set<string> };

/** Unique in upper and lower case alike: some file systems do not tell them apart. */
function toUniqueName(wanted: string | undefined, { extension, fallback, names }: NameOptions): string {
  let name = toSafeFileName(wanted, { extension, fallback });
  const stem = firstCodePoints(name.slice(0, -extension.length - 1), MAX_NUMBERED_CODE_POINTS);
  for (let number = names.size + 1; names.has(name.toLowerCase()); number += 1) {
    name = toSafeFileName(`${stem}-${number}`, { extension, fallback: `${fallback}-${number}` });
  }
  names.add(name.toLowerCase());
  return name;
}

type PlaceholderOptions = { readonly index: number; readonly offered: string };

function toPlaceholder(envelope: ArtifactEnvelope, { index, offered }: PlaceholderOptions): JsonObject {
  const { name, media_type, size_bytes } = envelope;
  const { original = "" } = toFileType(offered);
  const renamed = original === "" ? {} : { original_media_type: original };
  return { type: "artifact", index, name, media_type, size_bytes, ...renamed };
}

function toNote(block: unknown): JsonObject {
  const type = typeof block === "object" && block !== null && "type" in block ? block.type : undefined;
  const what = typeof type === "string" ? `content of the type ${quoted(type)}` : "content without a type";
  return { type: "omitted", reason: `${what} is not understood as it stands` };
}

/** From the length, so that nothing is allocated for it. Undefined when it is not base64 in its one canonical form. */
function base64Size(base64: string): number | undefined {
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return undefined;
  const tail = base64.slice(-4);
  if (Buffer.from(tail, "base64").toString("base64") !== tail) return undefined;
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}
