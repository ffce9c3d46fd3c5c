import type { ArtifactEnvelope } from "./artifact.ts";
import type { Fault, Outcome } from "./fault.ts";
import type { SecretReference } from "./mcp-server.ts";
import type { OfferedTool, QuarantinedTool } from "./offered-tool.ts";
import type { CallableSkill } from "./skill.ts";
import type { JsonObject } from "./tool.ts";

/** What the product needs from the world. Each port has one contract suite in `test/ports`. */

/** Milliseconds since the epoch. */
export type Clock = () => number;

/** `count` unpredictable bytes. */
export type RandomBytes = (count: number) => Uint8Array;

export type StoredObject = { readonly bytes: Uint8Array; readonly mediaType: string; readonly etag: string };

/** `absent`: only when nothing is there. `match`: only when what is there has this etag. */
export type PutCondition = { readonly type: "absent" } | { readonly type: "match"; readonly etag: string };

export type PutRequest = {
  /** `[A-Za-z0-9/._-]`, no empty, `.` or `..` segment; built from ids only. */
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly condition?: PutCondition;
};

export type PutResult = { readonly stored: true; readonly etag: string } | { readonly stored: false };

export type LinkRequest = { readonly fileName: string; readonly mediaType: string; readonly seconds: number };

/** `expiresAt` (epoch ms) is when the link really stops working, which may be sooner than was asked. */
export type Link = { readonly url: string; readonly expiresAt: number };

export type KeyPage = { readonly keys: readonly string[]; readonly next: string | undefined };

/** Bytes by key, with conditional writes. A read after a write sees the write. */
export type ObjectStore = {
  put(request: PutRequest): Promise<PutResult>;
  /** Undefined when there is none. Throws when the object is larger than `maxBytes`, before reading it whole. */
  get(key: string, limits: { readonly maxBytes: number }): Promise<StoredObject | undefined>;
  /** Like {@link get}, but `"unchanged"`, without reading it, when what is there has this etag. */
  getUnless(
    etag: string,
    key: string,
    limits: { readonly maxBytes: number },
  ): Promise<StoredObject | "unchanged" | undefined>;
  /** Succeeds when there is none. */
  delete(key: string): Promise<void>;
  /** Keys that start with `prefix`, in ascending byte order, after the key `after`. */
  list(prefix: string, page: { readonly limit: number; readonly after?: string | undefined }): Promise<KeyPage>;
  /** A link that downloads the object as an attachment of this name and type, without asking whether it exists. */
  presign(key: string, request: LinkRequest): Promise<Link>;
};

/** What a handler is given: everything it may know, because it is pure. */
export type HandlerInput = {
  readonly arguments: JsonObject;
  /** The skill that names the handler; undefined for a handler that is a built-in tool by itself. */
  readonly skill: CallableSkill | undefined;
  /** When the job was created, milliseconds since the epoch: the only time a handler sees. */
  readonly now: number;
};

/**
 * A pure function: no clock, no file, no network. Throws `ToolInputError` for arguments that the schema cannot
 * refuse; answers with model-facing JSON, plus `artifact` when it made a file.
 */
export type Handler = (input: HandlerInput) => JsonObject;

/** One call, in plain data, so that a runner may send it to another thread. */
export type HandlerCall = HandlerInput & { readonly handler: string };

/**
 * Runs handlers. The promise settles when the work has ended, never sooner: a caller that holds a quota unit until
 * then really bounds the work.
 */
export type HandlerRunner = {
  /** True when work past its deadline is stopped; false when it can only be waited for and its answer refused. */
  readonly interrupts: boolean;
  /** `deadline` in epoch ms. `CALL_TIMEOUT` when the work did not end before it. */
  run(call: HandlerCall, limits: { readonly deadline: number }): Promise<Outcome<JsonObject>>;
};

/** What an MCP server offered, each tool judged by itself. */
export type ToolListing = {
  readonly tools: readonly OfferedTool[];
  readonly quarantined: readonly QuarantinedTool[];
  /** How long the server says that the list is good, in ms. */
  readonly ttlMs?: number | undefined;
};

