import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkArtifact } from "../../../../functions/broker/artifact-check.ts";
import { liftContent } from "../../../../functions/mcp/client/lift-content.ts";
import "../../../kit/to-fail.ts";

const OPTIONS = { maxBytes: 1_000_000, maxFiles: 64, redact: (text: string) => text };
const lift = (content: unknown, more: object = {}) => liftContent({ content, ...more }, OPTIONS);

function lifted(content: unknown, more: object = {}) {
  const outcome = lift(content, more);
  if (!outcome.ok) throw outcome.fault;
  return outcome.value;
}

const base64 = (text: string) => Buffer.from(text).toString("base64");
const image = (changes: object = {}) => ({ type: "image", data: base64("pixels"), mimeType: "image/png", ...changes });
const resource = (contents: object) => ({ type: "resource", resource: { uri: "file:///a/report.txt", ...contents } });
const text = (said: string) => ({ type: "text", text: said });

describe("what a model sees", () => {
  test("is text and links as they came, and structured content", () => {
    const link = { type: "resource_link", uri: "https://example.test/a", name: "a", size: 5 };
    const said = { ...text("hello"), annotations: { audience: ["user"] } };
    expect(lifted([said, link], { structuredContent: { a: [1] } })).toEqual({
      output: { content: [said, link], structured_content: { a: [1] } },
      artifacts: [],
    });
  });

  test("may be structured content alone", () => {
    expect(liftContent({ structuredContent: 0 }, OPTIONS)).toMatchObject({
      value: { output: { content: [], structured_content: 0 } },
    });
  });

  test("is of a file that it is there, by its place among the files", () => {
    const { output, artifacts } = lifted([
      text("a"),
      image(),
      text("b"),
      resource({ text: "é", mimeType: "text/csv" }),
    ]);
    expect(output).toEqual({
      content: [
        text("a"),
        { type: "artifact", index: 0, name: "image-1.png", media_type: "image/png", size_bytes: 6 },
        text("b"),
        { type: "artifact", index: 1, name: "report.csv", media_type: "text/csv", size_bytes: 2 },
      ],
    });
    expect(artifacts).toEqual([
      { name: "image-1.png", media_type: "image/png", base64: base64("pixels"), size_bytes: 6 },
      { name: "report.csv", media_type: "text/csv", base64: base64("é"), size_bytes: 2 },
    ]);
  });

  test.each([
    ["a new type", { type: "hologram", data: "x" }, 'content of the type "hologram" is not understood as it stands'],
    ["text without text", { type: "text" }, 'content of the type "text" is not understood as it stands'],
    ["an image without data", { type: "image" }, 'content of the type "image" is not understood as it stands'],
    ["a resource without one", { type: "resource" }, 'content of the type "resource" is not understood as it stands'],
    ["no object", 5, "content without a type is not understood as it stands"],
    ["a type that is no text", { type: ["text"] }, "content without a type is not understood as it stands"],
  ])("has a note in the place of %s", (_, block, reason) => {
    expect(lifted([block, text("b")]).output).toEqual({ content: [{ type: "omitted", reason }, text("b")] });
  });

  test("has no half characters", () => {
    expect(lifted([text("cut \ud83d")], { structuredContent: { "\udc00": "\ud83d" } }).output).toEqual({
      content: [text("cut \ufffd")],
      structured_content: { "\ufffd": "\ufffd" },
    });
  });

  test("has nothing that was sent to the server in confidence", () => {
    const redact = (said: string) => said.replaceAll("hunter2", "[secret]");
    const answer = { content: [text("authorization: hunter2")], structuredContent: { hunter2: ["hunter2"] } };
    expect(liftContent(answer, { ...OPTIONS, redact })).toMatchObject({
      value: {
        output: { content: [text("authorization: [secret]")], structured_content: { "[secret]": ["[secret]"] } },
      },
    });
  });
});

