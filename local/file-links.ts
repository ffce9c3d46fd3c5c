import { createHmac, timingSafeEqual } from "node:crypto";
import { type Outcome, refuse, succeed } from "../functions/contract/fault.ts";
import type { Clock, LinkRequest } from "../functions/contract/ports.ts";

/** Download links of one machine: signed, with an end, and good for one name and type, like those of S3. */

/** Path below which links live. */
export const LINK_PATH = "/files/";

/** What a link stands for, once its signature held. */
export type LinkedFile = { readonly key: string; readonly fileName: string; readonly mediaType: string };

export type Signing = { readonly expiresAt: number; readonly secret: Uint8Array; readonly baseUrl: string };

/** The link: an HMAC over everything that the answer to it depends on. */
export function toLink(
  key: string,
  { fileName, mediaType }: LinkRequest,
  { expiresAt, secret, baseUrl }: Signing,
): string {
  const url = new URL(`${baseUrl}${LINK_PATH}${key}`);
  const expires = String(expiresAt / 1000);
  url.searchParams.set("name", fileName);
  url.searchParams.set("type", mediaType);
  url.searchParams.set("expires", expires);
  url.searchParams.set("signature", sign([key, fileName, mediaType, expires], secret));
  return url.href;
}

/** JSON keeps the fields apart: joined bare, a name could borrow characters from a key. */
function sign(fields: readonly string[], secret: Uint8Array): string {
  return createHmac("sha256", secret).update(JSON.stringify(fields)).digest("hex");
}

/** `ACCESS_DENIED` for a link that is not ours or was changed, `ARTIFACT_EXPIRED` for one that is over. */
export function readLink(url: URL, secret: Uint8Array, clock: Clock): Outcome<LinkedFile> {
  const key = url.pathname.startsWith(LINK_PATH) ? url.pathname.slice(LINK_PATH.length) : "";
  const fileName = url.searchParams.get("name") ?? "";
  const mediaType = url.searchParams.get("type") ?? "";
  const expires = url.searchParams.get("expires") ?? "";
  const given = Buffer.from(url.searchParams.get("signature") ?? "");
  const wanted = Buffer.from(sign([key, fileName, mediaType, expires], secret));
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) {
    return refuse("ACCESS_DENIED", "the link's signature does not fit; ask for the job's report to get a fresh link");
  }
  if (clock() >= Number(expires) * 1000) {
    return refuse("ARTIFACT_EXPIRED", "the link has expired; ask for the job's report to get a fresh one");
  }
  return succeed({ key, fileName, mediaType });
}
