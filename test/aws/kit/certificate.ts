import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

/**
 * A certificate for one name, signed by its own key, for an HTTPS server of the tests: made anew each time, so that no
 * key lies in the repository and no program is needed.
 */

export type Certificate = { readonly cert: string; readonly key: string };

const DAY_MS = 24 * 3600_000;

/** Good from a day ago for ten days; X.509 version 3 (RFC 5280), ECDSA with P-256. */
export function makeCertificate(hostName: string): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = sequence(der(0x31, sequence(objectId(2, 5, 4, 3), der(0x0c, Buffer.from(hostName)))));
  const algorithm = sequence(objectId(1, 2, 840, 10045, 4, 3, 2));
  const validity = sequence(utcTime(Date.now() - DAY_MS), utcTime(Date.now() + 9 * DAY_MS));
  const names = sequence(objectId(2, 5, 29, 17), octets(sequence(der(0x82, Buffer.from(hostName)))));
  const body = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.concat([Buffer.of(1), randomBytes(8)])),
    algorithm,
    name,
    validity,
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(names)),
  );
  const signature = der(0x03, Buffer.of(0), sign("sha256", body, privateKey));
  const base64 = sequence(body, algorithm, signature).toString("base64").replace(/.{64}/g, "$&\n");
  const cert = `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`;
  return { cert, key: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

/** One element: its tag, the length of its content, the content. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content]);
  return Buffer.concat([Buffer.of(tag, 0x82, length >> 8, length & 0xff), content]);
}

const sequence = (...parts: readonly Buffer[]) => der(0x30, ...parts);
const octets = (content: Buffer) => der(0x04, content);

function objectId(first: number, second: number, ...rest: readonly number[]): Buffer {
  return der(0x06, Buffer.of(first * 40 + second, ...rest.flatMap(toBase128)));
}

/** Groups of seven bits, all but the last of them marked. */
function toBase128(value: number): readonly number[] {
  const groups = [value & 0x7f];
  for (let left = value >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
  return groups;
}

/** `261130120000Z` */
function utcTime(epochMs: number): Buffer {
  const digits = new Date(epochMs).toISOString().replace(/\D/g, "").slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}