describe("a file", () => {
  const one = (block: object) => lifted([block]).artifacts[0];
  const placeholder = (block: object) => lifted([block]).output.content;

  test.each([
    ["image/PNG; charset=binary", "image/png", "image-1.png"],
    ["image/jpg", "image/jpeg", "image-1.jpg"],
    [" audio/x-wav ", "audio/wav", "image-1.wav"],
    ["text/x-markdown", "text/markdown", "image-1.md"],
  ])("of the type %j is one of %s", (offered, media_type, name) => {
    expect(one(image({ mimeType: offered }))).toMatchObject({ media_type, name });
    expect(JSON.stringify(placeholder(image({ mimeType: offered })))).not.toContain("original");
  });

  test.each([
    ["text/html; x", "text/html"],
    ["image/svg+xml", "image/svg+xml"],
    ["application/x-msdownload", "application/x-msdownload"],
    ["\u202egnp/egami", "\\u{202e}gnp/egami"],
    ["no type at all", "no type at all"],
  ])("of the type %j is handed over as any type, and the model is told", (offered, original_media_type) => {
    const media_type = "application/octet-stream";
    expect(one(image({ mimeType: offered }))).toMatchObject({ media_type, name: "image-1.bin" });
    expect(placeholder(image({ mimeType: offered }))).toMatchObject([{ media_type, original_media_type }]);
  });

  test("without a type is any file, and text without one is text", () => {
    expect(one({ type: "image", data: "" })).toMatchObject({ media_type: "application/octet-stream", size_bytes: 0 });
    expect(one(resource({ blob: "" }))).toMatchObject({ name: "report.bin" });
    expect(one(resource({ text: "a" }))).toMatchObject({ name: "report.txt", media_type: "text/plain" });
  });

  test.each([
    ["file:///a/b/r%C3%A9sum%C3%A9.pdf", "résumé.bin"],
    ["file:///a/..%2f..%2fetc%2fpasswd", "passwd.bin"],
    ["file:///a/100%.txt", "100.bin"],
    ["https://example.test/x.pdf?token=abc#frag", "x.bin"],
    ["demo://resource/dynamic/blob/1", "1.bin"],
    ["..\\..\\CON", "_CON.bin"],
    ["", "file-1.bin"],
    ["file:///", "file-1.bin"],
  ])("at %j is called %s", (uri, name) => {
    expect(one(resource({ uri, blob: "" }))).toMatchObject({ name });
  });

  test("has a name of its own in upper and lower case alike", () => {
    const same = ["a.txt", "A.txt", "a.txt", "a-4.txt", "a.txt"].map((uri) => resource({ uri, text: "" }));
    expect(lifted(same).artifacts.map(({ name }) => name)).toEqual([
      "a.txt",
      "A-2.txt",
      "a-3.txt",
      "a-4.txt",
      "a-5.txt",
    ]);
  });

  test("has a name of its own however long the names are", () => {
    const long = resource({ uri: `${"長".repeat(300)}.txt`, text: "" });
    const names = lifted(Array.from({ length: 20 }, () => long)).artifacts.map(({ name }) => name);
    expect(new Set(names).size).toBe(20);
  });

  test.each(["====", "a", "ab=c", "YQ", "YQ=", "YR==", "Y Q=", "YWI-", "data:image/png;base64,YQ=="])(
    "of which the content is %j fails the call",
    (data) => {
      expect(lift([text("a"), image({ data })])).toFail("ARTIFACT_INVALID");
    },
  );

  test("passes what the broker asks of one, whatever the server calls it", () => {
    const blocks = fc.array(
      fc.oneof(
        fc.record({
          type: fc.constant("image"),
          data: fc.uint8Array().map((bytes) => Buffer.from(bytes).toString("base64")),
          mimeType: fc.string({ unit: "binary" }),
        }),
        fc.record({
          type: fc.constant("resource"),
          resource: fc.record(
            { uri: fc.oneof(fc.webUrl(), fc.string({ unit: "binary" })), text: fc.string({ unit: "binary" }) },
            { requiredKeys: [] },
          ),
        }),
      ),
    );
    fc.assert(
      fc.property(blocks, (content) => {
        const { artifacts, output } = lifted(content);
        expect(artifacts).toHaveLength(content.length);
        expect(output.content).toHaveLength(content.length);
        expect(new Set(artifacts.map(({ name }) => name.toLowerCase())).size).toBe(artifacts.length);
        for (const artifact of artifacts)
          expect(checkArtifact(artifact, { maxBytes: 1e6 })).toMatchObject({ ok: true });
      }),
    );
  });
});

