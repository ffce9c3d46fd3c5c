import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import {
  deserializeMessage,
  type JSONRPCMessage,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client";
import { tooLarge, type WireWatch } from "./wire.ts";

/**
 * A server that is a process of its own: a message a line on its standard input and output. The SDK's transport waits
 * four seconds for a process that does not want to end, does not wait for the last signal to be obeyed, and knows
 * nothing of the processes that the process has started.
 */

export type ProcessOptions = {
  readonly command: string;
  readonly args: readonly string[];
  /** All of it: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  /** Its `maxBytes` bounds a line. */
  readonly watch: WireWatch;
  /** Milliseconds that the process is given to end by itself, and again once it was asked to; asked at its end. */
  readonly graceMs: () => number;
};

const LINE_FEED = 0x0a;
/**
 * Bytes of standard error that are kept, the last ones; a pipe that nobody drains would stop the server. Far more than
 * is shown of it, since a secret that is cut in two at the beginning is not found.
 */
const MAX_LAST_WORDS_BYTES = 16_384;

/** A group of processes can be ended as one, except on Windows. */
const HAS_GROUPS = process.platform !== "win32";

export class ProcessTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];
  /** That it has `stderr` and `pid` tells the SDK that silence is the way of an older server, and not an outage. */
  readonly stderr = null;
  readonly #options: ProcessOptions;
  #child: ChildProcessWithoutNullStreams | undefined;
  #line: Buffer[] = [];
  #lineBytes = 0;
  #lastWords = Buffer.alloc(0);
  #ending: Promise<void> | undefined;

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** The end of what the process wrote on standard error. */
  get lastWords(): string {
    return this.#lastWords.toString("utf8");
  }

  /** Rejects when there is no such command, with the code of the system call. */
  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#options;
    const child = spawn(command, args, { env, cwd, stdio: "pipe", windowsHide: true, detached: HAS_GROUPS });
    this.#child = child;
    await once(child, "spawn");
    child.on("error", (error) => this.onerror?.(error));
    child.stdin.on("error", (error) => this.onerror?.(error));
    child.stdout.on("data", (chunk: Buffer) => this.#read(chunk));
    child.stderr.on("data", (chunk: Buffer) => {
      this.#lastWords = Buffer.concat([this.#lastWords, chunk]).subarray(-MAX_LAST_WORDS_BYTES);
    });
    // Children of its own would hold the pipes open after it.
    child.once("exit", () => this.#signal("SIGKILL"));
    child.once("close", (code, signal) => {
      if (this.#ending !== undefined) return;
      this.#options.watch.onTrouble({ tooLarge: false, message: `its process ended (${code ?? signal})` });
      this.onclose?.();
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (stdin?.writable !== true) throw new Error("the process of the server has ended");
    await new Promise<void>((resolve, reject) => {
      stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Resolves once the process is gone, with what it started. Never rejects. */
  close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    const child = this.#child;
    if (child?.pid !== undefined) {
      const exited = child.exitCode === null && child.signalCode === null ? once(child, "exit") : Promise.resolve();
      child.stdin.end();
      if (!(await this.#settles(exited))) {
        this.#signal("SIGTERM");
        if (!(await this.#settles(exited))) this.#signal("SIGKILL");
      }
      await exited;
      for (const stream of child.stdio) stream?.destroy();
    }
    this.#line = [];
    this.onclose?.();
  }

  /** False when the time of grace was not enough. */
  async #settles(work: Promise<unknown>): Promise<boolean> {
    const milliseconds = Math.floor(this.#options.graceMs());
    if (milliseconds <= 0) return false;
    const timeout = AbortSignal.timeout(milliseconds);
    const expired = once(timeout, "abort").then(() => false);
    return Promise.race([work.then(() => true), expired]);
  }

  #signal(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(HAS_GROUPS ? -pid : pid, signal);
    } catch {
      // There is nobody left to end.
    }
  }

  #read(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      if (!this.#keep(chunk.subarray(start, end))) return;
      this.#deliver();
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
  }

  /** False when the line grew too long, and the process is being ended for it. */
  #keep(part: Buffer): boolean {
    if (this.#ending !== undefined) return false;
    const { watch } = this.#options;
    const maxBytes = watch.maxBytes();
    this.#lineBytes += part.length;
    if (this.#lineBytes > maxBytes) {
      watch.onTrouble(tooLarge(maxBytes));
      void this.close();
      return false;
    }
    this.#line.push(part);
    return true;
  }

  /** What is no message is passed over: launchers greet on standard output. */
  #deliver(): void {
    const text = Buffer.concat(this.#line).toString("utf8");
    this.#options.watch.onBytes(this.#lineBytes);
    this.#line = [];
    this.#lineBytes = 0;
    try {
      this.onmessage?.(deserializeMessage(text));
    } catch {
      this.onerror?.(new Error("a line on standard output is no message"));
    }
  }
}
