import { ANY_MEDIA_TYPE, ARTIFACT_EXTENSIONS } from "../../contract/artifact.ts";
import { toVisible } from "../../contract/printable.ts";
import { firstCodePoints } from "../../contract/text.ts";

/** As which type a file of a server is handed over. */
export type FileType = {
  readonly mediaType: string;
  readonly extension: string;
  /** What the server calls it, when that is not what it is handed over as. */
  readonly original?: string | undefined;
};

/** Other names under which types of the table are sent. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ["image/jpg", "image/jpeg"],
  ["audio/mp3", "audio/mpeg"],
  ["audio/wave", "audio/wav"],
  ["audio/x-wav", "audio/wav"],
  ["audio/vnd.wave", "audio/wav"],
  ["text/x-markdown", "text/markdown"],
  ["application/x-zip-compressed", "application/zip"],
]);

const MAX_SHOWN_CODE_POINTS = 100;

/**
 * Case and parameters do not count. A type that is not in the table of artifacts is any type: nothing opens it unasked.
 */
export function toFileType(offered: string): FileType {
  const essence = (offered.split(";", 1)[0] ?? "").trim().toLowerCase();
  const mediaType = ALIASES.get(essence) ?? essence;
  const extension = ARTIFACT_EXTENSIONS.get(mediaType);
  if (extension !== undefined) return { mediaType, extension };
  const original = toVisible(firstCodePoints(essence, MAX_SHOWN_CODE_POINTS));
  return { mediaType: ANY_MEDIA_TYPE, extension: ARTIFACT_EXTENSIONS.get(ANY_MEDIA_TYPE) ?? "bin", original };
}
