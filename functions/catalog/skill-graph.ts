/**
 * Skills, their includes and their tool refs as numbers, and every skill's flattened tool set as bits. One pass in the
 * order of the includes computes all of them; a walk a skill would take seconds for 10,000 skills, and recursion would
 * overflow on a long chain. The sets depend on the skills alone, so a changed list of tools costs only a look at them.
 */

export type SkillNode = {
  readonly name: string;
  readonly includes: readonly string[];
  readonly toolRefs: readonly string[];
};

/** Why a tool set cannot be flattened: an include that is not there, or one that leads back. */
export type Breach = { readonly kind: "missing" | "cycle"; readonly path: readonly string[] };

const WORD_BITS = 32;
const NONE = -1;
/** In place of the include to follow: the skill itself includes what is not there. */
const OWN_MISSING = -2;
/** Where the walk is with a skill. */
const UNSEEN = 0;
const OPEN = 1;
const CLOSED = 2;

export class SkillGraph {
  readonly names: readonly string[];
  /** Tool refs that any skill names, sorted; their places are the bits. */
  readonly refs: readonly string[];
  readonly #ids: ReadonlyMap<string, number>;
  readonly #includes: readonly (readonly number[])[];
  readonly #missing: readonly (readonly string[])[];
  readonly #own: readonly (readonly number[])[];
  readonly #words: number;
  readonly #sets: Uint32Array;
  /** For a broken skill the include to follow towards the breach. */
  readonly #towardsBreach: Int32Array;

  constructor(nodes: readonly SkillNode[]) {
    const sorted = nodes.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    this.names = sorted.map(({ name }) => name);
    this.#ids = new Map(this.names.map((name, id) => [name, id]));
    this.refs = [...new Set(sorted.flatMap(({ toolRefs }) => toolRefs))].sort();
    const refIds = new Map(this.refs.map((ref, id) => [ref, id]));
    const known = (name: string) => this.#ids.get(name);
    this.#includes = sorted.map(({ includes }) => [...new Set(includes)].flatMap((name) => known(name) ?? []));
    this.#missing = sorted.map(({ includes }) => [...new Set(includes)].filter((name) => known(name) === undefined));
    this.#own = sorted.map(({ toolRefs }) => [...new Set(toolRefs)].flatMap((ref) => refIds.get(ref) ?? []));
    this.#words = Math.ceil(this.refs.length / WORD_BITS);
    this.#sets = new Uint32Array(this.#words * sorted.length);
    this.#towardsBreach = new Int32Array(sorted.length).fill(NONE);
    this.#flatten();
  }

  /** Undefined when no skill has the name. */
  idOf(name: string): number | undefined {
    return this.#ids.get(name);
  }

