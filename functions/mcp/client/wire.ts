/** What a wire tells beside its messages. The SDK passes on an error's text at best, so it is noted here. */

export type WireTrouble = { readonly tooLarge: boolean; readonly message: string };

/** What carries messages reports here. */
export type WireWatch = {
  /** Longest answer in bytes, asked at each answer. */
  maxBytes(): number;
  onBytes(count: number): void;
  onTrouble(trouble: WireTrouble): void;
};

export type Wire = {
  readonly watch: WireWatch;
  bytesRead(): number;
  /** The first thing noted: what follows follows from it. */
  trouble(): WireTrouble | undefined;
  /** Never lowers what is allowed already: another answer may be on its way. */
  allow(maxBytes: number): void;
};

export function createWire(maxBytes: number): Wire {
  let allowed = maxBytes;
  let bytes = 0;
  let first: WireTrouble | undefined;
  return {
    watch: {
      maxBytes: () => allowed,
      onBytes: (count) => {
        bytes += count;
      },
      onTrouble: (trouble) => {
        first ??= trouble;
      },
    },
    bytesRead: () => bytes,
    trouble: () => first,
    allow: (more) => {
      allowed = Math.max(allowed, more);
    },
  };
}

export function tooLarge(maxBytes: number): WireTrouble {
  return { tooLarge: true, message: `sent more than ${maxBytes} bytes in one answer` };
}
