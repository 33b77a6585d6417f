import { limits } from '../../lib/limits.ts';

type TextProblem = { path: string; message: string };

/**
 * Finds what PostgreSQL cannot store or JSON cannot represent: U+0000, lone surrogates, numbers that overflow,
 * nesting deeper than `jsonDepthMax`, more values than `jsonValuesMax`. `mayHoldNul` allows U+0000. Returns the number of
 * values too. Allocates nothing per value: the path is built only when there is a problem.
 */
export function findTextProblem(
  value: unknown,
  mayHoldNul: (path: string) => boolean = () => false,
): { problem: TextProblem | undefined; values: number } {
  const walk = new Walk(mayHoldNul);
  return { problem: walk.visit(value, 0), values: walk.values };
}

class Walk {
  readonly #mayHoldNul: (path: string) => boolean;
  /** The keys on the path to the current value. */
  readonly #keys: (string | number)[] = [];
  #left: number = limits.jsonValuesMax;

  constructor(mayHoldNul: (path: string) => boolean) {
    this.#mayHoldNul = mayHoldNul;
  }

  get values(): number {
    return limits.jsonValuesMax - this.#left;
  }

  visit(value: unknown, depth: number): TextProblem | undefined {
    if (--this.#left < 0) return { path: '', message: `must hold at most ${limits.jsonValuesMax} values` };
    if (typeof value === 'string') return this.#visitString(value);
    if (typeof value === 'number')
      return Number.isFinite(value) ? undefined : this.#problem('is a number out of range');
    if (typeof value !== 'object' || value === null) return undefined;
    if (depth >= limits.jsonDepthMax) return this.#problem(`is nested deeper than ${limits.jsonDepthMax} levels`);
    return Array.isArray(value) ? this.#visitArray(value, depth) : this.#visitObject(value, depth);
  }

  #visitArray(items: unknown[], depth: number): TextProblem | undefined {
    const last = this.#keys.push(0) - 1;
    for (let index = 0; index < items.length; index++) {
      this.#keys[last] = index;
      const problem = this.visit(items[index], depth + 1);
      if (problem !== undefined) return problem;
    }
    this.#keys.pop();
    return undefined;
  }

  #visitObject(members: object, depth: number): TextProblem | undefined {
    const last = this.#keys.push('') - 1;
    for (const key in members) {
      this.#keys[last] = key;
      const message = stringProblem(key);
      if (message !== undefined) return this.#problem(message);
      const problem = this.visit((members as Record<string, unknown>)[key], depth + 1);
      if (problem !== undefined) return problem;
    }
    this.#keys.pop();
    return undefined;
  }

  #visitString(text: string): TextProblem | undefined {
    if (!text.isWellFormed()) return this.#problem(loneSurrogate);
    if (text.includes('\0') && !this.#mayHoldNul(this.#keys.join('.'))) return this.#problem(nul);
    return undefined;
  }

  #problem(message: string): TextProblem {
    return { path: this.#keys.join('.').replaceAll('\0', '\\u0000').toWellFormed(), message };
  }
}

const nul = 'must not contain the character U+0000';
const loneSurrogate = 'must not contain a lone surrogate';

/** Why this text cannot be stored, or undefined if it can. */
export function stringProblem(text: string): string | undefined {
  if (text.includes('\0')) return nul;
  if (!text.isWellFormed()) return loneSurrogate;
  return undefined;
}
