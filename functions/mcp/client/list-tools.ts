import * as z from "zod";
import { type Outcome, refuse, succeed } from "../../contract/fault.ts";
import type { ToolListing } from "../../contract/ports.ts";
import { toViolations } from "../../contract/violations.ts";
import { DEFAULT_DEFINITION_LIMITS, type DefinitionLimits, type VetOptions, vetTools } from "./vet-tools.ts";

/**
 * All pages of a server's `tools/list`, or nothing: half a list would pass for one from which tools were removed. How
 * long it may take is for whoever fetches the pages.
 */

export type ListLimits = {
  readonly maxPages: number;
  readonly maxTools: number;
  /** Of all answers together, as they came over the wire. */
  readonly maxBytes: number;
  readonly definition: DefinitionLimits;
};

export const DEFAULT_LIST_LIMITS: ListLimits = {
  maxPages: 100,
  maxTools: 1_000,
  maxBytes: 4 * 1024 * 1024,
  definition: DEFAULT_DEFINITION_LIMITS,
};

/** The result of one `tools/list`, as it came, and how many bytes it took. */
export type FetchedPage = { readonly result: unknown; readonly bytes: number };

/** `cursor` is undefined for the first page; an empty one is a cursor like any other (MCP, pagination). */
export type FetchPage = (cursor: string | undefined) => Promise<Outcome<FetchedPage>>;

/** Only what is needed to walk the pages: a broken tool must not cost its neighbours their place. */
const Page = z.object({
  tools: z.array(z.unknown()),
  nextCursor: z.string().nullish(),
  ttlMs: z.unknown().optional(),
});

export type ListOptions = Omit<VetOptions, "limits"> & { readonly limits: ListLimits };

/** `SERVER_UNAVAILABLE` when a page is no page, the pages lead back, or they are too many or too large. */
export async function listTools(fetchPage: FetchPage, options: ListOptions): Promise<Outcome<ToolListing>> {
  const { limits } = options;
  const offered: unknown[] = [];
  const lifetimes: number[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  let bytes = 0;
  for (let pages = 1; ; pages += 1) {
    const fetched = await fetchPage(cursor);
    if (!fetched.ok) return fetched;
    bytes += fetched.value.bytes;
    if (bytes > limits.maxBytes) return tooMuch(`more than ${limits.maxBytes} bytes`);
    const page = Page.safeParse(fetched.value.result);
    if (!page.success) return refusePage(pages, page.error);
    if (offered.length + page.data.tools.length > limits.maxTools) return tooMuch(`more than ${limits.maxTools} tools`);
    offered.push(...page.data.tools);
    if (isLifetime(page.data.ttlMs)) lifetimes.push(page.data.ttlMs);
    const next = page.data.nextCursor ?? undefined;
    if (next === undefined) return succeed(toListing(offered, lifetimes, options));
    if (seen.has(next)) return refuse("SERVER_UNAVAILABLE", `page ${pages} of its list leads back to an earlier one`);
    if (pages === limits.maxPages) return tooMuch(`more than ${limits.maxPages} pages`);
    seen.add(next);
    cursor = next;
  }
}

function toListing(offered: readonly unknown[], lifetimes: readonly number[], options: ListOptions): ToolListing {
  const vetted = vetTools(offered, { ...options, limits: options.limits.definition });
  return lifetimes.length === 0 ? vetted : { ...vetted, ttlMs: Math.min(...lifetimes) };
}

/** A lifetime that cannot be meant is one that was not given. */
function isLifetime(ttlMs: unknown): ttlMs is number {
  return Number.isSafeInteger(ttlMs) && Number(ttlMs) >= 0;
}

function tooMuch(what: string): Outcome<never> {
  return refuse("SERVER_UNAVAILABLE", `its list has ${what}, which is more than is read`);
}

function refusePage(page: number, error: z.ZodError): Outcome<never> {
  const [first] = toViolations(error);
  return refuse("SERVER_UNAVAILABLE", `page ${page} of its list is none: ${first?.path || "/"}: ${first?.message}`);
}
