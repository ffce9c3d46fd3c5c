import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { ARTIFACT_EXTENSIONS } from "../../functions/contract/artifact.ts";
import { Fault } from "../../functions/contract/fault.ts";
import { toSafeFileName } from "../../functions/contract/file-name.ts";
import type { ArtifactReport, JobReport } from "../../functions/contract/job.ts";
import { sha256Hex } from "../../functions/contract/json.ts";
import type { ApiClient } from "../api-client.ts";

export type SavedArtifact = { readonly artifact_id: string; readonly path: string; readonly size_bytes: number };

type Download = { readonly artifact: ArtifactReport; readonly bytes: Uint8Array };

const MOST_TWINS = 1_000;

/**
 * Downloads every artifact of the report that has a link, checks size and digest, and writes it into `directory` under
 * its own name; a name that is taken gets a number. Throws, and saves nothing, when a download is not what the report
 * says.
 */
export async function saveArtifacts(
  report: JobReport,
  client: ApiClient,
  directory: string,
): Promise<readonly SavedArtifact[]> {
  const downloads: Download[] = [];
  for (const artifact of report.artifacts) {
    if (artifact.url !== undefined) downloads.push({ artifact, bytes: await download(artifact, artifact.url, client) });
  }
  if (downloads.length > 0) makeDirectory(directory);
  return downloads.map(({ artifact, bytes }) => ({
    artifact_id: artifact.artifact_id,
    path: writeNew(directory, toFileName(artifact), bytes),
    size_bytes: artifact.size_bytes,
  }));
}

/** Throws `REQUEST_INVALID` when the directory is not there and cannot be made. */
export function makeDirectory(directory: string): void {
  try {
    makeWithParents(directory);
  } catch (error) {
    throw toWriteFault(directory, error);
  }
}

/** Not `recursive`, which never returns where a file system says of every new directory that its parent is missing. */
function makeWithParents(directory: string): void {
  if (isDirectory(directory)) return;
  const parent = dirname(directory);
  if (parent !== directory) makeWithParents(parent);
  try {
    mkdirSync(directory);
  } catch (error) {
    // Another process was faster.
    if (!isDirectory(directory)) throw error;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

async function download({ name, size_bytes, sha256 }: ArtifactReport, url: string, client: ApiClient) {
  const bytes = await client.download(url, { maxBytes: size_bytes });
  if (bytes.length === size_bytes && sha256Hex(bytes) === sha256) return bytes;
  throw new Fault("ARTIFACT_INVALID", `${name}: what was downloaded is not what the report says; nothing was saved`);
}

/** The service makes safe names; whoever answers at the endpoint need not. */
function toFileName({ name, media_type, artifact_id }: ArtifactReport): string {
  const extension = ARTIFACT_EXTENSIONS.get(media_type) ?? "bin";
  return toSafeFileName(name, { extension, fallback: /^a\d{1,5}$/.test(artifact_id) ? artifact_id : "file" });
}

/** Never overwrites: the file that is there may be the user's only copy. */
function writeNew(directory: string, name: string, bytes: Uint8Array): string {
  const extension = extname(name);
  for (let twin = 1; twin <= MOST_TWINS; twin += 1) {
    const path = join(directory, twin === 1 ? name : `${basename(name, extension)}-${twin}${extension}`);
    try {
      writeFileSync(path, bytes, { flag: "wx" });
      return path;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw toWriteFault(directory, error);
    }
  }
  throw new Fault("REQUEST_INVALID", `${directory} holds ${MOST_TWINS} files called ${name}; choose another directory`);
}

function toWriteFault(directory: string, error: unknown): Fault {
  return new Fault("REQUEST_INVALID", `cannot write into ${directory} (${codeOf(error)})`, { cause: error });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown reason";
}
