import type { Outcome } from "./fault.ts";
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

/** Structured log lines; the fields are flat. */
export type Log = (
  level: "info" | "warn" | "error",
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;
