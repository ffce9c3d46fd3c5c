import { describe, expect, test } from "vitest";
import { ToolRegistry } from "../../../functions/broker/tool-registry.ts";
import { BUNDLED_SPECS } from "../../../functions/catalog/bundled-tools.ts";
import { toHealthReport } from "../../../functions/catalog/catalog.ts";
import { installSkillRepository, toRegisteredTool } from "../../../functions/catalog/install.ts";
import { HealthReport } from "../../../functions/contract/catalog.ts";
import type { Log } from "../../../functions/contract/ports.ts";
import { HANDLERS } from "../../../functions/handlers/table.ts";
import { load, pinnedRoot, SHIPPED_SKILLS } from "../repository/skills-on-disk.ts";
import { callable, catalogOf, deployedCatalog, instructions, shippedCatalog } from "./catalogs.ts";
import "../../kit/to-fail.ts";

const refsOf = ({ tools }: { readonly tools: ReadonlyMap<string, unknown> }) => [...tools.keys()].sort();
const listening = () => {
  const lines: { level: string; fields: Readonly<Record<string, unknown>> | undefined }[] = [];
  const log: Log = (level, _, fields) => lines.push({ level, fields });
  return { lines, log };
};

describe("the shipped catalog", () => {
  test("holds the bundled tools and every callable skill, each with a handler that exists", () => {
    const catalog = shippedCatalog([]);
    expect(refsOf(catalog)).toEqual([
      "calendar_event@1",
      "create_pdf@1",
      "data_table@1",
      "incident_report@1",
      "make_plan@1",
      "meeting_minutes@1",
      "status_update@1",
    ]);
    for (const { binding, spec } of catalog.tools.values()) {
      expect("handler" in binding && HANDLERS.has(binding.handler)).toBe(true);
      expect(spec).toMatchObject({ kind: "skill", origin: "builtin", digest: expect.stringMatching(/^[0-9a-f]{64}$/) });
    }
  });

  test("approves what the operator named, and local stands for the two bundled tools", () => {
    expect([...shippedCatalog(["local"]).policy.approved].sort()).toEqual(["create_pdf@1", "make_plan@1"]);
    expect([...shippedCatalog([]).policy.approved]).toEqual([]);
    expect([...shippedCatalog(["status_update@1"]).policy.approved]).toEqual(["status_update@1"]);
  });

  test("is healthy, and says what it loaded", () => {
    const report = HealthReport.parse(toHealthReport(shippedCatalog(["local"]), 0));
    expect(report).toMatchObject({ status: "ok", catalog: { generation: 0, refreshed_at: null } });
    expect(report.repository).toEqual([
      { name: "builtin", status: "loaded", skills: 6, digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ]);
  });
});

describe("a repository", () => {
  test("adds its callable skills and approves nothing, whatever it is called", () => {
    for (const name of ["acme", "local", "builtin"]) {
      const catalog = catalogOf({ ...callable(`${name}/one`, "one"), ...instructions(`${name}/two`, {}) });
      expect(refsOf(catalog)).toEqual(["create_pdf@1", "make_plan@1", "one@1"]);
      expect([...catalog.policy.approved].sort()).toEqual(["create_pdf@1", "make_plan@1"]);
    }
  });

  test("that takes a bundled ref is left out whole, the others stay", () => {
    const { lines, log } = listening();
    const files = { ...callable("acme/a", "a"), ...callable("acme/pdf", "create_pdf"), ...callable("best/b", "b") };
    const catalog = catalogOf(files, ["local"], log);
    expect(refsOf(catalog)).toEqual(["b@1", "create_pdf@1", "make_plan@1"]);
    expect(catalog.tools.get(BUNDLED_SPECS[0]?.ref ?? expect.unreachable())?.spec).toBe(BUNDLED_SPECS[0]);
    expect(catalog.skills.list().map(({ name }) => name)).toEqual(["best/b"]);
    const report = HealthReport.parse(toHealthReport(catalog, 0));
    expect(report.status).toBe("degraded");
    expect(report.repository[0]).toMatchObject({ name: "acme", status: "refused", skills: 0, digest: null });
    expect(report.repository[0]?.reason).toContain("create_pdf@1");
    expect(report.repository[1]).toMatchObject({ name: "best", status: "loaded", skills: 1 });
    expect(lines).toMatchObject([{ level: "error", fields: { code: "REPOSITORY_REFUSED", repository: "acme" } }]);
  });

  test("that takes another's ref is left out, the one before it by name stays", () => {
    const catalog = catalogOf({ ...callable("acme/x", "x"), ...callable("best/x", "x"), ...callable("best/y", "y") });
    expect(refsOf(catalog)).toEqual(["create_pdf@1", "make_plan@1", "x@1"]);
    expect(catalog.repositories.map(({ name, status }) => `${name} ${status}`)).toEqual([
      "acme loaded",
      "best refused",
    ]);
  });

  test("that was refused while loading keeps its reasons and stops nobody", () => {
    const files = { ...callable("acme/a", "a", { handler: "eval" }), ...callable("best/b", "b") };
    const report = toHealthReport(catalogOf(files), 0);
    expect(report.status).toBe("degraded");
    expect(report.repository[0]?.reason).toContain("eval");
    expect(report.repository[1]?.status).toBe("loaded");
  });
});

describe("approvals", () => {
  test("that nothing provides are a warning, and approve nothing that is there", () => {
    const { lines, log } = listening();
    const catalog = shippedCatalog(["local", "ghost@1"], log);
    expect(lines).toMatchObject([{ level: "warn", fields: { refs: "ghost@1" } }]);
    expect(catalog.tools.has([...catalog.policy.approved][2] ?? expect.unreachable())).toBe(false);
  });

  test("that cannot be read stop the service", () => {
    expect(() => shippedCatalog(["local", "create_pdf"])).toFail("REQUEST_INVALID");
  });

  test("stay the same when a skill is added to the disk", () => {
    const before = catalogOf(callable("acme/a", "a"), ["local", "a@1"]);
    const after = catalogOf({ ...callable("acme/a", "a"), ...callable("acme/b", "b"), ...callable("best/c", "c") }, [
      "local",
      "a@1",
    ]);
    const effective = ({ tools, policy }: typeof before) => [...tools.keys()].filter((ref) => policy.approved.has(ref));
    expect(effective(after)).toEqual(effective(before));
  });
});

describe("installing by hand", () => {
  test("throws when a ref is taken, and leaves the registry as it was", () => {
    const [status] = load(pinnedRoot({ ...callable("acme/a", "a"), ...callable("acme/z", "z") }));
    const skills = status?.status === "loaded" ? status.skills : [];
    const registry = new ToolRegistry();
    registry.register(skills.flatMap((skill) => (skill.name === "acme/z" ? (toRegisteredTool(skill) ?? []) : [])));
    expect(() => installSkillRepository(registry, skills)).toFail("REPOSITORY_REFUSED");
    expect([...registry.snapshot().keys()]).toEqual(["z@1"]);
  });

  test("adds nothing to what the skill says of itself", () => {
    const [status] = load(SHIPPED_SKILLS);
    for (const skill of status?.status === "loaded" ? status.skills : []) {
      const tool = toRegisteredTool(skill);
      expect(tool === undefined).toBe(skill.callable === undefined);
      if (tool === undefined) continue;
      const { description, origin, digest } = skill;
      expect(tool.spec).toMatchObject({ description, origin, digest, inputSchema: skill.callable?.inputSchema });
    }
  });
});

test("a catalog without any repository still has the bundled tools", () => {
  const catalog = deployedCatalog([], ["local"]);
  expect(refsOf(catalog)).toEqual(["create_pdf@1", "make_plan@1"]);
  expect(toHealthReport(catalog, 0).status).toBe("ok");
});
