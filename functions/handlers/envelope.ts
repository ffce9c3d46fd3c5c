import { ARTIFACT_EXTENSIONS, type ArtifactEnvelope } from "../contract/artifact.ts";
import { Fault } from "../contract/fault.ts";
import { toSafeFileName } from "../contract/file-name.ts";

export type FileToWrap = {
  readonly content: string | Uint8Array;
  readonly mediaType: string;
  /** Name that the caller asked for, in which a slash parts folders; the extension follows from the media type. */
  readonly filename?: string | undefined;
  /** Named after this when no name was asked for; a slash in it ("Q3/Q4") is text. */
  readonly title?: string | undefined;
  /** Stem when nothing usable was asked for. */
  readonly fallback: string;
};

/** The one shape in which a handler hands over a file. */
export function toEnvelope({ content, mediaType, filename, title, fallback }: FileToWrap): ArtifactEnvelope {
  const extension = ARTIFACT_EXTENSIONS.get(mediaType);
  if (extension === undefined) throw new Fault("DEFECT", `no extension for media type ${mediaType}`);
  const bytes = Buffer.from(content);
  const wanted = filename ?? title?.replace(/[/\\]/g, " ");
  return {
    name: toSafeFileName(wanted, { extension, fallback }),
    media_type: mediaType,
    base64: bytes.toString("base64"),
    size_bytes: bytes.length,
  };
}
