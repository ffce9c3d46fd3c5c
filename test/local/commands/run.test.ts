import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Fault } from "../../../functions/contract/fault.ts";
import { JobReport } from "../../../functions/contract/job.ts";
import { sha256Hex } from "../../../functions/contract/json.ts";
import { runCli } from "../../kit/command-line.ts";
import { temporaryDirectory, temporaryProject } from "../../kit/local-service.ts";

const GIVEN = '{"title":"Minutes","body":"We met."}';

function run(words: readonly string[], cwd: string, stdin: string | Fault = "") {
  return runCli(["run", ...words], { cwd, stdin });
}

describe("run", () => {
  test("saves the file and says where it is", async () => {
    const cwd = temporaryProject();
    const { code, out, err } = await run(["create_pdf@1", "--arguments", GIVEN], cwd);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain("succeeded");
    expect(out).toContain(`saved ${join(cwd, "Minutes.pdf")}`);
    expect(readFileSync(join(cwd, "Minutes.pdf"), "latin1")).toMatch(/^%PDF-/);
  });

  test("gives the report and the saved files as JSON", async () => {
    const cwd = temporaryProject();
    const { code, out, err } = await run(["create_pdf@1", "-a", GIVEN, "--json", "-o", "made/here"], cwd);
    expect([code, err]).toEqual([0, ""]);
    const printed = JSON.parse(out);
    const [artifact] = JobReport.parse(printed).artifacts;
    const path = join(cwd, "made/here/Minutes.pdf");
    expect(printed.saved).toEqual([{ artifact_id: "a1", path, size_bytes: artifact?.size_bytes }]);
    expect(sha256Hex(readFileSync(path))).toBe(artifact?.sha256);
  });

  test("never overwrites: a taken name gets a number", async () => {
    const cwd = temporaryProject();
    writeFileSync(join(cwd, "Minutes.pdf"), "mine");
    for (const _ of [1, 2]) expect((await run(["create_pdf@1", "-a", GIVEN], cwd)).code).toBe(0);
    expect(
      readdirSync(cwd)
        .filter((name) => name.endsWith(".pdf"))
        .sort(),
    ).toEqual(["Minutes-2.pdf", "Minutes-3.pdf", "Minutes.pdf"]);
    expect(readFileSync(join(cwd, "Minutes.pdf"), "utf8")).toBe("mine");
  });

  test("takes arguments from a file and from standard input", async () => {
    const cwd = temporaryProject();
    writeFileSync(join(cwd, "given.json"), `\ufeff${GIVEN}\r\n`);
    expect((await run(["create_pdf@1", "-a", "@given.json"], cwd)).code).toBe(0);
    expect((await run(["create_pdf@1", "-a", "-"], cwd, GIVEN)).code).toBe(0);
    expect((await run(["create_pdf@1", "--arguments=-"], cwd, GIVEN)).code).toBe(0);
  });

  test.each([
    ["{", /--arguments/],
    ["", /--arguments/],
    ['{"body":"a","body":"b"}', /duplicate/],
    ["@missing.json", /missing\.json: there is no such file/],
    ["@", /cannot read/],
    ["@directory", /cannot read directory/],
    ["@latin1.json", /not UTF-8/],
    ["-", /got nothing/],
    ["[]", /arguments/],
    ["null", /arguments/],
    ["{}", /body/],
    ['{"body":"x","colour":"red"}', /colour/],
  ])("refuses arguments %j in a sentence that names them", async (given, sentence) => {
    const cwd = temporaryProject();
    mkdirSync(join(cwd, "directory"));
    writeFileSync(join(cwd, "latin1.json"), Buffer.from('{"body":"\xe9"}', "latin1"));
    const { code, out, err } = await run(["create_pdf@1", "-a", given], cwd);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(sentence);
    expect(err).not.toMatch(/\n {4}at /);
    expect(readdirSync(cwd).filter((name) => name.endsWith(".pdf"))).toEqual([]);
  });

  test("passes on that standard input is no text", async () => {
    const ran = await run(["create_pdf@1", "-a", "-"], temporaryProject(), new Fault("REQUEST_INVALID", "not UTF-8"));
    expect([ran.code, ran.err]).toEqual([1, "not UTF-8 (REQUEST_INVALID)\n"]);
  });

  test("lists every mistake in the arguments once", async () => {
    const { err } = await run(["create_pdf@1", "-a", '{"body":"x","b":1,"a":1}'], temporaryProject());
    expect(err.match(/unknown argument "a"/g)?.length).toBeGreaterThan(0);
    expect(err).toMatch(/\/a[\s\S]*\/b/);
    const single = await run(["create_pdf@1", "-a", '{"body":"x","b":1}'], temporaryProject());
    expect(single.err.trim().split("\n")).toHaveLength(1);
  });

  test.each([
    ["ghost@1", "TOOL_UNKNOWN"],
    ["status_update@1", "TOOL_NOT_APPROVED"],
    ["create_pdf", "REQUEST_INVALID"],
  ])("refuses %s with %s", async (ref, code) => {
    const ran = await run([ref], temporaryProject());
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toContain(`(${code})`);
  });

  test.each(["file", "file/below", "/proc/nowhere"])(
    "refuses a directory that cannot be, before the job runs: %s",
    async (out) => {
      const cwd = temporaryProject();
      writeFileSync(join(cwd, "file"), "");
      const ran = await run(["create_pdf@1", "-a", GIVEN, "--out", out], cwd);
      expect(ran).toMatchObject({ code: 1, out: "" });
      expect(ran.err).toMatch(/cannot write into /);
      expect((await runCli(["jobs"], { cwd })).out).toMatch(/^No jobs yet/);
    },
  );

  test("says what it waits for, and takes it back before it answers", async () => {
    const { progress } = await run(["create_pdf@1", "-a", GIVEN], temporaryProject());
    expect(progress).toEqual(["running create_pdf@1", undefined, "saving files", undefined]);
  });
});

