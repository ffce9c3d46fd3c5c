/** Texts that break PDF writers, each named for what it attacks, and every character Windows-1252 can write. */

export const WINDOWS_1252 = Array.from({ length: 256 - 0x20 }, (_, index) => index + 0x20)
  .filter((byte) => ![0x7f, 0x81, 0x8d, 0x8f, 0x90, 0x9d].includes(byte))
  .map((byte) => new TextDecoder("windows-1252").decode(Uint8Array.of(byte)));

const FULL = 12_000;
const fill = (pattern: string) => pattern.repeat(Math.ceil(FULL / pattern.length)).slice(0, FULL);

export const HOSTILE_TEXTS: Readonly<Record<string, string>> = {
  "opening parentheses": "((((((",
  "closing parentheses": "))))))",
  "a backslash at the end": "ends with \\",
  "a backslash before a parenthesis": "\\) Tj ET Q\nq BT (x",
  "operators after a closed string": "x) Tj ET Q 0 0 595 842 re f BT (y",
  "the end of a stream": "endstream\nendobj\nxref\n0 1\ntrailer\n<< >>\nstartxref\n0\n%%EOF",
  "the end of marked content": "  EMC  > >> BDC ) Tj",
  "octal escapes": "\\050\\051\\134\\n\\r",
  "a comment": "% not a comment %%EOF",
  controls: "a\u0000b\u0007c\u001b[31md\u007fe\u0085f\u009fg",
  tabs: "a\tb\t\tc\n\tx\n    \ty",
  "every kind of line break": "a\rb\r\nc\vd\fe\u001cf\u001dg\u001eh\u0085i\u2028j\u2029k",
  "zero-width and direction characters": "a\u200bb\u200cc\u200dd\u2060e\ufefff\u202eg\u2066h",
  "right-to-left text": "مرحبا بالعالم שלום",
  emoji: "ok 😀 👨‍👩‍👧‍👦 👍🏽 🇩🇪 1️⃣ ❤️ ©️",
  "lone surrogates": "a\ud800b\udc00c\udfff\ud83d",
  "trailing hyphens": "well-\nknown\n---\n-\n- -\nend -",
  "wide gaps": "A    B    C\nAAAAAAAA    B    C\nx  y",
  "soft hyphens and fixed spaces": "soft\u00adhyphen\u00ad\n\u00a0\u00a0indented\u00a0by fixed spaces\u00a0",
  "a huge word": "W".repeat(3_000),
  "a huge word after an indentation": `${" ".repeat(150)}${"W".repeat(300)}`,
  "an indentation wider than the page": `${" ".repeat(400)}x`,
  "12,000 spaces": fill(" "),
  "12,000 line breaks": fill("\n"),
  "12,000 letters": fill("abcdefghij"),
  "12,000 fixed spaces": fill("\u00a0"),
  "12,000 parentheses": fill("()\\"),
  "12,000 combining marks": fill("\u0301"),
  "12,000 combining marks in the wrong order": fill("\u0301\u0316"),
  "12,000 joined emoji": fill("👨‍👩‍👧‍👦"),
  "12,000 emoji and spaces": fill("😀 "),
  "12,000 lone surrogates": fill("\ud800"),
  "12,000 characters of prose": fill("It’s €5 (five) — “quoted”, and the naïve façade was well-known.\n"),
  "12,000 characters of code": fill("    if (x === 1) return  f(x);\n"),
};
