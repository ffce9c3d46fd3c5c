/**
 * What JSON text can say and what cannot be kept of it: a list is digested, stored and read again, and each of these
 * would come back as something else or overflow the stack of whoever walks it.
 */

const FORBIDDEN_KEY = "__proto__";

export type KeepLimits = {
  /** Arrays and objects inside one another. */
  readonly maxDepth: number;
  /** True when half characters do not matter, because they will be mended by {@link withMendedText}. */
  readonly mendsText?: boolean;
};

/**
 * Why a value that was read from JSON cannot be kept as it is; undefined when it can. It may be nested to any depth:
 * nothing here recurses.
 */
export function findUnkeepable(value: unknown, { maxDepth, mendsText = false }: KeepLimits): string | undefined {
  const isBroken = (text: string) => !mendsText && !text.isWellFormed();
  const waiting: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 1 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, depth } = next;
    if (typeof value === "string" && isBroken(value)) return "a text holds a lone surrogate";
    if (typeof value === "number" && !Number.isFinite(value)) return "a number is out of range";
    if (typeof value !== "object" || value === null) continue;
    if (depth > maxDepth) return `nested deeper than ${maxDepth} levels`;
    for (const [key, member] of Object.entries(value)) {
      if (key === FORBIDDEN_KEY) return `the key "${FORBIDDEN_KEY}" is not allowed`;
      if (isBroken(key)) return "a key holds a lone surrogate";
      waiting.push({ value: member, depth: depth + 1 });
    }
  }
  return undefined;
}

/**
 * A copy in which every text, keys included, has passed `mend`. The value must be one in which {@link findUnkeepable}
 * found nothing: this recurses.
 */
export function withMendedText(value: unknown, mend: (text: string) => string): unknown {
  if (typeof value === "string") return mend(value);
  if (Array.isArray(value)) return value.map((item) => withMendedText(item, mend));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [mend(key), withMendedText(member, mend)]));
}
