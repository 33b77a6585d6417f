import type { AnswerSentence } from '../../api/generated.ts';

type Node = {
  type: string;
  value?: string;
  children?: Node[];
  position?: { start: { offset?: number }; end: { offset?: number } };
  data?: { hName: string; hProperties: Record<string, string | number | string[]> };
};
/** A part of a text that lies in one sentence, and is a citation, part of a quote, or neither. */
type Piece = { value: string; sentence: number | undefined; quote: Quote | undefined; citation: number | undefined };
type Quote = AnswerSentence['quotes'][number];

/** Why a reader cannot check the sentence. */
function verdictOn({ quotes, verdict }: AnswerSentence): string {
  if (verdict === 'not_supported') return 'not supported: its passages do not say this';
  if (quotes.some(({ status }) => status === 'altered')) return 'not supported: the quote was altered';
  if (quotes.some(({ status }) => status === 'not_found')) return 'not supported: the quote is in no passage';
  return 'not supported: cites no passage';
}

/**
 * A plugin for Markdown that marks unsupported sentences, quotes and citations, by where they stand in the text; while
 * it arrives, also what is not checked yet.
 */
export function markSentences(sentences: readonly AnswerSentence[], isWhole: boolean) {
  return () => (tree: Node) => {
    const last = new Map<number, { among: Node; node: Node }>();
    const visit = (node: Node): void => {
      node.children = node.children?.flatMap((child) => {
        if (child.type !== 'text' || child.value === undefined) {
          visit(child);
          return [child];
        }
        return cut(child.value, child.position?.start.offset, child.position?.end.offset, sentences).map((piece) => {
          const marked = present(piece, sentences, isWhole);
          if (piece.sentence !== undefined) last.set(piece.sentence, { among: node, node: marked });
          return marked;
        });
      }) as Node[];
    };
    visit(tree);
    for (const [at, { among, node }] of last) {
      const sentence = sentences[at];
      if (sentence?.unsupported !== true) continue;
      const label = element('span', { className: ['verdict'] }, verdictOn(sentence));
      const place = among.children?.indexOf(node) ?? -1;
      among.children?.splice(place + 1, 0, { type: 'text', value: ' ' }, label);
    }
  };
}

function element(hName: string, hProperties: Record<string, string | number | string[]>, value: string): Node {
  return { type: 'marked', data: { hName, hProperties }, children: [{ type: 'text', value }] };
}

function present(
  { value, sentence: at, quote, citation }: Piece,
  sentences: readonly AnswerSentence[],
  isWhole: boolean,
): Node {
  if (citation !== undefined) return element('button', { dataCitation: citation }, String(citation));
  if (at === undefined && !isWhole) return element('span', { className: ['faint'] }, value);
  const unsupported = at !== undefined && sentences[at]?.unsupported === true ? ['unsupported'] : [];
  if (quote === undefined)
    return unsupported.length === 0 ? { type: 'text', value } : element('span', { className: unsupported }, value);
  const isFound = ['exact', 'normalised', 'elided'].includes(quote.status);
  const look = isFound ? ['quote-found'] : ['quote-missing', ...unsupported];
  return element('q', { className: look, title: titles[quote.status] }, value);
}

const titles: Record<Quote['status'], string> = {
  exact: 'The passage has these characters.',
  normalised: 'The passage has these words; white space or typography differ.',
  elided: 'The passage has these parts in this order.',
  altered: 'The passage says something similar.',
  not_found: 'No passage says this.',
  too_short: 'Under three words, which any text may contain.',
};

/**
 * Cuts the text of a node, which begins and ends at these places of the whole text. A text with escapes is longer there
 * than here, so it cannot be cut at the ends of sentences and quotes.
 */
function cut(value: string, from = 0, to = 0, sentences: readonly AnswerSentence[]): Piece[] {
  const isPlain = to - from === value.length;
  const own = [...sentences.entries()].filter(([, { start, end }]) =>
    isPlain ? end > from && start < to : start <= from && end > from,
  );
  const edges = new Set([0, value.length]);
  const edge = (at: number) => edges.add(Math.min(Math.max(at - from, 0), value.length));
  const quotes = own.flatMap(([, sentence]) => sentence.quotes.filter(({ status }) => status !== 'too_short'));
  if (isPlain)
    for (const { start = from, end = from } of [...own.map(([, one]) => one), ...quotes]) {
      edge(start);
      edge(end);
    }
  const cited = new Set(own.flatMap(([, { citations }]) => citations));
  const numbers = new Map<number, number>();
  for (const match of value.matchAll(/\[(\d{1,3})\]/g)) {
    if (!cited.has(Number(match[1]))) continue;
    numbers.set(match.index, Number(match[1]));
    edges.add(match.index).add(match.index + match[0].length);
  }
  const cuts = [...edges].sort((a, b) => a - b);
  return cuts.slice(0, -1).map((start, at) => {
    const within = ({ start: first = 0, end = 0 }: { start?: number; end?: number }) =>
      !isPlain || (first <= from + start && from + start < end);
    return {
      value: value.slice(start, cuts[at + 1]),
      sentence: own.find(([, sentence]) => within(sentence))?.[0],
      quote: isPlain ? quotes.find(within) : undefined,
      citation: numbers.get(start),
    };
  });
}
