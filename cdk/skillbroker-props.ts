import type { RemovalPolicy } from "aws-cdk-lib";
import type { IAlarmAction } from "aws-cdk-lib/aws-cloudwatch";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { ITopic } from "aws-cdk-lib/aws-sns";

/**
 * Plain types, written out: who imports them reads these comments, and needs none of the schemas that check the values.
 */

/** What a `SkillBroker` is made from: the settings of an operator, and CDK objects where there are some for them. */
export type SkillBrokerProps = {
  /**
   * What may be called: exact refs (`status_update@1`, `github/search_issues@<digest of its definition>`), or `local`
   * for the tools that are written in the source. Left out, nothing is approved.
   */
  readonly tools?: readonly string[] | undefined;
  /**
   * Directories that each hold repositories beside their `pins.json`, from the working directory on. Left out,
   * `BUILTIN_SKILLS` alone.
   */
  readonly skills?: string | readonly string[] | undefined;
  /** Names of the repositories that are loaded; left out, all that are pinned. */
  readonly repositories?: readonly string[] | undefined;
  /** MCP servers that lend tools: as the `mcpServers` of an `mcp.json`, or the path of such a file. Left out, none. */
  readonly mcpServers?: string | Readonly<Record<string, McpServer>> | undefined;
  /**
   * Who is let in: callers with AWS credentials (`"iam"`, when left out), bearers of tokens, or everybody (`"none"`).
   */
  readonly auth?: "iam" | "none" | JwtAuthProps | undefined;
  /** Limits of a job that differ from the defaults; a job can lower them. */
  readonly limits?: LimitProps | undefined;
  /** Longest time of an asynchronous job in seconds, 1 to 840; 300 when left out. */
  readonly asyncJobSeconds?: number | undefined;
  /** Asynchronous jobs that are worked on at the same time, 2 to 1000; 10 when left out. */
  readonly asyncJobsAtOnce?: number | undefined;
  /**
   * Requests that are answered at the same time, kept free for them in the account; left out, as the account allows.
   */
  readonly httpConcurrency?: number | undefined;
  /** Days that files are kept, 1 to 3650; 7 when left out. */
  readonly artifactDays?: number | undefined;
  /**
   * Quiet wanted after a server's notification before its list is fetched, in seconds, 0.1 to 60; 0.5 when left out.
   */
  readonly debounceSeconds?: number | undefined;
  /**
   * A stream of notifications without quiet is answered at least this often, in seconds, 1 to 900; 15 when left out.
   */
  readonly longestWaitSeconds?: number | undefined;
  /** How often a list is fetched without any notification, in seconds, 60 to 86,400; 900 when left out. */
  readonly reconcileSeconds?: number | undefined;
  /**
   * Age in seconds past which a list that could not be fetched again is not gone by, 300 to 2,592,000; a day when left
   * out.
   */
  readonly maxListAgeSeconds?: number | undefined;
  /** Days that logs are kept, one of the numbers that CloudWatch knows; 30 when left out. */
  readonly logDays?: number | undefined;
  /** Customer managed key, or its ARN, for bucket and queues, and for logs where its policy can be written. */
  readonly encryptionKey?: IKey | string | undefined;
  /** What every alarm does when it goes off. */
  readonly alarmActions?: readonly IAlarmAction[] | undefined;
  /** Topic, or its ARN, that is told of every alarm. */
  readonly alarmTopic?: ITopic | string | undefined;
  /** Whether bucket and files stay when they are taken out of the stack: `RETAIN`, when left out, or `DESTROY`. */
  readonly removalPolicy?: RemovalPolicy | undefined;
  /** Tags on every resource. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** Directory of the functions' code as `npm run build` makes it; left out, that of this package. */
  readonly functionsCode?: string | undefined;
};

/** Tokens of an OpenID Connect issuer; both may be attributes of a user pool that is known only while deploying. */
export type JwtAuthProps = {
  /** The https URL that stands in the tokens as `iss`. */
  readonly issuer: string;
  /** Values of `aud` or `client_id` that are let in. */
  readonly audience: readonly string[];
  /** Scope that a group of routes asks for; `skillbroker/run`, `skillbroker/read` and so on when left out. */
  readonly scopes?: ScopeProps | undefined;
};

export type ScopeProps = {
  /** To run jobs, and to remove jobs and files. */
  readonly run?: string | undefined;
  /** To read jobs, files, tools, skills and refreshes. */
  readonly read?: string | undefined;
  /** To tell of a server's changed list. */
  readonly notify?: string | undefined;
  /** To ask for a refresh now. */
  readonly operate?: string | undefined;
};

/** Whole numbers from 1 on; what is left out is as it is by default. */
export type LimitProps = {
  /** Calls of a job; 16. */
  readonly max_calls?: number | undefined;
  /**
   * Milliseconds of a call, less than the longest job has, `asyncJobSeconds` counted; it ends with its job at the
   * latest. 5,000.
   */
  readonly call_timeout_ms?: number | undefined;
  /** Milliseconds after which a job that is waited for begins no further call, at most 22,000; 20,000. */
  readonly job_timeout_ms?: number | undefined;
  /** Bytes of the JSON arguments of a call; 262,144. */
  readonly max_argument_bytes?: number | undefined;
  /** Bytes of the JSON answer of a call, its file not counted; 65,536. */
  readonly max_output_bytes?: number | undefined;
  /** Bytes of one file; 4,194,304. */
  readonly max_artifact_bytes?: number | undefined;
  /** Bytes of all files of a job; 16,777,216. */
  readonly max_total_artifact_bytes?: number | undefined;
  /** Seconds that a download link lives; 900. */
  readonly link_seconds?: number | undefined;
};

/** As in an `mcp.json`. A command cannot run in Lambda: it must be disabled. */
export type McpServer =
  | {
      readonly type?: "http" | "streamable-http" | undefined;
      readonly url: string;
      /** Secrets are named in them, `${secretsmanager:name}` or `${ssm:/path}`, and never written. */
      readonly headers?: Readonly<Record<string, string>> | undefined;
      readonly disabled?: boolean | undefined;
    }
  | {
      readonly type?: "stdio" | undefined;
      readonly command: string;
      readonly args?: readonly string[] | undefined;
      readonly env?: Readonly<Record<string, string>> | undefined;
      readonly cwd?: string | undefined;
      readonly disabled: true;
    };
