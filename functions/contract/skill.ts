import type { JsonObject, ToolRef } from "./tool.ts";

declare const verified: unique symbol;

/** The name of a skill (Agent Skills specification, `name`), of its directory, and of a repository. */
export const NAME_PATTERN = "[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?";

/** The callable half of a skill, from its `tool.json`. */
export type CallableSkill = {
  readonly ref: ToolRef;
  readonly id: string;
  readonly version: string;
  readonly handler: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject | undefined;
  /** Template name -> template text. */
  readonly templates: ReadonlyMap<string, string>;
};

export type SkillFile = { readonly path: string; readonly sha256: string; readonly size: number };

/**
 * A skill whose every byte matched its pin. Only `repository/load.ts` makes one, so code that is handed a `Skill`
 * need not ask whether it was verified.
 */
export type Skill = {
  /** `builtin/status-update`: the repository's name, then the directory's. */
  readonly name: string;
  readonly origin: string;
  readonly description: string;
  readonly license?: string | undefined;
  readonly compatibility?: string | undefined;
  readonly metadata: ReadonlyMap<string, string>;
  readonly instructions: string;
  /** Refs of `allowed-tools`, as written. */
  readonly toolRefs: readonly string[];
  /** Names of included skills, each with its namespace. */
  readonly includes: readonly string[];
  readonly callable?: CallableSkill | undefined;
  readonly files: readonly SkillFile[];
  readonly digest: string;
  readonly [verified]: true;
};

export type UnverifiedSkill = Omit<Skill, typeof verified>;
