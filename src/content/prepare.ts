import { hash } from 'node:crypto';
import { type Chunk, chunkMarkdown } from './chunk.ts';
import { type PackedVector, packWithCode } from './embed/codes.ts';
import { embedTerms, embedTokens } from './embed/lexical.ts';
import type { HeadingFragments } from './fragments.ts';
import { detectLanguage } from './language.ts';
import { PostingsBuilder, packBundle } from './postings.ts';
import { readTokens, type StemLanguage } from './terms.ts';

/** A text to prepare for a search index, and the vectors to compute with it. */
export type PrepareInput = {
  text: string;
  title: string | undefined;
  /** Undefined: detected from the text. */
  language: StemLanguage | undefined;
  /** The language to assume if the text's language cannot be detected. */
  otherwise: StemLanguage;
  /** The language of the built-in embedder, if that is in use. */
  embedIn: StemLanguage | undefined;
  /** SHA-256 digests (hex) of the chunks that already have a vector. */
  embedded: readonly string[];
  /** The fragments of a web page's headings. */
  fragments?: HeadingFragments | undefined;
};

/** How to prepare the text of a document that is read first. Its own title or its filename replaces a missing one. */
export type PrepareTerms = Omit<PrepareInput, 'text' | 'fragments'>;

/** The title under which a document is indexed: the one it was given, or its own, or its filename. */
export function titleOf(
  given: string | null | undefined,
  own: string | undefined,
  filename: string | null | undefined,
): string | undefined {
  return given ?? own ?? filename ?? undefined;
}

type PreparedChunk = Omit<Chunk, 'text'> & {
  /** SHA-256 (hex) of the embedded text: the chunk, preceded by the title and the headings that it does not contain. */
  hash: string;
  words: number;
  /** The first and last page of the chunk, if the text has page marks. */
  startPage?: number;
  endPage?: number;
  /** The embedded text, for an embedder other than the built-in one. */
  context?: string;
};

export type PreparedText = {
  lines: number;
  /** The language in which its words are stemmed. */
  language: StemLanguage;
  chunks: PreparedChunk[];
  /** The postings of groups of consecutive chunks. In each group, ordinals count from 0. */
  bundles: { chunkCount: number; content: Buffer }[];
  /** Vectors by the hash of their chunk. */
  vectors: [hash: string, vector: PackedVector][];
};

/**
 * Postings under construction can take a hundred times the memory of their text, if every word is different, so they
 * are packed in between.
 */
const bundleChunksMax = 256;

/**
 * Splits a text into chunks, indexes their words and, with the built-in embedder, embeds chunks that have no vector.
 */
export function prepareText({ text, title, embedIn, embedded, ...input }: PrepareInput): PreparedText {
  const language = input.language ?? detectLanguage(text, input.otherwise);
  const bundles: PreparedText['bundles'] = [];
  let postings = new PostingsBuilder();
  let gathered = 0;
  const pack = () => {
    if (gathered > 0) bundles.push({ chunkCount: gathered, content: packBundle(postings.finish()) });
    postings = new PostingsBuilder();
    gathered = 0;
  };
  const titleTerms = titleTermReader(language);
  const pagesOf = readPages(text);
  const known = new Set(embedded);
  const vectors: PreparedText['vectors'] = [];
  const chunks = chunkMarkdown(text, { fragments: input.fragments }).map(
    ({ text: passage, ...position }): PreparedChunk => {
      const place = { ...position, ...pagesOf(passage, position) };
      const context = withContext(passage, title, place.headingPath);
      const digest = hash('sha256', context);
      const terms = new Map<string, number[]>();
      let words = 0;
      const tokens = readTokens(context, language);
      for (const token of tokens) {
        if (!token.whole) words += 1;
        const positions = terms.get(token.term);
        if (positions) positions.push(token.position);
        else terms.set(token.term, [token.position]);
      }
      postings.add({ ordinal: gathered, length: words, terms, titled: titleTerms(passage, title, place.headingPath) });
      gathered += 1;
      if (gathered === bundleChunksMax) pack();
      if (embedIn === undefined) return { ...place, hash: digest, words, context };
      if (!known.has(digest)) {
        known.add(digest);
        const counts = () => [...terms].map(([term, positions]) => [term, positions.length] as const);
        const vector = embedIn === language ? embedTerms(counts(), embedIn) : embedTokens(tokens, embedIn);
        vectors.push([digest, packWithCode(vector)]);
      }
      return { ...place, hash: digest, words };
    },
  );
  pack();
  return { lines: countLines(text), language, chunks, bundles, vectors };
}

/** Reads the terms of a chunk's title, of the headings above it and of those in it. */
function titleTermReader(language: StemLanguage) {
  const termsOf = (text: string) => readTokens(text, language).map(({ term }) => term);
  // Neighbouring chunks share the headings above them.
  let above = '';
  let aboveTerms: string[] = [];
  return (passage: string, title: string | undefined, headingPath: readonly string[]): ReadonlySet<string> => {
    const lines = [title ?? '', ...headingPath].join('\n');
    if (lines !== above) {
      above = lines;
      aboveTerms = termsOf(lines);
    }
    const inside = [...passage.matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = '']) => heading);
    return new Set(inside.length === 0 ? aboveTerms : [...aboveTerms, ...termsOf(inside.join('\n'))]);
  };
}

/** Adds title and headings, so that a chunk found on its own still shows its subject. */
export function withContext(text: string, title: string | undefined, headingPath: readonly string[]): string {
  const said = text.toLowerCase();
  const missing = [title ?? '', ...headingPath].filter((line) => line !== '' && !said.includes(line.toLowerCase()));
  const lines = [...new Set(missing)];
  return lines.length === 0 ? text : `${lines.join('\n')}\n\n${text}`;
}

/** Reads pages from the marks that parsers leave in the text. The first page has no mark. */
export function readPages(text: string) {
  const marks: { page: number; byte: number }[] = [];
  let seen = 0;
  let byte = 0;
  for (const match of text.matchAll(/<!-- page (\d{1,9}) -->/g)) {
    byte += Buffer.byteLength(text.slice(seen, match.index));
    seen = match.index;
    marks.push({ page: Number(match[1]), byte });
  }
  const pageAt = (end: number): number => {
    let low = 0;
    let high = marks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((marks[middle]?.byte ?? 0) < end) low = middle + 1;
      else high = middle;
    }
    return marks[low - 1]?.page ?? Math.max(1, (marks[0]?.page ?? 2) - 1);
  };
  return (passage: string, { startByte }: { startByte: number }): { startPage?: number; endPage?: number } => {
    if (marks.length === 0) return {};
    const end = startByte + Buffer.byteLength(withoutLastMarks(passage));
    const startPage = pageAt(startByte + 1);
    return { startPage, endPage: Math.max(startPage, pageAt(end)) };
  };
}

/** Removes page marks at the end of a passage, which contains nothing from the page that starts there. */
function withoutLastMarks(passage: string): string {
  for (let text = passage.trimEnd(); ; ) {
    const mark = /<!-- page \d{1,9} -->$/.exec(text);
    if (mark === null) return text;
    text = text.slice(0, mark.index).trimEnd();
  }
}

/** Counts lines as people do: a line break at the very end starts no further line. */
function countLines(text: string): number {
  if (text === '') return 0;
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < text.length - 1; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