describe("an answer", () => {
  test("may have the most bytes, and not one more", () => {
    const answer = { content: [text("é")] };
    const maxBytes = Buffer.byteLength(JSON.stringify(answer));
    expect(liftContent(answer, { ...OPTIONS, maxBytes })).toMatchObject({ ok: true });
    expect(liftContent(answer, { ...OPTIONS, maxBytes: maxBytes - 1 })).toFail("OUTPUT_TOO_LARGE");
  });

  test("may have the most files, and not one more", () => {
    const answer = { content: [image(), text("a"), image()] };
    expect(liftContent(answer, { ...OPTIONS, maxFiles: 2 })).toMatchObject({ ok: true });
    expect(liftContent(answer, { ...OPTIONS, maxFiles: 1 })).toFail("OUTPUT_TOO_LARGE");
  });

  test.each([
    ["nothing", undefined],
    ["a text", "x"],
    ["an object without content", {}],
    ["content that is no list", { content: {} }],
    ["an error that is no truth value", { content: [], isError: "no" }],
  ])("that is %s is none of a tool", (_, answer) => {
    expect(liftContent(answer, OPTIONS)).toFail("SERVER_UNAVAILABLE");
  });

  test("of a hundred thousand levels is refused and overflows nothing", () => {
    let structuredContent: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) structuredContent = [structuredContent];
    expect(liftContent({ structuredContent }, OPTIONS)).toFail("SERVER_UNAVAILABLE");
  });

  test("with a key that would change the prototype is refused", () => {
    expect(liftContent(JSON.parse('{"structuredContent":{"__proto__":{"a":1}}}'), OPTIONS)).toFail(
      "SERVER_UNAVAILABLE",
    );
  });

  test("is an answer or a fault, whatever it is", () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.record({ content: fc.array(fc.jsonValue()) })), (answer) => {
        expect(typeof liftContent(answer, OPTIONS).ok).toBe("boolean");
      }),
    );
  });
});

describe("a tool that failed", () => {
  const failed = (content: unknown) => lift(content, { isError: true });
  const messageOf = (content: unknown) => {
    const outcome = failed(content);
    return outcome.ok ? undefined : outcome.fault.message;
  };

  test("says why", () => {
    expect(failed([text("no such city"), image(), text("try another")])).toFail("TOOL_FAILED");
    expect(messageOf([text("no such city"), image(), text("try another")])).toBe(
      "the tool failed: no such city\\u{000a}try another",
    );
  });

  test("may say nothing", () => {
    expect(messageOf([])).toBe("the tool failed, and does not say why");
    expect(messageOf([text("  \n")])).toBe("the tool failed, and does not say why");
  });

  test("says no more than five hundred characters, nothing that acts on a terminal, and no secret", () => {
    expect(messageOf([text("x".repeat(10_000))])).toBe(`the tool failed: ${"x".repeat(500)}`);
    expect(messageOf([text("\u001b[31mred")])).toBe("the tool failed: \\u{001b}[31mred");
    const redact = (said: string) => said.replaceAll("hunter2", "[secret]");
    const outcome = liftContent({ content: [text("got hunter2")], isError: true }, { ...OPTIONS, redact });
    expect(outcome).toMatchObject({ fault: { message: "the tool failed: got [secret]" } });
  });
});
