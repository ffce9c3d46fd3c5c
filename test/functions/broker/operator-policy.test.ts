import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { loadPolicy, permittedSpecs } from "../../../functions/broker/operator-policy.ts";
import { Fault } from "../../../functions/contract/fault.ts";
import { toolOf } from "./tools.ts";
import "../../kit/to-fail.ts";

const BUNDLED = ["create_pdf@1", "make_plan@1"].map((ref) => toolOf(ref).spec);
const approvedBy = (...approvals: readonly string[]) => [...loadPolicy(approvals, BUNDLED).approved].sort();

describe("approvals", () => {
  test("nothing approves nothing", () => {
    expect(approvedBy()).toEqual([]);
  });

  test("the bundle local stands for what is written in the source, and for nothing else", () => {
    expect(approvedBy("local")).toEqual(["create_pdf@1", "make_plan@1"]);
    const permitted = permittedSpecs(loadPolicy(["local"], BUNDLED), [
      ...BUNDLED,
      toolOf("create_pdf@2").spec,
      toolOf("local@1", { origin: "local" }).spec,
      toolOf("status_update@1").spec,
    ]);
    expect(permitted.map(({ ref }) => ref)).toEqual(["create_pdf@1", "make_plan@1"]);
  });

  test("an exact ref approves that ref, of another repository or of a server too", () => {
    expect(approvedBy("status_update@1", "github/search_issues@3f9a0c1b2d4e")).toEqual([
      "github/search_issues@3f9a0c1b2d4e",
      "status_update@1",
    ]);
  });

  test.each([
    "loca1",
    "Local",
    "LOCAL",
    "create_pdf",
    "create_pdf@",
    "create_pdf@1 ",
    "*",
    "create_pdf@*",
    "",
    "builtin",
    "acme/triage",
    "local@",
  ])("%j is neither and is refused", (approval) => {
    expect(() => loadPolicy(["local", approval], BUNDLED)).toFail("REQUEST_INVALID");
  });

  test("every entry that cannot be read is named", () => {
    try {
      loadPolicy(["local", "create-pdf", "status_update@1", "repo:*"], BUNDLED);
      expect.unreachable();
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      expect(error.message).toContain('"create-pdf"');
      expect(error.message).toContain('"repo:*"');
      expect(error.message).not.toContain("status_update");
    }
  });

  const approval = fc.constantFrom("local", "create_pdf@1", "a@1", "b@1", "c@2", "s/t@0123456789ab");

  test("their order and their repetition do not matter", () => {
    fc.assert(
      fc.property(fc.array(approval), fc.nat(), (approvals, turn) => {
        const turned = approvals.map((_, index) => approvals[(index + turn) % approvals.length] ?? "local");
        expect(approvedBy(...turned.reverse(), ...approvals)).toEqual(approvedBy(...approvals));
      }),
    );
  });

  test("a spec more never makes another one permitted", () => {
    const spec = fc.constantFrom("create_pdf@1", "a@1", "b@1", "c@1", "c@2").map((ref) => toolOf(ref).spec);
    fc.assert(
      fc.property(fc.array(approval), fc.array(spec), spec, (approvals, specs, added) => {
        const policy = loadPolicy(approvals, BUNDLED);
        const refs = (from: typeof specs) => permittedSpecs(policy, from).map(({ ref }) => ref);
        expect(refs([...specs, added])).toEqual([...refs(specs), ...refs([added])]);
        for (const ref of refs(specs)) expect(policy.approved.has(ref)).toBe(true);
      }),
    );
  });
});

describe("an approval of a lent tool", () => {
  const digest = "0123456789abcdef".repeat(4);

  test("names all digits of the definition and means its ref, or the ref alone", () => {
    const whole = loadPolicy([`s1/send@${digest}`], []);
    expect([...whole.approved]).toEqual(["s1/send@0123456789ab"]);
    expect([...whole.digests]).toEqual([["s1/send@0123456789ab", digest]]);
    const short = loadPolicy(["s1/send@0123456789ab"], []);
    expect([[...short.approved], short.digests.size]).toEqual([["s1/send@0123456789ab"], 0]);
  });

  test.each([digest.slice(1), `${digest}0`, digest.toUpperCase(), `${digest.slice(0, 13)}`])(
    "of the digits %s is none",
    (digits) => {
      expect(() => loadPolicy([`s1/send@${digits}`], [])).toFail("REQUEST_INVALID");
    },
  );
});
