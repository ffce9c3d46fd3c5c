import { ARTIFACT_EXTENSIONS, type Artifact, ArtifactEnvelope } from "../contract/artifact.ts";
import { type Outcome, refuse, succeed } from "../contract/fault.ts";
import { isSafeFileName } from "../contract/file-name.ts";
import { sha256Hex } from "../contract/json.ts";

/**
 * The envelope that a call answered with, checked and decoded. What it declares is compared with what it is, since
 * the name and type end in headers of a download and the size in a bill.
 */
export function checkArtifact(envelope: unknown, limits: { readonly maxBytes: number }): Outcome<Artifact> {
  const parsed = ArtifactEnvelope.safeParse(envelope);
  if (!parsed.success) return refuse("ARTIFACT_INVALID", "the artifact is not {name, media_type, base64, size_bytes}");
  const { name, media_type: mediaType, base64, size_bytes: declared } = parsed.data;
  const extension = ARTIFACT_EXTENSIONS.get(mediaType);
  if (extension === undefined) return refuse("ARTIFACT_INVALID", `media type ${quoted(mediaType)} is not allowed`);
  if (!isSafeFileName(name, extension))
    return refuse("ARTIFACT_INVALID", `${quoted(name)} is no safe name for ${mediaType}`);
  // The size follows from the length of the text, so a refusal allocates nothing.
  const size = decodedSize(base64);
  if (size === undefined) return refuse("ARTIFACT_INVALID", `${quoted(name)}: the content is not base64`);
  if (size !== declared)
    return refuse("ARTIFACT_INVALID", `${quoted(name)}: ${declared} bytes declared, ${size} given`);
  if (size > limits.maxBytes) {
    return refuse("ARTIFACT_TOO_LARGE", `${quoted(name)} has ${size} bytes, at most ${limits.maxBytes} allowed`);
  }
  const bytes = Buffer.from(base64, "base64");
  if (bytes.length !== size) return refuse("ARTIFACT_INVALID", `${quoted(name)}: the content is not base64`);
  return succeed({ name, mediaType, bytes, sha256: sha256Hex(bytes) });
}

function decodedSize(base64: string): number | undefined {
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return undefined;
  // Bits that padding leaves over must be zero, or one file has several texts.
  const tail = base64.slice(-4);
  if (Buffer.from(tail, "base64").toString("base64") !== tail) return undefined;
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 120));
}
