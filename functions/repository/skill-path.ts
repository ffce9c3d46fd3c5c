/** Which names a file of a skill may have; the same for what is on disk and for what is pinned. */

/**
 * One segment of a path: ASCII, so that its bytes are the same on every system; no leading dot, so that no
 * file-manager dropping (`.DS_Store`, `._SKILL.md`) is ever pinned; no trailing dot, which Windows drops.
 */
const SEGMENT = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?$/;

/** Directories of a path, the repository and the skill among them. */
export const MAX_PATH_SEGMENTS = 10;

export const SEGMENT_RULE = "A-Z a-z 0-9 . _ -, no dot at either end, at most 100";

export function isSegment(name: string): boolean {
  return SEGMENT.test(name);
}

/** True for a POSIX path that stays below the directory it is relative to. */
export function isSkillPath(path: string): boolean {
  const segments = path.split("/");
  return segments.length <= MAX_PATH_SEGMENTS && segments.every(isSegment);
}
