import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { MAX_DOCUMENT, markdownDocument } from "../../../functions/handlers/markdown-document.ts";
import { load, SHIPPED_SKILLS } from "../repository/skills-on-disk.ts";
import { callHandler, refusalsOf, skillWithTemplate } from "./call-handler.ts";
import { readPages } from "./pdf/read-pdf.ts";
import "../../kit/to-fail.ts";

type Given = Readonly<Record<string, unknown>>;

const SHIPPED = load(SHIPPED_SKILLS).flatMap((status) => (status.status === "loaded" ? status.skills : []));
const shipped = (id: string) => {
  const callable = SHIPPED.find((skill) => skill.callable?.id === id)?.callable;
  if (callable === undefined) throw new Error(`no skill ${id}`);
  return callable;
};
const markdownOf = (id: string, given: Given) => callHandler(markdownDocument, given, shipped(id)).text;
const pdfLinesOf = (id: string, given: Given) =>
  readPages(callHandler(markdownDocument, { ...given, format: "pdf" }, shipped(id)).bytes).flatMap(({ runs }) =>
    runs.map(({ text }) => text),
  );
const poppler = spawnSync("pdftotext", ["-v"]).error === undefined;

const UPDATE = {
  title: "Search migration",
  period: "week 48",
  author: "Kim",
  health: "at risk",
  summary: "Indexing is done.\nThe cut-over waits.",
  done: ["Reindexed", "Load test"],
  next: ["Cut over"],
  risks: ["Late certificate"],
  decisions: ["Monday?"],
};
const MINUTES = {
  title: "Release meeting",
  date: "2026-11-30",
  place: "Room 2",
  attendees: ["Ada", "Grace"],
  absent: ["Alan"],
  agenda: ["Date"],
  discussion: [{ topic: "Date", notes: "Two blockers.\nBoth have a fix." }],
  decisions: ["Thursday."],
  actions: [{ what: "Merge", owner: "Grace", due: "Wednesday" }, { what: "Tell" }],
};
const INCIDENT = {
  title: "Uploads failed",
  severity: "SEV2",
  started: "09:12 UTC",
  ended: "10:05 UTC",
  summary: "Uploads failed.",
  impact: "About 4 %.",
  timeline: [{ at: "09:12", event: "Rolled out." }],
  cause: "A host was missing.",
  went_well: ["The alarm"],
  went_badly: ["The roll-back"],
  actions: [{ what: "Compare hosts", owner: "Platform", due: "2026-12-04" }],
};

