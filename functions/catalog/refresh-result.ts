/**
 * What a refresh came to, for each skill in exactly one list. Immutable: a result is merged, logged and published, and
 * whoever holds it must not see it change.
 */
export class SkillRefreshResult {
  /** Names of the skills whose tool set was recomputed and is whole. */
  readonly refreshed: readonly string[];
  /** Names of the skills whose tools could not be looked up now; their previous tool set stays in force. */
  readonly skipped: readonly string[];
  readonly #failed: ReadonlyMap<string, string>;

  constructor(lists: {
    readonly refreshed?: readonly string[];
    readonly failed?: ReadonlyMap<string, string>;
    readonly skipped?: readonly string[];
  }) {
    this.refreshed = Object.freeze([...(lists.refreshed ?? [])]);
    this.#failed = new Map(lists.failed ?? []);
    this.skipped = Object.freeze([...(lists.skipped ?? [])]);
    Object.freeze(this);
  }

  /** Name -> why its tool set is not whole. A copy: a map cannot be frozen. */
  get failed(): ReadonlyMap<string, string> {
    return new Map(this.#failed);
  }

  get totalRefreshed(): number {
    return this.refreshed.length;
  }

  get totalFailed(): number {
    return this.#failed.size;
  }

  get totalSkipped(): number {
    return this.skipped.length;
  }

  /** `refreshed: 3, failed: 1, skipped: 0` */
  toSummary(): string {
    return `refreshed: ${this.totalRefreshed}, failed: ${this.totalFailed}, skipped: ${this.totalSkipped}`;
  }

  /**
   * Both together; where both know a name, `other`, the later one, holds. Associative, with the empty result as its
   * neutral element, so that results may be merged in any grouping.
   */
  merge(other: SkillRefreshResult): SkillRefreshResult {
    const later = new Set([...other.refreshed, ...other.#failed.keys(), ...other.skipped]);
    const kept = (names: readonly string[]) => names.filter((name) => !later.has(name));
    return new SkillRefreshResult({
      refreshed: [...kept(this.refreshed), ...other.refreshed],
      failed: new Map([...[...this.#failed].filter(([name]) => !later.has(name)), ...other.#failed]),
      skipped: [...kept(this.skipped), ...other.skipped],
    });
  }
}
