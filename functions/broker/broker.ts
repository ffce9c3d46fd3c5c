import type { Artifact } from "../contract/artifact.ts";
import { type Fault, type Outcome, refuse, succeed } from "../contract/fault.ts";
import { digestOfJson } from "../contract/json.ts";
import type { Limits } from "../contract/limits.ts";
import { parseMcpToolName } from "../contract/offered-tool.ts";
import type { Clock, HandlerRunner, ToolSession } from "../contract/ports.ts";
import { utf8ByteCount } from "../contract/text.ts";
import type { JsonObject, ToolRef } from "../contract/tool.ts";
import type { ArgumentChecker } from "./argument-schema.ts";
import { checkArtifact } from "./artifact-check.ts";
import type { OperatorPolicy } from "./operator-policy.ts";
import { Quota } from "./quota.ts";
import type { RegisteredTool } from "./tool-registry.ts";

/**
 * The one gate that every call passes. What a job may call is what is registered, approved by the operator and allowed
 * by the job; each call then runs through one pipeline in one order. A refusal is a value; a throw is a defect.
 */

export type JobPolicy = { readonly allowed: ReadonlySet<ToolRef>; readonly limits: Limits };

export type ToolBrokerOptions = OperatorGate & {
  readonly jobPolicy: JobPolicy;
  readonly runner: HandlerRunner;
  /** For the tools that servers lend. */
  readonly session: Pick<ToolSession, "call">;
  readonly checkArguments: ArgumentChecker;
  readonly clock: Clock;
  /** When the job was created, epoch ms; handlers see no other time, so that a job that is run again makes the same. */
  readonly createdAt: number;
  /** When it began to run, epoch ms; the job's deadline counts from it. */
  readonly startedAt: number;
};

export type CallToRun = { readonly ref: ToolRef; readonly arguments: JsonObject };

/** What a call left behind: the answer for the model, and the files apart from it, in the order of their making. */
export type CallAnswer = {
  readonly output: JsonObject;
  readonly outputBytes: number;
  readonly artifacts: readonly Artifact[];
};

export type CallOutcome = {
  readonly outcome: Outcome<CallAnswer>;
  /** SHA-256 (hex) of the canonical JSON of the arguments. */
  readonly argumentsDigest: string;
  /** Undefined when the ref was not admitted. */
  readonly definitionDigest: string | undefined;
  readonly durationMs: number;
};

export class ToolBroker {
  readonly #options: ToolBrokerOptions;
  readonly #calls: Quota;
  readonly #artifactBytes: Quota;

  constructor(options: ToolBrokerOptions) {
    this.#options = options;
    this.#calls = new Quota(options.jobPolicy.limits.max_calls);
    this.#artifactBytes = new Quota(options.jobPolicy.limits.max_total_artifact_bytes);
  }

  /**
   * Whether the job may call the ref at all: `TOOL_UNKNOWN`, `TOOL_NOT_APPROVED` or `TOOL_NOT_ALLOWED` when not.
   * Decided before anything runs, and again by {@link call}.
   */
  admit(ref: ToolRef): Outcome<RegisteredTool> {
    return admitByJob(ref, { gate: this.#options, allowed: this.#options.jobPolicy.allowed });
  }

  /** Runs one call through the pipeline. Resolves when the work has ended. */
  async call(call: CallToRun): Promise<CallOutcome> {
    const { clock } = this.#options;
    const started = clock();
    const admitted = this.admit(call.ref);
    const outcome = admitted.ok ? await this.#run(admitted.value, call.arguments) : admitted;
    return {
      outcome,
      argumentsDigest: digestOfJson(call.arguments),
      definitionDigest: admitted.ok ? admitted.value.spec.digest : undefined,
      durationMs: Math.max(0, Math.round(clock() - started)),
    };
  }

  async #run(tool: RegisteredTool, given: JsonObject): Promise<Outcome<CallAnswer>> {
    const { limits } = this.#options.jobPolicy;
    if (!this.#calls.take(1)) return refuse("QUOTA_EXCEEDED", `the job may make ${limits.max_calls} calls`);
    const tooLarge = checkArgumentBytes(tool, given, limits);
    if (tooLarge !== undefined) return { ok: false, fault: tooLarge };
    const fitting = await this.#options.checkArguments(tool.spec, given);
    if (!fitting.ok) return fitting;
    const answered = await this.#runByDeadline(tool, given);
    return answered.ok ? this.#lift(tool, answered.value) : answered;
  }

  async #runByDeadline({ binding, spec }: RegisteredTool, given: JsonObject): Promise<Outcome<Answered>> {
    const { clock, runner, session, createdAt, startedAt, jobPolicy } = this.#options;
    const { call_timeout_ms, job_timeout_ms } = jobPolicy.limits;
    const jobDeadline = startedAt + job_timeout_ms;
    const deadline = Math.min(clock() + call_timeout_ms, jobDeadline);
    if (clock() >= jobDeadline) {
      return refuse("CALL_TIMEOUT", `${spec.ref} was not begun: the job's ${job_timeout_ms} ms are used up`);
    }
    if ("server" in binding) {
      const { server, tool } = binding;
      const call = { server, tool, digest: spec.digest, arguments: given };
      return session.call(call, { deadline, maxBytes: toMaxAnswerBytes(jobPolicy.limits) });
    }
    const { handler, skill } = binding;
    const answered = await runner.run({ handler, skill, arguments: given, now: createdAt }, { deadline });
    return answered.ok ? succeed(toAnswered(answered.value)) : answered;
  }

  /** Takes the files out of what a model sees: their bytes never reach a prompt, a log or a record. */
  #lift({ spec }: RegisteredTool, { output, artifacts: envelopes }: Answered): Outcome<CallAnswer> {
    const { limits } = this.#options.jobPolicy;
    const outputBytes = utf8ByteCount(JSON.stringify(output));
    if (outputBytes > limits.max_output_bytes) {
      return refuse(
        "OUTPUT_TOO_LARGE",
        `${spec.ref} answered ${outputBytes} bytes, at most ${limits.max_output_bytes} allowed`,
      );
    }
    const artifacts: Artifact[] = [];
    for (const envelope of envelopes) {
      const checked = checkArtifact(envelope, { maxBytes: limits.max_artifact_bytes });
      if (!checked.ok) return checked;
      artifacts.push(checked.value);
    }
    if (!this.#artifactBytes.take(artifacts.reduce((sum, { bytes }) => sum + bytes.length, 0))) {
      const allowed = limits.max_total_artifact_bytes;
      return refuse(
        "ARTIFACT_TOO_LARGE",
        `with this artifact the job's files would exceed the ${allowed} bytes allowed`,
      );
    }
    return succeed({ output, outputBytes, artifacts });
  }
}

