import * as z from "zod";

/** What a file of any other type is handed over as. */
export const ANY_MEDIA_TYPE = "application/octet-stream";

/**
 * The media types that an artifact may have, with the one extension that a file of that type is given. A closed
 * table: an extension chosen by the caller would let `text/plain` arrive as `report.exe`.
 */
export const ARTIFACT_EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ["application/pdf", "pdf"],
  ["text/plain", "txt"],
  ["text/markdown", "md"],
  ["text/csv", "csv"],
  ["text/calendar", "ics"],
  ["application/json", "json"],
  ["application/zip", "zip"],
  ["image/png", "png"],
  ["image/jpeg", "jpg"],
  ["image/gif", "gif"],
  ["image/webp", "webp"],
  ["audio/mpeg", "mp3"],
  ["audio/wav", "wav"],
  ["audio/ogg", "ogg"],
  [ANY_MEDIA_TYPE, "bin"],
]);

/** A file that a call made, as a handler hands it to the broker: one shape everywhere. */
export const ArtifactEnvelope = z.strictObject({
  name: z.string(),
  media_type: z.string(),
  base64: z.string(),
  size_bytes: z.int().min(0),
});
export type ArtifactEnvelope = z.infer<typeof ArtifactEnvelope>;

/** An artifact that passed the broker's checks, its bytes decoded. */
export type Artifact = {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  readonly sha256: string;
};
