import { setFlagsFromString } from 'node:v8';

/**
 * Has V8 run a pattern on its linear engine after 50,000 steps back. It supports no lookahead, back reference,
 * repetition of more than 16 times, and neither of the flags i and u; such a pattern still ends only with its process.
 */
export function enableLinearPatterns(): void {
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
}

/**
 * A pattern with the flag u, as JSON Schema requires it, that matches most texts without the flag: the linear engine
 * does not support it, and it makes no difference where neither the pattern nor the text needs it.
 */
export class UnicodePattern extends RegExp {
  readonly #plain: RegExp | undefined;

  constructor(source: string, flags: string) {
    super(source, flags);
    if (flags === 'u' && !needsUnicode.test(source)) this.#plain = new RegExp(source);
  }

  override test(text: string): boolean {
    return this.#plain && !surrogate.test(text) ? this.#plain.test(text) : super.test(text);
  }
}

const surrogate = /[\ud800-\udfff]/;
/** Characters beyond 16 bits, their escapes, properties of characters, and flags inside the pattern. */
const needsUnicode = /[\ud800-\udfff]|\\u\{|\\u[dD][89a-fA-F]|\\[pP]|\(\?[a-z-]/;
