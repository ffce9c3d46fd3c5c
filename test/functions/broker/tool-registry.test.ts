import { describe, expect, test } from "vitest";
import { ToolRegistry } from "../../../functions/broker/tool-registry.ts";
import { toolOf } from "./tools.ts";
import "../../kit/to-fail.ts";

const refsOf = (registry: ToolRegistry) => [...registry.snapshot().keys()];

describe("registering", () => {
  test("keeps the order, and versions of one id apart", () => {
    const registry = new ToolRegistry();
    registry.register([toolOf("b@1"), toolOf("a@1")]);
    registry.register([toolOf("a@2")]);
    expect(refsOf(registry)).toEqual(["b@1", "a@1", "a@2"]);
  });

  test.each([
    ["one ref is taken", ["x@1", "a@1", "y@1"]],
    ["the last ref is taken", ["x@1", "y@1", "a@1"]],
    ["two of the new ones are the same", ["x@1", "x@1"]],
  ])("registers all or none when %s", (_, refs) => {
    const registry = new ToolRegistry();
    const first = toolOf("a@1", { description: "the first" });
    registry.register([first]);
    expect(() => registry.register(refs.map((ref) => toolOf(ref, { origin: "acme" })))).toFail("REPOSITORY_REFUSED");
    expect([...registry.snapshot().values()]).toEqual([first]);
  });

  test("changes no snapshot that was taken before", () => {
    const registry = new ToolRegistry();
    registry.register([toolOf("a@1")]);
    const before = registry.snapshot();
    registry.register([toolOf("b@1")]);
    expect([...before.keys()]).toEqual(["a@1"]);
  });
});
