import type { Artifact } from "../contract/artifact.ts";
import { type Fault, type Outcome, refuse, succeed } from "../contract/fault.ts";
import { digestOfJson } from "../contract/json.ts";
import type { Limits } from "../contract/limits.ts";
import type { Clock, HandlerRunner } from "../contract/ports.ts";
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

export type ToolBrokerOptions = {
  /** A snapshot: the broker lives as long as one job. */
  readonly tools: ReadonlyMap<ToolRef, RegisteredTool>;
  readonly operatorPolicy: OperatorPolicy;
  /** Repositories that are left out; an approved ref that nothing provides is then theirs to answer for. */
  readonly refusedRepositories: readonly string[];
  readonly jobPolicy: JobPolicy;
  readonly runner: HandlerRunner;
  readonly checkArguments: ArgumentChecker;
  readonly clock: Clock;
  /** When the job was created, epoch ms; handlers see no other time, and the job's deadline counts from it. */
  readonly createdAt: number;
};

export type CallToRun = { readonly ref: ToolRef; readonly arguments: JsonObject };

/** What a call left behind: the answer for the model, and the artifact apart from it. */
export type CallAnswer = { readonly output: JsonObject; readonly outputBytes: number; readonly artifact?: Artifact };

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
    const approved = admitByOperator(ref, this.#options);
    if (!approved.ok || this.#options.jobPolicy.allowed.has(ref)) return approved;
    return refuse("TOOL_NOT_ALLOWED", `${ref} is not among the job's allowed tools; add it to allowed_tools`);
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

  async #runByDeadline({ binding, spec }: RegisteredTool, given: JsonObject): Promise<Outcome<JsonObject>> {
    const { clock, runner, createdAt, jobPolicy } = this.#options;
    const jobDeadline = createdAt + jobPolicy.limits.job_timeout_ms;
    const deadline = Math.min(clock() + jobPolicy.limits.call_timeout_ms, jobDeadline);
    if (clock() >= jobDeadline) {
      return refuse(
        "CALL_TIMEOUT",
        `${spec.ref} was not begun: the job's ${jobPolicy.limits.job_timeout_ms} ms are used up`,
      );
    }
    return runner.run(
      { handler: binding.handler, skill: binding.skill, arguments: given, now: createdAt },
      { deadline },
    );
  }

  /** Takes the artifact out of what a model sees: its bytes never reach a prompt, a log or a record. */
  #lift({ spec }: RegisteredTool, answer: JsonObject): Outcome<CallAnswer> {
    const { limits } = this.#options.jobPolicy;
    const { artifact: envelope, ...output } = answer;
    const outputBytes = utf8ByteCount(JSON.stringify(output));
    if (outputBytes > limits.max_output_bytes) {
      return refuse(
        "OUTPUT_TOO_LARGE",
        `${spec.ref} answered ${outputBytes} bytes, at most ${limits.max_output_bytes} allowed`,
      );
    }
    if (envelope === undefined) return succeed({ output, outputBytes });
    const checked = checkArtifact(envelope, { maxBytes: limits.max_artifact_bytes });
    if (!checked.ok) return checked;
    if (!this.#artifactBytes.take(checked.value.bytes.length)) {
      const allowed = limits.max_total_artifact_bytes;
      return refuse(
        "ARTIFACT_TOO_LARGE",
        `with this artifact the job's files would exceed the ${allowed} bytes allowed`,
      );
    }
    return succeed({ output, outputBytes, artifact: checked.value });
  }
}

/** Registered and approved; what a job makes of it is not asked. */
export function admitByOperator(
  ref: ToolRef,
  {
    tools,
    operatorPolicy,
    refusedRepositories,
  }: Pick<ToolBrokerOptions, "tools" | "operatorPolicy" | "refusedRepositories">,
): Outcome<RegisteredTool> {
  const tool = tools.get(ref);
  const approved = operatorPolicy.approved.has(ref);
  if (tool === undefined && approved && refusedRepositories.length > 0) {
    const message = `${ref} is approved but not installed, since a repository is refused: ${refusedRepositories.join(", ")}`;
    return refuse("REPOSITORY_REFUSED", message);
  }
  if (tool === undefined)
    return refuse("TOOL_UNKNOWN", `no tool is called ${ref}; GET /v1/tools lists those there are`);
  if (approved) return succeed(tool);
  return refuse("TOOL_NOT_APPROVED", `${ref} is installed but not approved; the operator approves it by its exact ref`);
}

function checkArgumentBytes({ spec }: RegisteredTool, given: JsonObject, limits: Limits): Fault | undefined {
  const bytes = utf8ByteCount(JSON.stringify(given));
  if (bytes <= limits.max_argument_bytes) return undefined;
  const message = `the arguments of ${spec.ref} have ${bytes} bytes, at most ${limits.max_argument_bytes} allowed`;
  return refuse("PAYLOAD_TOO_LARGE", message).fault;
}
