import { kinds, kindTable } from './characters.ts';
import { dashSides, type NormalForm } from './normal-form.ts';

/**
 * A word of a normal form with its place in the text. Ideographs are words of their own. Its core has no punctuation
 * around it.
 */
export type Word = { text: string; core: string; start: number; end: number };

export type Difference = { type: 'same' | 'only_in_quote' | 'only_in_source'; text: string }[];

/** The words of a form, with the dashes inside them. */
export function* wordsOf(form: NormalForm): Generator<Word> {
  const table = kindTable();
  let word: Word | undefined;
  for (let at = 0; at < form.length; at++) {
    const unit = form.units[at] ?? 0x20;
    const kind = table[unit] ?? kinds.other;
    const dash = form.dashes.get(at);
    const divides = dash !== undefined && (dash & (dashSides.spaceBefore | dashSides.spaceAfter)) !== 0;
    if (word !== undefined && (unit === 0x20 || kind === kinds.ideograph || divides)) {
      yield withCore(word);
      word = undefined;
    }
    if (unit === 0x20) continue;
    const place = { start: form.starts[at] ?? 0, end: form.ends[at] ?? 0 };
    const text = (dash === undefined || divides ? '' : '-') + String.fromCharCode(unit);
    if (word === undefined) word = { text, core: '', ...place };
    else {
      word.text += text;
      word.end = place.end;
    }
    if (kind !== kinds.ideograph) continue;
    yield withCore(word);
    word = undefined;
  }
  if (word !== undefined) yield withCore(word);
}

/** Longer words are compared whole. */
const coreUnitsMax = 60;

function withCore(word: Word): Word {
  const { text } = word;
  const core = text.length > coreUnitsMax ? text : text.replaceAll(/^["'([{]+|["')\]},.;:!?]+$/g, '');
  return { ...word, core: core === '' ? text : core };
}

export type Aligned = { same: number; start: number; end: number; difference: Difference };

/** Aligns the words of a quote with those of a passage by their longest common subsequence. */
export function align(quote: readonly Word[], passage: readonly Word[]): Aligned | undefined {
  const width = passage.length + 1;
  const table = new Uint16Array((quote.length + 1) * width);
  for (let q = quote.length - 1; q >= 0; q--)
    for (let p = passage.length - 1; p >= 0; p--)
      table[q * width + p] =
        quote[q]?.core === passage[p]?.core
          ? (table[(q + 1) * width + p + 1] ?? 0) + 1
          : Math.max(table[(q + 1) * width + p] ?? 0, table[q * width + p + 1] ?? 0);
  const same = table[0] ?? 0;
  if (same === 0) return undefined;
  return { same, ...readAlignment(quote, passage, (q, p) => table[q * width + p] ?? 0) };
}

function readAlignment(
  quote: readonly Word[],
  passage: readonly Word[],
  left: (q: number, p: number) => number,
): Omit<Aligned, 'same'> {
  const steps: { type: Difference[number]['type']; word: Word; isAligned?: true }[] = [];
  let q = 0;
  let p = 0;
  while (q < quote.length || p < passage.length) {
    const [own, other] = [quote[q], passage[p]];
    if (own !== undefined && other !== undefined && own.core === other.core) {
      if (own.text === other.text) steps.push({ type: 'same', word: other, isAligned: true });
      else
        steps.push(
          { type: 'only_in_quote', word: own, isAligned: true },
          { type: 'only_in_source', word: other, isAligned: true },
        );
      q += 1;
      p += 1;
    } else if (own !== undefined && (other === undefined || left(q + 1, p) >= left(q, p + 1))) {
      steps.push({ type: 'only_in_quote', word: own });
      q += 1;
    } else if (other !== undefined) {
      steps.push({ type: 'only_in_source', word: other });
      p += 1;
    }
  }
  const isAligned = (step: (typeof steps)[number]) => step.isAligned === true && step.type !== 'only_in_quote';
  const first = steps.findIndex(isAligned);
  const last = steps.findLastIndex(isAligned);
  // What the passage has before and after the quote is not a difference.
  const inside = steps.filter(({ type }, at) => type !== 'only_in_source' || (at >= first && at <= last));
  const difference: Difference = [];
  for (const { type, word } of inside) {
    const before = difference.at(-1);
    if (before?.type === type) before.text += ` ${word.text}`;
    else difference.push({ type, text: word.text });
  }
  return { start: steps[first]?.word.start ?? 0, end: steps[last]?.word.end ?? 0, difference };
}
