import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Outcome } from "../../../../functions/contract/fault.ts";
import type { MCPServerConfig } from "../../../../functions/contract/mcp-server.ts";
import { digestOfDefinition } from "../../../../functions/contract/offered-tool.ts";
import type { RemoteAnswer, ToolListing, ToolSession } from "../../../../functions/contract/ports.ts";
import type { JsonObject } from "../../../../functions/contract/tool.ts";
import { everythingOverStdio, startEverything } from "../../../kit/mcp-everything.ts";
import { ample, messageOf, secretNamed, secretsOf, sourceOf } from "../../../kit/mcp-peers.ts";
import "../../../kit/to-fail.ts";

/** The reference server of the protocol's project, over both of its transports. */

const TOKEN = "correct-horse-battery";

let overHttp: Awaited<ReturnType<typeof startEverything>> | undefined;
beforeAll(async () => {
  overHttp = await startEverything();
});
afterAll(() => overHttp?.close());

const configs: Readonly<Record<string, () => MCPServerConfig>> = {
  HTTP: () => overHttp?.config ?? everythingOverStdio(),
  stdio: () => everythingOverStdio({ TOKEN: secretNamed("TOKEN") }),
};

describe.each(Object.keys(configs))("the reference server over %s", (transport) => {
  const source = () => sourceOf(configs[transport]?.() ?? everythingOverStdio(), { readSecret: secretsOf({ TOKEN }) });

  let listed: Outcome<ToolListing> | undefined;
  let session: ToolSession | undefined;
  beforeAll(async () => {
    listed = await source().list("everything", ample());
    session = source().openSession();
  });
  afterAll(() => session?.close());

  /** A call of the tool by the definition that the server lists. */
  async function call(name: string, given: JsonObject): Promise<Outcome<RemoteAnswer> | undefined> {
    const tool = listed?.ok ? listed.value.tools.find((each) => each.name === name) : undefined;
    if (tool === undefined) throw new Error(`the server offers no ${name}`);
    const remote = { server: "everything", tool: name, digest: digestOfDefinition(tool), arguments: given };
    return session?.call(remote, { ...ample(), maxBytes: 1_000_000 });
  }

  test("gives a list of which nothing is set aside", () => {
    expect(listed).toMatchObject({ ok: true, value: { quarantined: [] } });
    expect(listed?.ok && listed.value.tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["echo", "get-sum", "get-tiny-image", "get-structured-content"]),
    );
  });

  test("answers with text", async () => {
    expect(await call("echo", { message: "hello" })).toEqual({
      ok: true,
      value: { output: { content: [{ type: "text", text: "Echo: hello" }] }, artifacts: [] },
    });
  });

  test("answers with a picture", async () => {
    const answer = await call("get-tiny-image", {});
    expect(answer).toMatchObject({ value: { artifacts: [{ name: "image-1.png", media_type: "image/png" }] } });
    const [image] = answer?.ok ? answer.value.artifacts : [];
    expect(
      Buffer.from(image?.base64 ?? "", "base64")
        .subarray(1, 4)
        .toString(),
    ).toBe("PNG");
  });

  test("answers with a file, and with links", async () => {
    const file = await call("get-resource-reference", { resourceType: "Blob", resourceId: 1 });
    expect(file).toMatchObject({ value: { artifacts: [{ media_type: "text/plain" }] } });
    expect(JSON.stringify(await call("get-resource-links", { count: 2 }))).toContain('"type":"resource_link"');
  });

  test("answers with structured content", async () => {
    expect(await call("get-structured-content", { location: "Chicago" })).toMatchObject({
      value: { output: { structured_content: { humidity: expect.any(Number) } } },
    });
  });

  test("shows nothing that it was given in confidence", async () => {
    const shown = JSON.stringify(await call("get-env", {}));
    expect(shown).not.toContain(TOKEN);
    if (transport === "stdio") expect(shown).toContain("[secret]");
  });

  test("refuses arguments in its own words", async () => {
    const answer = await call("get-sum", { a: "one", b: 2 });
    expect(answer).toFail("TOOL_FAILED");
    expect(messageOf(answer)).toContain("expected number");
  });
});
