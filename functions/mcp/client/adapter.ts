import type { MCPServerConfig } from "../../contract/mcp-server.ts";
import { LIST_CHANGED } from "../../contract/notification.ts";
import type { Clock, Log, ReadSecret, Timer } from "../../contract/ports.ts";
import { type BackoffLimits, createBackoff } from "./backoff.ts";
import { rest, unlessAborted } from "./deadline.ts";
import { type Listening, type ListenLimits, listen } from "./listen.ts";

/**
 * A connection with one server that is held for as long as the process lives, for what the server says by itself.
 * Nothing is replayed after a break, so each time that it is connected it says that the list has changed: whoever
 * listens looks again, and nothing that happened in between is missed.
 */

export type NotificationListener = (method: string, params: Readonly<Record<string, unknown>>) => unknown;

export type AdapterLimits = ListenLimits &
  BackoffLimits & {
    /** How often a server is asked whether it is still there. */
    readonly checkEveryMs: number;
    /** A connection that lasted so long was a good one: the next attempt after it is a first one again. */
    readonly steadyMs: number;
  };

/**
 * A stream on which nothing at all comes is ended by `fetch` itself after five minutes, which is how a line that was
 * cut without a word is found out when the server still answers on another.
 */
export const DEFAULT_ADAPTER_LIMITS: AdapterLimits = {
  connectMs: 30_000,
  streamMs: 5_000,
  checkMs: 15_000,
  checkEveryMs: 60_000,
  steadyMs: 60_000,
  firstDelayMs: 1_000,
  longestDelayMs: 60_000,
  graceMs: 500,
  maxBytes: 4 * 1024 * 1024,
};

export type AdapterOptions = {
  readonly config: MCPServerConfig;
  readonly readSecret: ReadSecret;
  readonly clock: Clock;
  readonly timer: Timer;
  /** At least 0 and below 1. */
  readonly random: () => number;
  readonly log: Log;
  readonly limits?: Partial<AdapterLimits>;
};

/** Times in epoch ms. */
export type AdapterStatus =
  | { readonly state: "stopped" }
  | { readonly state: "connecting" }
  /** `notifies` is false when the server does not say that its list has changed. */
  | { readonly state: "connected"; readonly since: number; readonly notifies: boolean }
  | { readonly state: "failed"; readonly reason: string; readonly retryAt: number };

type Life = { readonly controller: AbortController; readonly ended: Promise<void> };

export class MCPToolAdapter {
  readonly #options: AdapterOptions;
  readonly #limits: AdapterLimits;
  readonly #listeners = new Set<{ readonly hear: NotificationListener }>();
  #status: AdapterStatus = { state: "stopped" };
  #life: Life | undefined;

  constructor(options: AdapterOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_ADAPTER_LIMITS, ...options.limits };
  }

  /** Of the server. */
  get name(): string {
    return this.#options.config.name;
  }

  get status(): AdapterStatus {
    return this.#status;
  }

  /** The listener hears every notification until the function that is returned is called. */
  addNotificationListener(listener: NotificationListener): () => void {
    const entry = { hear: listener };
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  /** Tells every listener, in the order in which they came; one that throws or rejects is logged and harms no other. */
  dispatchNotification(method: string, params: Readonly<Record<string, unknown>> = {}): void {
    const told = Object.freeze({ ...params });
    const failed = (error: unknown) =>
      this.#options.log("error", "listener failed", { server: this.name, method, error });
    for (const { hear } of [...this.#listeners]) {
      try {
        const heard = hear(method, told);
        if (heard instanceof Promise) heard.catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  }

  /** Connects, and connects again whenever the connection ends. Does nothing when it was started already. */
  start(): void {
    if (this.#life !== undefined) return;
    const controller = new AbortController();
    this.#life = { controller, ended: this.#live(controller.signal) };
  }

  /** Resolves once the connection is gone, with the process that it may have started. Never rejects. */
  async close(): Promise<void> {
    const life = this.#life;
    life?.controller.abort();
    await life?.ended;
    if (this.#life === life) this.#life = undefined;
  }

  async #live(life: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const backoff = createBackoff(this.#limits, this.#options.random);
    while (!life.aborted) {
      this.#status = { state: "connecting" };
      const reason = await this.#hold(life).catch((error: unknown) => {
        log("error", "connection failed for no reason that was foreseen", { server: this.name, error });
        return "failed for no reason that was foreseen";
      });
      if (life.aborted) break;
      if (this.#wasSteady()) backoff.reset();
      const delayMs = Math.round(backoff.next());
      log("warn", "not connected", { server: this.name, reason, retryMs: delayMs });
      this.#status = { state: "failed", reason, retryAt: clock() + delayMs };
      await rest({ timer: this.#options.timer, milliseconds: delayMs, signal: life });
    }
    this.#status = { state: "stopped" };
  }

  /** Connects, listens for as long as there is something to hear, and says why it has ended. */
  async #hold(life: AbortSignal): Promise<string> {
    const { log, clock } = this.#options;
    const listening = await this.#open(life);
    if (!listening.ok) return listening.fault.message;
    const { notifies, ended, close } = listening.value;
    const over = new AbortController();
    try {
      if (life.aborted) return WAS_LEFT;
      this.#status = { state: "connected", since: clock(), notifies };
      log("info", "connected", { server: this.name });
      if (!notifies) log("warn", "does not say when its list changes", { server: this.name });
      this.dispatchNotification(LIST_CHANGED);
      const unanswered = this.#untilUnanswered(listening.value, over.signal);
      return (await unlessAborted(Promise.race([ended, unanswered]), life)) ?? WAS_LEFT;
    } finally {
      over.abort();
      await close();
    }
  }

  #wasSteady(): boolean {
    const status = this.#status;
    return status.state === "connected" && this.#options.clock() - status.since >= this.#limits.steadyMs;
  }

  async #open(life: AbortSignal): ReturnType<typeof listen> {
    const { config, readSecret, timer } = this.#options;
    const limit = new AbortController();
    const { cancel } = timer(() => limit.abort(), this.#limits.connectMs);
    const signal = AbortSignal.any([life, limit.signal]);
    const onNotification: NotificationListener = (method, params) => {
      if (!life.aborted) this.dispatchNotification(method, params);
    };
    try {
      return await listen({ config, readSecret, timer, signal, onNotification, limits: this.#limits });
    } finally {
      cancel();
    }
  }

  /** Asks from time to time whether the server is there, and resolves with the reason once it does not answer. */
  async #untilUnanswered({ check }: Listening, over: AbortSignal): Promise<string> {
    while (!over.aborted) {
      await rest({ timer: this.#options.timer, milliseconds: this.#limits.checkEveryMs, signal: over });
      const fault = over.aborted ? undefined : await check();
      if (fault !== undefined) return fault.message;
    }
    return WAS_LEFT;
  }
}

/** Said to nobody: whoever closes knows. */
const WAS_LEFT = "was left";
