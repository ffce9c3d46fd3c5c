import { ARTIFACT_EXTENSIONS, type ArtifactEnvelope } from "../contract/artifact.ts";
import { Fault } from "../contract/fault.ts";
import { toSafeFileName } from "../contract/file-name.ts";

export type FileToWrap = {
  readonly content: string | Uint8Array;
  readonly mediaType: string;
  /** Name that the caller asked for; the extension follows from the media type. */
  readonly wanted: string | undefined;
  /** Stem when nothing usable was asked for. */
  readonly fallback: string;
};

/** The one shape in which a handler hands over a file. */
export function toEnvelope({ content, mediaType, wanted, fallback }: FileToWrap): ArtifactEnvelope {
  const extension = ARTIFACT_EXTENSIONS.get(mediaType);
  if (extension === undefined) throw new Fault("DEFECT", `no extension for media type ${mediaType}`);
  const bytes = Buffer.from(content);
  return {
    name: toSafeFileName(wanted, { extension, fallback }),
    media_type: mediaType,
    base64: bytes.toString("base64"),
    size_bytes: bytes.length,
  };
}
