/** The functions of the service, and what the code of each is made of; what a project decides is put beside it. */

export const FUNCTION_NAMES = ["http", "worker", "dead-jobs", "notify", "refresh", "reconcile"] as const;
export type FunctionName = (typeof FUNCTION_NAMES)[number];

export type EntryPoint = {
  /** Its source, relative to the root of the sources. */
  readonly source: string;
  /** Has the pinned skill files beside its code, with their pins and the approvals. */
  readonly loadsSkills: boolean;
  /** Has the declared MCP servers beside its code. */
  readonly readsServers: boolean;
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
    readsServers: true,
    lazyPackages: [...MCP_SDK, ...SECRETS_SDK, ...QUEUE_SDK],
    absentPackages: [],
  },
  worker: {
    source: "functions/worker.lambda.ts",
    loadsSkills: true,
    readsServers: true,
    lazyPackages: [...MCP_SDK, ...SECRETS_SDK],
    // A worker that could send messages could give itself work for ever.
    absentPackages: QUEUE_SDK,
  },
  "dead-jobs": {
    source: "functions/dead-jobs.lambda.ts",
    loadsSkills: false,
    readsServers: false,
    lazyPackages: [],
    absentPackages: [...MCP_SDK, ...SECRETS_SDK, ...QUEUE_SDK],
  },
  notify: {
    source: "functions/notify.lambda.ts",
    loadsSkills: false,
    readsServers: true,
    lazyPackages: [],
    absentPackages: [...MCP_SDK, ...SECRETS_SDK],
  },
  refresh: {
    source: "functions/refresh.lambda.ts",
    loadsSkills: true,
    readsServers: true,
    lazyPackages: [],
    // A refresh that could send messages could keep itself going for ever.
    absentPackages: QUEUE_SDK,
  },
  reconcile: {
    source: "functions/reconcile.lambda.ts",
    loadsSkills: false,
    readsServers: true,
    lazyPackages: [],
    absentPackages: [...MCP_SDK, ...SECRETS_SDK],
  },
};