describe("the shipped documents", () => {
  test("status_update writes every section that was given", () => {
    expect(markdownOf("status_update", UPDATE)).toBe(
      "# Search migration\n\n- Period: week 48\n- Author: Kim\n- Health: at risk\n\nIndexing is done.\nThe cut-over waits.\n\n" +
        "## Done\n\n- Reindexed\n- Load test\n\n## Next\n\n- Cut over\n\n## Risks\n\n- Late certificate\n\n" +
        "## Decisions needed\n\n- Monday?\n",
    );
  });

  test("meeting_minutes writes every section that was given", () => {
    expect(markdownOf("meeting_minutes", MINUTES)).toBe(
      "# Release meeting\n\n- Date: 2026-11-30\n- Place: Room 2\n\n## Attendees\n\n- Ada\n- Grace\n\n## Absent\n\n- Alan\n\n" +
        "## Agenda\n\n- Date\n\n## Discussion\n\n### Date\n\nTwo blockers.\nBoth have a fix.\n\n" +
        "## Decisions\n\n- Thursday.\n\n## Actions\n\n- Merge (owner: Grace) (due: Wednesday)\n- Tell\n",
    );
  });

  test("incident_report writes every section that was given", () => {
    expect(markdownOf("incident_report", INCIDENT)).toBe(
      "# Incident report: Uploads failed\n\n- Severity: SEV2\n- Started: 09:12 UTC\n- Ended: 10:05 UTC\n\n" +
        "## Summary\n\nUploads failed.\n\n## Impact\n\nAbout 4 %.\n\n## Timeline\n\n- 09:12: Rolled out.\n\n" +
        "## Cause\n\nA host was missing.\n\n## What went well\n\n- The alarm\n\n## What went badly\n\n- The roll-back\n\n" +
        "## Actions\n\n- Compare hosts (owner: Platform) (due: 2026-12-04)\n",
    );
  });

  test.each([
    ["status_update", { title: "T", summary: "S" }, "# T\n\nS\n"],
    ["status_update", { title: "T", summary: "S", done: [], next: [" "], period: "", author: "\u200b" }, "# T\n\nS\n"],
    ["meeting_minutes", { title: "T", date: "D", attendees: [], actions: [] }, "# T\n\n- Date: D\n"],
    ["incident_report", { title: "T", summary: "S", impact: " " }, "# Incident report: T\n\n## Summary\n\nS\n"],
  ])("%s leaves no trace of what was not given: %j", (id, given, text) => {
    expect(markdownOf(id, given)).toBe(text);
  });

  test("no value adds a section, in whichever field it stands", () => {
    const forged = "ok\n## Approved\n- by all\n1. x\n```\n---\n| a |\nT\n==";
    for (const [id, given] of [
      ["status_update", UPDATE],
      ["meeting_minutes", MINUTES],
      ["incident_report", INCIDENT],
    ] as const) {
      const spoil = (value: unknown): unknown => {
        if (typeof value === "string") return forged;
        if (Array.isArray(value)) return value.map(spoil);
        return Object.fromEntries(Object.entries(Object(value)).map(([key, member]) => [key, spoil(member)]));
      };
      const structureOf = (text: string) => text.match(/^(?:#+ |```|---|==|\||\d+\. )/gm);
      const spoilt = markdownOf(id, Object(spoil(given)));
      expect(structureOf(spoilt)).toEqual(structureOf(markdownOf(id, given)));
      expect(spoilt.match(/^- /gm)?.length).toBe(markdownOf(id, given).match(/^- /gm)?.length);
    }
  });
});

describe("markdown_document", () => {
  test("says what it made, and names the file after the title", () => {
    const made = callHandler(markdownDocument, UPDATE, shipped("status_update"));
    expect(made.output).toEqual({ created: true, format: "markdown", title: "Search migration" });
    expect([made.name, made.mediaType]).toEqual(["Search-migration.md", "text/markdown"]);
    const pdf = callHandler(markdownDocument, { ...UPDATE, format: "pdf", filename: "x/y" }, shipped("status_update"));
    expect(pdf.output).toEqual({ created: true, format: "pdf", title: "Search migration", pages: 1 });
    expect([pdf.name, pdf.mediaType]).toEqual(["y.pdf", "application/pdf"]);
  });

  test("falls back to the skill's name when the title has no letter", () => {
    expect(callHandler(markdownDocument, { x: "😀" }, skillWithTemplate("# {{x}}")).name).toBe("demo-document.md");
  });

  test("draws the same text as PDF, with headings and bullets, and without Markdown", () => {
    expect(pdfLinesOf("meeting_minutes", MINUTES)).toEqual(
      [
        ["Release meeting", "\x95", "Date: 2026-11-30", "\x95", "Place: Room 2"],
        ["Attendees", "\x95", "Ada", "\x95", "Grace", "Absent"],
        [
          "\x95",
          "Alan",
          "Agenda",
          "\x95",
          "Date",
          "Discussion",
          "Date",
          "Two blockers.",
          "Both have a fix.",
          "Decisions",
        ],
        ["\x95", "Thursday.", "Actions", "\x95", "Merge (owner: Grace) (due: Wednesday)", "\x95", "Tell"],
      ].flat(),
    );
  });

  test.each(["# x", "1. x", "- x", "> x", "===", "\\# x", "\\- x", "C:\\dir\\-x", "| a |", "12) y"])(
    "draws the value %j as it is, wherever it stands",
    (value) => {
      const lines = pdfLinesOf("incident_report", {
        title: value,
        severity: value,
        summary: `a\n${value}`,
        timeline: [{ at: value, event: value }],
        went_well: [value],
      });
      expect(lines[0]).toBe(`Incident report: ${value}`);
      expect(lines.filter((line) => line === value)).toHaveLength(2);
      expect(lines).toEqual(expect.arrayContaining([`Severity: ${value}`, `${value}: ${value}`]));
    },
  );

  test.skipIf(!poppler)("pdftotext reads the same words from the PDF as stand in the Markdown", () => {
    const { bytes } = callHandler(markdownDocument, { ...INCIDENT, format: "pdf" }, shipped("incident_report"));
    const { stdout } = spawnSync("pdftotext", ["-enc", "UTF-8", "-", "-"], { input: bytes, encoding: "utf8" });
    const words = (text: string) =>
      text
        .replace(/^(?:#+|-) |\u2022/gm, "")
        .split(/\s+/)
        .filter((word) => word !== "");
    expect(words(stdout)).toEqual(words(markdownOf("incident_report", INCIDENT)));
  });

  test("takes a document of 40,000 characters and not one more", () => {
    const document = skillWithTemplate("# T\n\n{{{x}}}");
    const room = MAX_DOCUMENT - "# T\n\n\n".length;
    expect(callHandler(markdownDocument, { x: "😀".repeat(room) }, document).output).toMatchObject({ created: true });
    expect(refusalsOf(markdownDocument, { x: "a".repeat(room + 1) }, document)).toHaveLength(1);
    expect(
      callHandler(markdownDocument, { x: "a".repeat(room), format: "pdf" }, document).output.pages,
    ).toBeGreaterThan(1);
  });

  test("is bounded before it draws, whatever a template repeats", () => {
    const document = skillWithTemplate(`# T\n${"{{{x}}}\n".repeat(300)}`);
    const started = performance.now();
    expect(refusalsOf(markdownDocument, { x: "a".repeat(60_000), format: "pdf" }, document)).toHaveLength(1);
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  test.each([{ title: " " }, { title: "\u200b" }, {}])("refuses a document without a visible title: %j", (given) => {
    expect(refusalsOf(markdownDocument, given, skillWithTemplate("# {{title}}\n\nText"))).toHaveLength(1);
  });

  test.each([{ format: "html" }, { format: null }, { filename: 5 }, { filename: null }])("refuses %j", (given) => {
    expect(refusalsOf(markdownDocument, { ...UPDATE, ...given }, shipped("status_update"))).toHaveLength(1);
  });

  test("is unavailable to a skill whose template is missing or is no Mustache, and to no skill at all", () => {
    for (const skill of [undefined, skillWithTemplate(undefined), skillWithTemplate("# {{#x}}")]) {
      expect(() => callHandler(markdownDocument, { title: "T" }, skill)).toFail("TOOL_UNAVAILABLE");
    }
  });

  test("gives equal bytes for equal arguments", () => {
    const given = { ...INCIDENT, format: "pdf" };
    const make = () => callHandler(markdownDocument, given, shipped("incident_report")).bytes;
    expect(make()).toEqual(make());
  });
});
