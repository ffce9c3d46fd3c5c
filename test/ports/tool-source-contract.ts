import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { digestOfDefinition, type OfferedTool } from "../../functions/contract/offered-tool.ts";
import type { RemoteCall, ToolSource } from "../../functions/contract/ports.ts";
import type { JsonObject } from "../../functions/contract/tool.ts";
import { offeredTool } from "../kit/fake-tool-source.ts";
import "../kit/to-fail.ts";

/** What every source of tools owes, whatever is behind it. */

export type OpenedToolSource = {
  readonly source: ToolSource;
  /** What the server `s1` offers from now on. */
  readonly offer: (tools: readonly OfferedTool[]) => void;
  /** How its tools answer a call: MCP's `CallToolResult`. */
  readonly answer: (result: JsonObject) => void;
  /** The server answers nothing of use from now on. */
  readonly breakDown: () => void;
  /** Arguments of the calls that reached a tool. */
  readonly reached: () => readonly JsonObject[];
  readonly close: () => Promise<void>;
};

export function describeToolSource(title: string, open: () => Promise<OpenedToolSource>): void {
  describe(`${title}, as a source of tools`, () => {
    let opened: OpenedToolSource;
    beforeEach(async () => {
      opened = await open();
    });
    afterEach(() => opened.close());

    const A = offeredTool("a");
    const B = offeredTool("b", { title: "B", annotations: { readOnlyHint: true } });
    const ample = () => ({ deadline: Date.now() + 20_000, maxBytes: 100_000 });
    const callOf = (tool: OfferedTool, given: JsonObject = {}): RemoteCall => ({
      server: "s1",
      tool: tool.name,
      digest: digestOfDefinition(tool),
      arguments: given,
    });
    const call = async (wanted: RemoteCall, limits = ample()) => {
      const session = opened.source.openSession();
      try {
        return await session.call(wanted, limits);
      } finally {
        await session.close();
      }
    };

    test("lists what is offered at this moment, each definition as it was offered", async () => {
      opened.offer([A, B]);
      expect(await opened.source.list("s1", ample())).toMatchObject({
        ok: true,
        value: { tools: [A, B], quarantined: [] },
      });
      opened.offer([B]);
      expect(await opened.source.list("s1", ample())).toMatchObject({ ok: true, value: { tools: [B] } });
      opened.offer([]);
      expect(await opened.source.list("s1", ample())).toMatchObject({ ok: true, value: { tools: [] } });
    });

    test("says with a value that a server gives no list", async () => {
      opened.breakDown();
      expect(await opened.source.list("s1", ample())).toFail("SERVER_UNAVAILABLE");
    });

    test("lists nothing past the deadline", async () => {
      opened.offer([A]);
      expect(await opened.source.list("s1", { deadline: Date.now() - 1 })).toFail("SERVER_UNAVAILABLE");
    });

    test("calls the definition that was approved, with the arguments as they are", async () => {
      opened.offer([A]);
      opened.answer({ content: [{ type: "text", text: "done" }], structuredContent: { done: true } });
      const given = { to: "x", deep: [{ n: 1.5, none: null }] };
      expect(await call(callOf(A, given))).toEqual({
        ok: true,
        value: {
          output: { content: [{ type: "text", text: "done" }], structured_content: { done: true } },
          artifacts: [],
        },
      });
      expect(opened.reached()).toEqual([given]);
    });

    test("hands files over apart from what a model sees", async () => {
      opened.offer([A]);
      const data = Buffer.from("pixels").toString("base64");
      opened.answer({ content: [{ type: "image", data, mimeType: "image/png" }] });
      const answered = await call(callOf(A));
      expect(answered).toMatchObject({
        ok: true,
        value: { artifacts: [{ media_type: "image/png", base64: data, size_bytes: 6 }] },
      });
      expect(JSON.stringify(answered.ok ? answered.value.output : "")).not.toContain(data);
    });

    test("calls nothing when another definition is offered, or none", async () => {
      opened.offer([{ ...A, description: "Something else." }]);
      expect(await call(callOf(A))).toFail("TOOL_DEFINITION_CHANGED");
      expect(await call(callOf(B))).toFail("TOOL_UNKNOWN");
      expect(opened.reached()).toEqual([]);
    });

    test("tells a tool that says that it failed from a server that fails", async () => {
      opened.offer([A]);
      opened.answer({ content: [{ type: "text", text: "no such mailbox" }], isError: true });
      expect(await call(callOf(A))).toFail("TOOL_FAILED");
      opened.breakDown();
      expect(await call(callOf(A))).toFail("SERVER_UNAVAILABLE");
    });

    test("refuses an answer of more bytes than are allowed", async () => {
      opened.offer([A]);
      opened.answer({ content: [{ type: "text", text: "x".repeat(5_000) }] });
      expect(await call(callOf(A), { ...ample(), maxBytes: 1_000 })).toFail("OUTPUT_TOO_LARGE");
      expect((await call(callOf(A))).ok).toBe(true);
    });

    test("begins no call past the deadline", async () => {
      opened.offer([A]);
      expect(await call(callOf(A), { ...ample(), deadline: Date.now() - 1 })).toFail("CALL_TIMEOUT");
      expect(opened.reached()).toEqual([]);
    });

    test("a session makes several calls, at the same time too, and may be closed unused and twice", async () => {
      opened.offer([A, B]);
      opened.answer({ content: [] });
      const session = opened.source.openSession();
      const answers = await Promise.all([A, B, A].map((tool) => session.call(callOf(tool), ample())));
      expect(answers.map(({ ok }) => ok)).toEqual([true, true, true]);
      await session.close();
      await session.close();
      await opened.source.openSession().close();
    });
  });
}