type Answered = { readonly output: JsonObject; readonly artifacts: readonly unknown[] };

/** What a handler answered: the envelope stands beside the output. */
function toAnswered({ artifact, ...output }: JsonObject): Answered {
  return { output, artifacts: artifact === undefined ? [] : [artifact] };
}

/** Files come as base64 among the output, so an answer may have as many bytes as all that is allowed of both. */
function toMaxAnswerBytes({ max_output_bytes, max_total_artifact_bytes }: Limits): number {
  return max_output_bytes + Math.ceil(max_total_artifact_bytes / 3) * 4;
}

/** What the operator's half of the gate goes by. */
export type OperatorGate = {
  /** A snapshot: the broker lives as long as one job. */
  readonly tools: ReadonlyMap<ToolRef, RegisteredTool>;
  readonly operatorPolicy: OperatorPolicy;
  /** Repositories that are left out; an approved ref that nothing provides is then theirs to answer for. */
  readonly refusedRepositories: readonly string[];
  /** What is known of an approved tool of a server that is not among {@link tools}. */
  readonly lookUpLent: (ref: ToolRef) => LentState;
};

/** `unknown`: the server's list could not be fetched. */
export type LentState =
  | { readonly state: "present" | "absent" | "unknown" }
  | { readonly state: "changed"; readonly approved: string; readonly offered: string };

/** Registered and approved; what a job makes of it is not asked. */
export function admitByOperator(ref: ToolRef, gate: OperatorGate): Outcome<RegisteredTool> {
  const tool = gate.tools.get(ref);
  const approved = gate.operatorPolicy.approved.has(ref);
  if (tool === undefined) return approved ? refuseApproved(ref, gate) : refuseUnknown(ref);
  if (approved) return succeed(tool);
  return refuse("TOOL_NOT_APPROVED", `${ref} is installed but not approved; the operator approves it by its exact ref`);
}

/** Registered, approved and allowed by the job. */
export function admitByJob(
  ref: ToolRef,
  { gate, allowed }: { readonly gate: OperatorGate; readonly allowed: ReadonlySet<ToolRef> },
): Outcome<RegisteredTool> {
  const approved = admitByOperator(ref, gate);
  if (!approved.ok || allowed.has(ref)) return approved;
  return refuse("TOOL_NOT_ALLOWED", `${ref} is not among the job's allowed tools; add it to allowed_tools`);
}

function refuseUnknown(ref: ToolRef): Outcome<never> {
  return refuse("TOOL_UNKNOWN", `no tool is called ${ref}; GET /v1/tools lists those there are`);
}

/** Why an approved tool is not there. */
function refuseApproved(ref: ToolRef, { refusedRepositories, lookUpLent }: OperatorGate): Outcome<never> {
  const name = parseMcpToolName(ref);
  if (name !== undefined) {
    const found = lookUpLent(ref);
    if (found.state === "changed") {
      const message = `${name.server} offers ${name.tool} with another definition than the approved one: approved ${found.approved}, offered ${found.offered}; the operator reads the new one and approves its ref`;
      return refuse("TOOL_DEFINITION_CHANGED", message);
    }
    if (found.state === "unknown") {
      return refuse(
        "SERVER_UNAVAILABLE",
        `${ref} is approved, but the tools of ${name.server} could not be listed; try again`,
      );
    }
    return refuseUnknown(ref);
  }
  if (refusedRepositories.length === 0) return refuseUnknown(ref);
  const message = `${ref} is approved but not installed, since a repository is refused: ${refusedRepositories.join(", ")}`;
  return refuse("REPOSITORY_REFUSED", message);
}

function checkArgumentBytes({ spec }: RegisteredTool, given: JsonObject, limits: Limits): Fault | undefined {
  const bytes = utf8ByteCount(JSON.stringify(given));
  if (bytes <= limits.max_argument_bytes) return undefined;
  const message = `the arguments of ${spec.ref} have ${bytes} bytes, at most ${limits.max_argument_bytes} allowed`;
  return refuse("PAYLOAD_TOO_LARGE", message).fault;
}
