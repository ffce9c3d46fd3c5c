import { mkdirSync, writeFileSync } from "node:fs";
import { basename, extname, join, resolve } from "node:path";
import { Fault } from "../../functions/contract/fault.ts";
import type { JobReport } from "../../functions/contract/job.ts";
import { sha256Hex } from "../../functions/contract/json.ts";
import type { ApiClient } from "../api-client.ts";

export type SavedArtifact = { readonly artifact_id: string; readonly path: string; readonly size_bytes: number };

const MOST_TWINS = 1_000;

/**
 * Downloads every artifact of the report by its link, checks size and digest, and writes it into `directory` under its
 * own name; a name that is taken gets a number. Throws when a download is not what the report says.
 */
export async function saveArtifacts(
  report: JobReport,
  client: ApiClient,
  directory: string,
): Promise<readonly SavedArtifact[]> {
  const saved: SavedArtifact[] = [];
  for (const { artifact_id, name, url, size_bytes, sha256 } of report.artifacts) {
    if (url === undefined) continue;
    const bytes = await client.download(url);
    if (bytes.length !== size_bytes || sha256Hex(bytes) !== sha256) {
      throw new Fault(
        "ARTIFACT_INVALID",
        `${name}: what was downloaded is not what the report says; nothing was saved`,
      );
    }
    mkdirSync(directory, { recursive: true });
    saved.push({ artifact_id, path: writeNew(directory, name, bytes), size_bytes });
  }
  return saved;
}

/** Never overwrites: the file that is there may be the user's only copy. */
function writeNew(directory: string, name: string, bytes: Uint8Array): string {
  const extension = extname(name);
  for (let twin = 1; twin <= MOST_TWINS; twin += 1) {
    const candidate = twin === 1 ? name : `${basename(name, extension)}-${twin}${extension}`;
    const path = resolve(join(directory, basename(candidate)));
    try {
      writeFileSync(path, bytes, { flag: "wx" });
      return path;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") continue;
      throw new Fault("REQUEST_INVALID", `cannot write into ${directory}`, { cause: error });
    }
  }
  throw new Fault("REQUEST_INVALID", `${directory} holds ${MOST_TWINS} files called ${name}; choose another directory`);
}
