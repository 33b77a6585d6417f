import { readPages } from '../content/prepare.ts';
import type { DocumentText } from '../knowledge/documents/store.ts';
import { Pace } from '../lib/pace.ts';

const blockUnits = 65_536;

/** A document in which quotes are looked for. Its text and pages are read once for all of them. */
export class SearchedText {
  readonly document: DocumentText;
  readonly text: string;
  readonly #pace = new Pace();
  /** The bytes before each block. */
  readonly #bytes = [0];
  #pagesOf: ReturnType<typeof readPages> | undefined;

  constructor(document: DocumentText) {
    this.document = document;
    this.text = document.content.toString();
  }

  get pagesOf(): ReturnType<typeof readPages> {
    this.#pagesOf ??= readPages(this.text);
    return this.#pagesOf;
  }

  /** The byte of a place in the text, which is between two characters. */
  async byteAt(at: number): Promise<number> {
    const whole = Math.floor(at / blockUnits);
    const block = this.#startOf(whole) > at ? whole - 1 : whole;
    for (let next = this.#bytes.length; next <= block; next++) {
      await this.#pace.keep();
      const text = this.text.slice(this.#startOf(next - 1), this.#startOf(next));
      this.#bytes.push((this.#bytes[next - 1] ?? 0) + Buffer.byteLength(text));
    }
    return (this.#bytes[block] ?? 0) + Buffer.byteLength(this.text.slice(this.#startOf(block), at));
  }

  /** Where a block begins: never inside of a character. */
  #startOf(block: number): number {
    const at = block * blockUnits;
    const unit = this.text.charCodeAt(at);
    return unit >= 0xdc00 && unit <= 0xdfff ? at + 1 : at;
  }
}