export type RemoteCall = {
  readonly server: string;
  readonly tool: string;
  /** SHA-256 (hex) of the definition that was approved. */
  readonly digest: string;
  readonly arguments: JsonObject;
};

/** What a remote call left behind: files apart from what a model sees, in the order of the answer's content. */
export type RemoteAnswer = { readonly output: JsonObject; readonly artifacts: readonly ArtifactEnvelope[] };

/** The servers that lend tools. A server is named as it was declared; an unknown name is a defect of the caller. */
export type ToolSource = {
  /**
   * All pages, or nothing: `SERVER_UNAVAILABLE` when the server is down, slow, unauthorised, or answers with what is no
   * list or too much of it. `deadline` in epoch ms.
   */
  list(server: string, limits: { readonly deadline: number }): Promise<Outcome<ToolListing>>;
  /** Connections that the calls of one job share. Opens none before the first call. */
  openSession(): ToolSession;
};

export type ToolSession = {
  /**
   * Never sent twice. `TOOL_DEFINITION_CHANGED` when the server offers another definition at this moment,
   * `TOOL_UNKNOWN` when it offers none, `TOOL_FAILED` when the tool itself says that it failed, `OUTPUT_TOO_LARGE` for
   * an answer of more than `maxBytes`, `CALL_TIMEOUT` past the deadline (epoch ms), else `SERVER_UNAVAILABLE`.
   */
  call(
    call: RemoteCall,
    limits: { readonly deadline: number; readonly maxBytes: number },
  ): Promise<Outcome<RemoteAnswer>>;
  /** Ends every connection. Never rejects. */
  close(): Promise<void>;
};

/**
 * The value of a secret; `SERVER_UNAVAILABLE`, naming the reference and never a value, when it cannot be had. `fresh`:
 * as it is stored at this moment, whatever is remembered of it; for a value that was refused.
 */
export type ReadSecret = (
  reference: SecretReference,
  options?: { readonly fresh?: boolean },
) => Promise<Outcome<string>>;

/** `act` once, after `milliseconds`, unless it is cancelled before. For processes that live on; a Lambda has none. */
export type Timer = (act: () => void, milliseconds: number) => { cancel(): void };

export type QueueMessage = {
  /** Text that XML 1.0 can carry, at most 262,144 bytes. */
  readonly body: string;
  /** For a queue that keeps order: messages of a group are handed out one after another. */
  readonly group?: string | undefined;
  /** For a queue that keeps order: the same again within five minutes is accepted and dropped. */
  readonly deduplicationId?: string | undefined;
};

/** Where messages go in. Resolves once the message is kept, or was dropped as a duplicate of one that was kept. */
export type EventQueue = { send(message: QueueMessage): Promise<void> };

/** All times on the queue's own clock, epoch ms. */
export type ReceivedMessage = QueueMessage & {
  readonly id: string;
  /** Names this one receipt; void once the message is handed out again. */
  readonly receipt: string;
  readonly sentAt: number;
  readonly firstReceivedAt: number;
  /** 1 at the first time. */
  readonly receiveCount: number;
};

/** Message id -> why it failed; what is not named is done and is removed. */
export type FailedMessages = ReadonlyMap<string, Fault>;

/**
 * Where messages come out. In the cloud the event source mapping does this. A message that was handed out stays hidden
 * for the visibility timeout, then it is handed out again; after the most receives it goes to the dead letters. Of a
 * group nothing is handed out while one of its messages is hidden.
 */
export type EventConsumer = {
  receive(options: { readonly max: number }): Promise<readonly ReceivedMessage[]>;
  /** False when the receipt is void: the message was or will be handed out again. */
  remove(receipt: string): Promise<boolean>;
  /** Hides the message for so long from now on; 0 hands it out again at once. False when the receipt is void. */
  hide(receipt: string, seconds: number): Promise<boolean>;
};

/** Structured log lines; the fields are flat. */
export type Log = (
  level: "info" | "warn" | "error",
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;
