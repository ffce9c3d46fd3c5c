/** What a reading of SKILL.md has to say about the file. */

/** `refused` in every reading; `rule` breaks the specification but has one meaning; `advice` breaks nothing. */
export type Grade = "refused" | "rule" | "advice";

/** `line` counts from 1 in the file; `rule` is a stable kebab-case id. */
export type Finding = {
  readonly grade: Grade;
  readonly line: number;
  readonly rule: string;
  readonly message: string;
};

export type Report = (finding: Finding) => void;
