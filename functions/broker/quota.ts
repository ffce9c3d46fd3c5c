/**
 * Counts what a job may still do. A unit is taken before the work and given back never: a call that was refused by
 * the quota costs nothing, one that began has begun.
 */
export class Quota {
  readonly #limit: number;
  #used = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Takes `amount`, or takes nothing and answers false. */
  take(amount: number): boolean {
    if (!(amount >= 0 && this.#used + amount <= this.#limit)) return false;
    this.#used += amount;
    return true;
  }
}
