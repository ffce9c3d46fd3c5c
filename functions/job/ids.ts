import type { RandomBytes } from "../contract/ports.ts";

/**
 * Job ids: 26 characters of Crockford's base 32, 48 bits of time and 80 of randomness like a ULID, but with the time
 * counted down, so that a store that lists keys in ascending order lists the newest job first.
 */

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const JOB_ID = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;
const ARTIFACT_ID = /^a[1-9]\d{0,4}$/;
const LAST_MILLISECOND = 2 ** 48 - 1;

/** `createdAt` in epoch ms. */
export function createJobId(createdAt: number, randomBytes: RandomBytes): string {
  const countdown = BigInt(LAST_MILLISECOND - Math.floor(createdAt));
  let value = (countdown << 80n) | BigInt(`0x${Buffer.from(randomBytes(10)).toString("hex")}`);
  let id = "";
  for (let index = 0; index < 26; index += 1) {
    id = ALPHABET[Number(value & 31n)] + id;
    value >>= 5n;
  }
  return id;
}

/** A text that is no id is answered like an id that nobody has. */
export function isJobId(text: string): boolean {
  return JOB_ID.test(text);
}

/** `a1`, `a2`, … in the order of making. */
export function isArtifactId(text: string): boolean {
  return ARTIFACT_ID.test(text);
}
