/** English words that more often begin a hyphenated compound than a longer word that was cut after them. */
const compoundHeads =
  /^(?:self|well|half|one|two|three|four|five|six|seven|eight|nine|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|high|low|long|short|full|cross|real|open|large|small)$/i;
const endings =
  /^(?:ings?|ed|ers?|est|ages?|ly|ness|ments?|ful|less|en|ened|ish|able|ity|ties|y|ways?|ized?|ization|istic|ism|ities)\b/i;

/** The words of a document. They show whether a hyphen at a line end belongs to a compound. */
export class WordList {
  readonly #words = new Set<string>();
  /** Lines that are not split into words yet. Most documents never need them. */
  readonly #pending: string[] = [];

  /** Adds the words of a line without parts that a line end may have cut off. */
  addLine(text: string, cutAtStart: boolean, cutAtEnd: boolean): void {
    let whole = text;
    if (cutAtStart) whole = whole.replace(/^\S+/, '');
    if (cutAtEnd) whole = whole.replace(/\S+$/, '');
    this.#pending.push(whole);
  }

  has(word: string): boolean {
    for (const text of this.#pending.splice(0))
      for (const one of text.toLowerCase().match(/[\p{L}\p{N}]+(?:[-‐][\p{L}\p{N}]+)*/gu) ?? []) this.#words.add(one);
    return this.#words.has(word.toLowerCase());
  }

  /** Joins a line that ends in a hyphen with the next one, and keeps the hyphen only if it belongs to a compound. */
  join(first: string, second: string): string {
    const head = /([\p{L}\p{N}]+)[-‐\u00ad]$/u.exec(first)?.[1] ?? '';
    const tail = /^[\p{L}\p{N}]+/u.exec(second)?.[0] ?? '';
    if (head === '' || tail === '') return `${first}${second}`;
    return this.#keepsHyphen(head, tail) ? `${first.slice(0, -1)}-${second}` : `${first.slice(0, -1)}${second}`;
  }

  #keepsHyphen(head: string, tail: string): boolean {
    if (/\p{N}$/u.test(head) || /^[\p{N}\p{Lu}]/u.test(tail)) return true;
    if (this.has(`${head}-${tail}`)) return true;
    if (this.has(`${head}${tail}`)) return false;
    if (compoundHeads.test(head) && !endings.test(tail)) return true;
    return head.length > 2 && tail.length > 2 && this.has(head) && this.has(tail);
  }
}

/** Joins two consecutive pieces of running text: with a space, but not between Chinese or Japanese characters. */
export function joinText(first: string, second: string): string {
  if (first === '' || second === '') return first + second;
  const wide = /[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3000-\u303f\uff00-\uffef]/;
  return wide.test(first.at(-1) ?? '') && wide.test(second.charAt(0)) ? first + second : `${first} ${second}`;
}
