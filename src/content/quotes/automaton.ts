import type { Pace } from '../../lib/pace.ts';

/** Units that are read without letting other work run. */
const unitsPerTurn = 4_096;
/** A group of states has this many bits of their numbers. */
const groupBits = 14;
const groupMask = (1 << groupBits) - 1;

/**
 * Finds many patterns in one pass over a text, in time that is linear in their lengths (Aho and Corasick). A pattern
 * is reported a limited number of times.
 */
export class Automaton {
  /** Transitions by state and unit, in groups of states: a large map grows by copying itself in one turn. */
  readonly #next: Map<number, number>[] = [];
  readonly #parent: number[] = [0];
  readonly #unit: number[] = [0];
  readonly #pattern: number[] = [-1];
  /** The states after the first, by the number of units that lead to them, less one. */
  readonly #byDepth: number[][] = [];
  readonly #fail: number[] = [0];
  /** The next shorter state that ends a pattern; 0 for none. */
  readonly #shorter: number[] = [0];
  readonly #lengths: number[] = [];
  readonly #left: number[] = [];
  readonly #byText = new Map<string, number>();
  readonly #reportsMax: number;
  #isBuilt = false;

  constructor(reportsMax: number) {
    this.#reportsMax = reportsMax;
  }

  /** Adds a pattern that is not empty. Returns its number; equal patterns have the same one. */
  add(units: Uint16Array): number {
    const text = Buffer.from(units.buffer, units.byteOffset, units.byteLength).toString('latin1');
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const pattern = this.#lengths.push(units.length) - 1;
    this.#left.push(this.#reportsMax);
    this.#byText.set(text, pattern);
    let state = 0;
    for (const [depth, unit] of units.entries()) {
      let next = this.#after(state, unit);
      if (next === undefined) {
        next = this.#parent.push(state) - 1;
        this.#unit.push(unit);
        this.#pattern.push(-1);
        this.#fail.push(0);
        this.#shorter.push(0);
        this.#link(state, unit, next);
        this.#byDepth[depth] ??= [];
        this.#byDepth[depth].push(next);
      }
      state = next;
    }
    this.#pattern[state] = pattern;
    this.#isBuilt = false;
    return pattern;
  }

  /** Reports each pattern up to the limit. */
  async scan(
    units: Uint16Array,
    length: number,
    pace: Pace,
    found: (pattern: number, start: number, end: number) => void,
  ): Promise<void> {
    if (!this.#isBuilt) await this.#build(pace);
    this.#left.fill(this.#reportsMax);
    /** The next shorter state that ends a pattern which is still reported. */
    const shorter = this.#shorter.slice();
    let state = 0;
    for (let at = 0; at < length; at++) {
      if (at % unitsPerTurn === 0) await pace.keep();
      state = this.#step(state, units[at] ?? 0);
      let ending = (this.#pattern[state] ?? -1) >= 0 ? state : this.#open(shorter, shorter[state] ?? 0);
      while (ending !== 0) {
        const pattern = this.#pattern[ending] ?? 0;
        const left = this.#left[pattern] ?? 0;
        if (left > 0) {
          this.#left[pattern] = left - 1;
          found(pattern, at + 1 - (this.#lengths[pattern] ?? 0), at + 1);
        }
        ending = this.#open(shorter, shorter[ending] ?? 0);
      }
    }
  }

  /** Skips states whose pattern is no longer reported, and shortens the way for the next time. */
  #open(shorter: number[], from: number): number {
    let state = from;
    while (state !== 0 && (this.#left[this.#pattern[state] ?? 0] ?? 0) === 0) state = shorter[state] ?? 0;
    for (let at = from; at !== state; ) {
      const next = shorter[at] ?? 0;
      shorter[at] = state;
      at = next;
    }
    return state;
  }

  #after(state: number, unit: number): number | undefined {
    return this.#next[state >>> groupBits]?.get(((state & groupMask) << 16) | unit);
  }

  #link(state: number, unit: number, next: number): void {
    const group = state >>> groupBits;
    this.#next[group] ??= new Map();
    this.#next[group].set(((state & groupMask) << 16) | unit, next);
  }

  #step(from: number, unit: number): number {
    for (let state = from; ; state = this.#fail[state] ?? 0) {
      const next = this.#after(state, unit);
      if (next !== undefined) return next;
      if (state === 0) return 0;
    }
  }

  async #build(pace: Pace): Promise<void> {
    for (const states of this.#byDepth) {
      await pace.keep();
      for (const state of states) {
        const parent = this.#parent[state] ?? 0;
        const fail = parent === 0 ? 0 : this.#step(this.#fail[parent] ?? 0, this.#unit[state] ?? 0);
        this.#fail[state] = fail;
        this.#shorter[state] = (this.#pattern[fail] ?? -1) >= 0 ? fail : (this.#shorter[fail] ?? 0);
      }
    }
    this.#isBuilt = true;
  }
}
