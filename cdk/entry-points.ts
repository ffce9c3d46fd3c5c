/** The functions of the service, and what the code of each is made of; the declared MCP servers are compiled into all. */

export type FunctionName = "http" | "notify" | "refresh" | "reconcile";

export type EntryPoint = {
  /** Its source, relative to the root of the sources. */
  readonly source: string;
  /** Has the pinned skill files beside its code, and their pins compiled in. */
  readonly loadsSkills: boolean;
  /** Packages that it has and does not read at its start: what few requests need would slow the start of all. */
  readonly lazyPackages: readonly string[];
  /** Packages that it does not have, because it never does what they are for. */
  readonly absentPackages: readonly string[];
};

const MCP_SDK = ["@modelcontextprotocol/client", "@modelcontextprotocol/core"] as const;
const SECRETS_SDK = ["@aws-sdk/client-secrets-manager", "@aws-sdk/client-ssm"] as const;
const QUEUE_SDK = ["@aws-sdk/client-sqs"] as const;

export const ENTRY_POINTS: Readonly<Record<FunctionName, EntryPoint>> = {
  http: {
    source: "functions/http.lambda.ts",
    loadsSkills: true,
    lazyPackages: [...MCP_SDK, ...SECRETS_SDK, ...QUEUE_SDK],
    absentPackages: [],
  },
  notify: {
    source: "functions/notify.lambda.ts",
    loadsSkills: false,
    lazyPackages: [],
    absentPackages: [...MCP_SDK, ...SECRETS_SDK],
  },
  refresh: {
    source: "functions/refresh.lambda.ts",
    loadsSkills: true,
    lazyPackages: [],
    // A refresh that could send messages could keep itself going for ever.
    absentPackages: QUEUE_SDK,
  },
  reconcile: {
    source: "functions/reconcile.lambda.ts",
    loadsSkills: false,
    lazyPackages: [],
    absentPackages: [...MCP_SDK, ...SECRETS_SDK],
  },
};
