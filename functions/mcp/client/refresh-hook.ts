import { LIST_CHANGED } from "../../contract/notification.ts";
import type { Clock, Log, Timer } from "../../contract/ports.ts";
import type { MCPToolAdapter } from "./adapter.ts";

/**
 * A refresh for what a server says of its list, in a process that lives on. A storm of notifications gives one refresh,
 * once it has been quiet for the window; a stream of them that never rests gives one for each longest wait. What
 * arrives while a refresh runs gives one more, since the list may have been read before it changed; two never overlap,
 * since the older list could be the last to arrive.
 */

/** What is refreshed; the result is logged by its `toSummary()`, when it has one. */
export type Refreshable = { refreshAll(): unknown };

export type RefreshHookOptions = {
  readonly timer: Timer;
  readonly clock: Clock;
  readonly log: Log;
  /** A notification waits no longer than this for quiet. */
  readonly longestWaitSeconds?: number;
};

const DEFAULT_WINDOW_SECONDS = 0.5;
const DEFAULT_LONGEST_WAIT_SECONDS = 15;

export class MCPRefreshHook {
  readonly #skillRegistry: Refreshable;
  readonly #options: RefreshHookOptions;
  readonly #server: string;
  readonly #windowMs: number;
  readonly #longestWaitMs: number;
  #pending: { readonly since: number; readonly cancel: () => void } | undefined;
  /** The window has passed: a refresh follows as soon as none runs. */
  #due = false;
  #running = false;
  #refreshCount = 0;

  /** `debounceSeconds` is the quiet that is waited for. Throws a `RangeError` when a time is negative or not finite. */
  constructor(
    adapter: Pick<MCPToolAdapter, "name" | "addNotificationListener">,
    skillRegistry: Refreshable,
    debounceSeconds: number = DEFAULT_WINDOW_SECONDS,
    options: RefreshHookOptions,
  ) {
    const { longestWaitSeconds = DEFAULT_LONGEST_WAIT_SECONDS } = options;
    this.#windowMs = toMilliseconds("debounceSeconds", debounceSeconds);
    this.#longestWaitMs = toMilliseconds("longestWaitSeconds", longestWaitSeconds);
    this.#skillRegistry = skillRegistry;
    this.#options = options;
    this.#server = adapter.name;
    adapter.addNotificationListener((method) => {
      if (method === LIST_CHANGED) this.#wait();
    });
  }

  /** Refreshes that were begun, whatever became of them. */
  get refreshCount(): number {
    return this.#refreshCount;
  }

  /** Drops what is pending. A refresh that runs runs on, and the next notification is heard. */
  cancel(): void {
    this.#pending?.cancel();
    this.#pending = undefined;
    this.#due = false;
  }

  #wait(): void {
    const { clock, timer } = this.#options;
    const now = clock();
    const since = this.#pending?.since ?? now;
    this.#pending?.cancel();
    const left = Math.max(since + this.#longestWaitMs - now, 0);
    const { cancel } = timer(() => this.#expire(), Math.min(this.#windowMs, left));
    this.#pending = { since, cancel };
  }

  #expire(): void {
    this.#pending = undefined;
    this.#due = true;
    if (!this.#running) void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#due) {
      this.#due = false;
      await this.#refresh();
    }
    this.#running = false;
  }

  async #refresh(): Promise<void> {
    const { log } = this.#options;
    this.#refreshCount += 1;
    try {
      const result = await this.#skillRegistry.refreshAll();
      log("info", "skills refreshed", { server: this.#server, ...summaryOf(result) });
    } catch (error) {
      // Whoever refreshes may fail; the next change is heard all the same.
      log("error", "skills not refreshed", { server: this.#server, error });
    }
  }
}

function toMilliseconds(name: string, seconds: number): number {
  if (Number.isFinite(seconds) && seconds >= 0) return seconds * 1_000;
  throw new RangeError(`${name} must be a finite number of seconds, 0 or more, got ${seconds}`);
}

function summaryOf(result: unknown): { readonly summary?: string } {
  const hasSummary = typeof result === "object" && result !== null && "toSummary" in result;
  if (!hasSummary || typeof result.toSummary !== "function") return {};
  return { summary: String(result.toSummary()) };
}