describe("a service that lies", () => {
  const CONTENT = "the file";
  const artifact = {
    artifact_id: "a1",
    call_id: "c1",
    name: "report.txt",
    media_type: "text/plain",
    size_bytes: CONTENT.length,
    sha256: sha256Hex(CONTENT),
    expires_at: "2026-11-30T12:00:00Z",
  };

  async function runAgainst(changes: Readonly<Record<string, unknown>>, served = CONTENT) {
    const server = createServer((request, response) => {
      if (request.url === "/file") return response.end(served);
      const url = `http://${request.headers.host}/file`;
      const report = {
        job_id: "j1",
        status: "succeeded",
        created_at: "2026-11-30T12:00:00Z",
        finished_at: "2026-11-30T12:00:00Z",
        results: [],
        artifacts: [{ ...artifact, url, ...changes }],
        usage: { calls: 1, duration_ms: 1, output_bytes: 1, artifact_bytes: 1 },
        catalog_generation: 0,
      };
      return response.end(JSON.stringify(report));
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    onTestFinished(() => void server.close());
    const address = server.address();
    const cwd = temporaryDirectory();
    const endpoint = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
    const ran = await runCli(["run", "x@1", "--endpoint", endpoint, "--out", "out"], { cwd });
    return { ...ran, files: readdirSync(join(cwd, "out")), around: readdirSync(cwd) };
  }

  test.each([
    ["../../escaped.txt", "escaped.txt"],
    ["/etc/passwd", "passwd.txt"],
    ["..", "a1.txt"],
    [".bashrc", "bashrc.txt"],
    ["report.exe", "report.exe.txt"],
    ["a\u0000b.txt", "ab.txt"],
    ["CON.txt", "_CON.txt"],
  ])("about the name %j saves a safe one in the directory", async (name, saved) => {
    expect(await runAgainst({ name })).toMatchObject({ code: 0, files: [saved], around: ["out"] });
  });

  test.each([
    ["other bytes", {}, "the fil3"],
    ["fewer bytes", {}, "the"],
    ["more bytes", {}, `${CONTENT}!`],
    ["endless bytes", {}, "x".repeat(5_000_000)],
    ["another digest", { sha256: "0".repeat(64) }, CONTENT],
  ])("about the file (%s) gets nothing saved, and the job's id is told", async (_, changes, served) => {
    const ran = await runAgainst(changes, served);
    expect(ran).toMatchObject({ code: 1, out: "", files: [] });
    expect(ran.err).toContain("skillbroker jobs j1 --out");
  });
});

test.each(["€", "a\nb", ""])("a key that no header can carry is told by its option: %j", async (key) => {
  const ran = await runCli(["run", "create_pdf@1", "--key", key], { cwd: temporaryProject() });
  expect(ran).toMatchObject({ code: 2, out: "" });
  expect(ran.err).toContain("--key");
});