  /** The breach that the skill reaches, by its path; undefined when its tool set is whole. */
  breachOf(id: number): Breach | undefined {
    if (this.#towardsBreach[id] === NONE) return undefined;
    const path = [id];
    const seen = new Set(path);
    for (let at = id; ; ) {
      const next = this.#towardsBreach[at] ?? NONE;
      if (next === OWN_MISSING) return { kind: "missing", path: [...this.#named(path), this.#missing[at]?.[0] ?? ""] };
      path.push(next);
      if (seen.has(next)) return { kind: "cycle", path: this.#named(path) };
      seen.add(next);
      at = next;
    }
  }

  /** Places of the refs in the skill's flattened tool set, ascending. */
  refIdsOf(id: number): readonly number[] {
    const found: number[] = [];
    for (let word = 0; word < this.#words; word += 1) {
      let bits = this.#sets[id * this.#words + word] ?? 0;
      while (bits !== 0) {
        const bit = 31 - Math.clz32(bits & -bits);
        found.push(word * WORD_BITS + bit);
        bits &= bits - 1;
      }
    }
    return found;
  }

  /** True when the skill's set has a ref whose bit is set in `mask` (one bit a ref, 32 a word). */
  meets(id: number, mask: Uint32Array): boolean {
    for (let word = 0; word < this.#words; word += 1) {
      if (((this.#sets[id * this.#words + word] ?? 0) & (mask[word] ?? 0)) !== 0) return true;
    }
    return false;
  }

  /** A mask for {@link meets}, with the bits of the refs that fit. */
  maskOf(fits: (ref: string) => boolean): Uint32Array {
    const mask = new Uint32Array(this.#words);
    this.refs.forEach((ref, id) => {
      if (fits(ref))
        mask[Math.floor(id / WORD_BITS)] = (mask[Math.floor(id / WORD_BITS)] ?? 0) | (1 << (id % WORD_BITS));
    });
    return mask;
  }

  /** Names from the skill to the one that names the ref itself, by the shortest way. */
  wayTo(id: number, refId: number): readonly string[] {
    const cameFrom = new Map<number, number>([[id, NONE]]);
    for (const at of cameFrom.keys()) {
      if (this.#own[at]?.includes(refId)) return this.#trace(at, cameFrom);
      for (const include of this.#includes[at] ?? []) if (!cameFrom.has(include)) cameFrom.set(include, at);
    }
    return [];
  }

  #trace(end: number, cameFrom: ReadonlyMap<number, number>): readonly string[] {
    const path: number[] = [];
    for (let at = end; at !== NONE; at = cameFrom.get(at) ?? NONE) path.push(at);
    return this.#named(path.reverse());
  }

  #named(ids: readonly number[]): string[] {
    return ids.map((id) => this.names[id] ?? "");
  }

  /**
   * Depth first with a stack of its own. When a skill is left, everything that it includes has been left before, but
   * for an include that is still open: that one leads back, and whoever reaches it is on a cycle or leads to one.
   */
  #flatten(): void {
    const state = new Uint8Array(this.names.length);
    const next = new Uint32Array(this.names.length);
    for (let root = 0; root < this.names.length; root += 1) {
      if (state[root] !== UNSEEN) continue;
      const stack = [root];
      state[root] = OPEN;
      for (let at = stack.at(-1); at !== undefined; at = stack.at(-1)) {
        const include = this.#includes[at]?.[next[at] ?? 0];
        if (include === undefined) {
          this.#close(at);
          state[at] = CLOSED;
          stack.pop();
          continue;
        }
        next[at] = (next[at] ?? 0) + 1;
        if (state[include] === UNSEEN) {
          state[include] = OPEN;
          stack.push(include);
        } else if (state[include] === OPEN) this.#breakCycle(stack, include);
      }
    }
  }

  /**
   * Every skill on the stack from `first` on is on the cycle; each is sent to the next one, the last back to the first.
   */
  #breakCycle(stack: readonly number[], first: number): void {
    const start = stack.lastIndexOf(first);
    for (let place = start; place < stack.length; place += 1) {
      const at = stack[place] ?? NONE;
      if (this.#towardsBreach[at] === NONE) this.#towardsBreach[at] = stack[place + 1] ?? first;
    }
  }

  #close(id: number): void {
    const offset = id * this.#words;
    for (const ref of this.#own[id] ?? []) {
      const word = offset + Math.floor(ref / WORD_BITS);
      this.#sets[word] = (this.#sets[word] ?? 0) | (1 << (ref % WORD_BITS));
    }
    if ((this.#missing[id]?.length ?? 0) > 0 && this.#towardsBreach[id] === NONE) this.#towardsBreach[id] = OWN_MISSING;
    for (const include of this.#includes[id] ?? []) {
      if (this.#towardsBreach[id] === NONE && this.#towardsBreach[include] !== NONE) this.#towardsBreach[id] = include;
      const from = include * this.#words;
      for (let word = 0; word < this.#words; word += 1) {
        this.#sets[offset + word] = (this.#sets[offset + word] ?? 0) | (this.#sets[from + word] ?? 0);
      }
    }
  }
}
