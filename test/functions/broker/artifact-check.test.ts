import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkArtifact } from "../../../functions/broker/artifact-check.ts";
import { sha256Hex } from "../../../functions/contract/json.ts";
import "../../kit/to-fail.ts";

const LIMITS = { maxBytes: 100 };
const HELLO = { name: "a.txt", media_type: "text/plain", base64: "aGVsbG8=", size_bytes: 5 };

describe("an envelope", () => {
  test("that tells the truth gives the file with its digest", () => {
    expect(checkArtifact(HELLO, LIMITS)).toEqual({
      ok: true,
      value: { name: "a.txt", mediaType: "text/plain", bytes: Buffer.from("hello"), sha256: sha256Hex("hello") },
    });
  });

  test.each([
    ["no object", "hello"],
    ["a list", [HELLO]],
    ["a missing field", { name: "a.txt", media_type: "text/plain", base64: "" }],
    ["an extra field", { ...HELLO, url: "http://x.test" }],
    ["a size one too small", { ...HELLO, size_bytes: 4 }],
    ["a size one too large", { ...HELLO, size_bytes: 6 }],
    ["a size below nothing", { ...HELLO, size_bytes: -5 }],
    ["a size that is no whole number", { ...HELLO, size_bytes: 5.5 }],
    ["a size that is a text", { ...HELLO, size_bytes: "5" }],
    ["a name with a path", { ...HELLO, name: "../a.txt" }],
    ["a name of a device", { ...HELLO, name: "con.txt" }],
    ["a name of another type", { ...HELLO, name: "a.exe" }],
    ["a name that turns direction", { ...HELLO, name: "a\u202etxt.txt" }],
    ["no name", { ...HELLO, name: "" }],
    ["a type that may run", { ...HELLO, media_type: "text/html", name: "a.html" }],
    ["a type with a parameter", { ...HELLO, media_type: "text/plain; charset=utf-8" }],
    ["a type that objects have", { ...HELLO, media_type: "constructor" }],
    ["a type in capitals", { ...HELLO, media_type: "TEXT/PLAIN" }],
    ["base64 with a line break", { ...HELLO, base64: "aGVs\nbG8=" }],
    ["base64 without padding", { ...HELLO, base64: "aGVsbG8" }],
    ["base64 for URLs", { name: "a.txt", media_type: "text/plain", base64: "__8=", size_bytes: 2 }],
    ["base64 with padding in the middle", { ...HELLO, base64: "aG=sbG8=" }],
    ["base64 with too much padding", { ...HELLO, base64: "aGVsbG==", size_bytes: 4 }],
    ["base64 with bits below its padding", { ...HELLO, base64: "aGVsbG9=" }],
    ["base64 that is only padding", { ...HELLO, base64: "====", size_bytes: 0 }],
    ["a data URL", { ...HELLO, base64: "data:,hello!" }],
  ])("with %s is refused", (_, envelope) => {
    expect(checkArtifact(envelope, LIMITS)).toFail("ARTIFACT_INVALID");
  });

  test("may hold nothing, and as much as is allowed", () => {
    const of = (size: number) => ({ ...HELLO, base64: Buffer.alloc(size).toString("base64"), size_bytes: size });
    expect(checkArtifact(of(0), LIMITS).ok).toBe(true);
    expect(checkArtifact(of(100), LIMITS).ok).toBe(true);
    expect(checkArtifact(of(101), LIMITS)).toFail("ARTIFACT_TOO_LARGE");
  });

  test("has exactly one text for any bytes", () => {
    const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...ALPHABET), maxLength: 12 }), fc.nat(9), (base64, size_bytes) => {
        const bytes = Buffer.from(base64, "base64");
        const truthful = bytes.toString("base64") === base64 && bytes.length === size_bytes;
        expect(checkArtifact({ ...HELLO, base64, size_bytes }, LIMITS).ok).toBe(truthful);
      }),
      { numRuns: 2_000 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (content) => {
        const base64 = Buffer.from(content).toString("base64");
        const checked = checkArtifact({ ...HELLO, base64, size_bytes: content.length }, LIMITS);
        expect(checked.ok && Buffer.compare(checked.value.bytes, content)).toBe(0);
      }),
    );
  });
});
