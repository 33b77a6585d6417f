import { readPages } from '../content/prepare.ts';
import { type CheckedQuote, QuoteCheck } from '../content/quotes/check.ts';
import type { Sentence } from '../content/quotes/sentences.ts';
import type { SearchHit } from '../knowledge/search/results.ts';
import { formatId } from '../lib/ids.ts';
import { sentenceStatusOf } from './sentence-status.ts';

/** A passage that a model reads, with the number by which its text cites it. */
export type Passage = { number: number; content: string; row: SearchHit['row'] };

/** What is known of a sentence: each of its quotes, and the numbers of the passages that it cites. */
export type CheckedSentence = Omit<Sentence, 'quotes'> & {
  status: ReturnType<typeof sentenceStatusOf>;
  quotes: (Sentence['quotes'][number] & { checked: CheckedQuote<Passage> })[];
};

export function readPassages(hits: readonly SearchHit[]): Passage[] {
  return hits.map(({ row }, index) => ({ number: index + 1, content: row.content.toString(), row }));
}

/** Checks a sentence against the passages that its writer read, and against nothing else. */
export async function checkSentence(passages: readonly Passage[], sentence: Sentence): Promise<CheckedSentence> {
  const check = await QuoteCheck.of<Passage>(sentence.quotes.map(({ text }) => text));
  for (const passage of passages) await check.add(passage, passage.content);
  const checked = await check.results();
  const citations = sentence.citations.filter((number) => number >= 1 && number <= passages.length);
  return {
    ...sentence,
    citations,
    status: sentenceStatusOf(checked, citations.length > 0),
    quotes: sentence.quotes.map((quote, at) => ({ ...quote, checked: checked[at] ?? { status: 'not_found' } })),
  };
}

/** Whether a reader cannot check the sentence: it names no passage, or quotes what none says. */
export function isUnsupported({ status, quotes }: CheckedSentence): boolean {
  const isMissing = ({ checked }: CheckedSentence['quotes'][number]) =>
    checked.status === 'altered' || checked.status === 'not_found';
  return status === 'uncited' || quotes.some(isMissing);
}

/** A passage as a citation. */
export function presentPassage({ number, content, row }: Passage) {
  return {
    number,
    document: formatId('document', row.documentId),
    source: formatId('source', row.sourceId),
    chunk: formatId('chunk', row.id),
    content_hash: row.contentHash.toString('hex'),
    ...(row.version === null ? {} : { version: row.version }),
    ...(row.title === null ? {} : { title: row.title }),
    ...(row.sourceUrl === null ? {} : { source_url: row.sourceUrl }),
    ...(row.fragment === null ? {} : { fragment: row.fragment }),
    heading_path: row.headingPath,
    start_byte: row.startByte,
    end_byte: row.endByte,
    start_line: row.startLine,
    end_line: row.endLine,
    ...(row.startPage === null || row.endPage === null ? {} : { start_page: row.startPage, end_page: row.endPage }),
    content,
  };
}

/** A quote of a sentence. `offset` is how far its text moved. */
export function presentQuote({ text, start, end, checked }: CheckedSentence['quotes'][number], offset: number) {
  const { status, place, difference } = checked;
  const own = { text, start: start + offset, end: end + offset, status };
  if (place === undefined) return own;
  const { row, content, number } = place.key;
  const pagesOf = readPages(content);
  return {
    ...own,
    citation: number,
    document: formatId('document', row.documentId),
    source: formatId('source', row.sourceId),
    ...(row.title === null ? {} : { title: row.title }),
    content_hash: row.contentHash.toString('hex'),
    ...(row.version === null ? {} : { version: row.version }),
    places: place.ranges.map((range) => {
      const said = content.slice(range.start, range.end);
      const startByte = Buffer.byteLength(content.slice(0, range.start));
      const pages = row.startPage === row.endPage ? row : pagesOf(said, { startByte });
      return {
        start_byte: row.startByte + startByte,
        end_byte: row.startByte + startByte + Buffer.byteLength(said),
        ...(pages.startPage == null || pages.endPage == null
          ? {}
          : { start_page: pages.startPage, end_page: pages.endPage }),
        text: said,
      };
    }),
    ...(difference === undefined ? {} : { difference }),
  };
}
