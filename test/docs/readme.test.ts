import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { JobReport, JobRequest } from "../../functions/contract/job.ts";

const readme = readFileSync("README.md", "utf8");
const block = (language: string) =>
  [...readme.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, "g"))].map((match) => match[1] ?? "");

test("the request that the README shows is a valid job", () => {
  const curl = block("sh").find((text) => text.includes("/v1/jobs"));
  const body = /-d '([\s\S]*)'/.exec(curl ?? "")?.[1] ?? "";
  expect(JobRequest.safeParse(JSON.parse(body)).error).toBeUndefined();
});

test("the answer that the README shows has the shape of a report", () => {
  const answer = block("json").find((text) => text.includes("catalog_generation"));
  const whole = (answer ?? "").replace('"sha256": "…"', `"sha256": "${"0".repeat(64)}"`);
  expect(JobReport.safeParse(JSON.parse(whole)).error).toBeUndefined();
});

test("every link between the documents leads to a file", () => {
  const documents = [
    "README.md",
    "CONTRIBUTING.md",
    ...readdirSync("docs")
      .filter((name) => name.endsWith(".md"))
      .map((name) => `docs/${name}`),
  ];
  for (const document of documents) {
    const links = [...readFileSync(document, "utf8").matchAll(/\]\((?!https?:)([^)#]+)/g)].map(
      (match) => match[1] ?? "",
    );
    for (const link of links)
      expect(() => readdirOrFile(join(dirname(document), link)), `${document}: ${link}`).not.toThrow();
  }
});

function readdirOrFile(path: string): void {
  if (path.endsWith("/")) readdirSync(path);
  else readFileSync(path);
}
