import { createHash } from 'node:crypto';
import { type Chunk, chunkMarkdown } from './chunk.ts';
import { packVector } from './embed/codes.ts';
import { embedLexically } from './embed/lexical.ts';
import { PostingsBuilder, packBundle } from './postings.ts';
import { readTokens, type StemLanguage } from './terms.ts';

/** A text as a search index takes it in, and what of its vectors is to be made at once. */
export type PrepareInput = {
  text: string;
  title: string | undefined;
  language: StemLanguage;
  /** The language of the built-in embedder, when that is the one in use. */
  embedIn: StemLanguage | undefined;
  /** Hashes (hex) of the chunks that have a vector already. */
  embedded: readonly string[];
};

type PreparedChunk = Omit<Chunk, 'text'> & {
  /** SHA-256, hex, of what is embedded: the chunk below the title and headings that it does not say itself. */
  hash: string;
  words: number;
  /** What is embedded, where another embedder than the built-in one is to do it. */
  context?: string;
};

export type PreparedText = {
  lines: number;
  chunks: PreparedChunk[];
  /** The postings of the chunks, so many after one another; in each the ordinals count from 0. */
  bundles: { chunkCount: number; content: Buffer }[];
  /** Packed vectors by the hash of their chunk. */
  vectors: [hash: string, vector: Buffer][];
};

/** Postings under construction take a hundred times their text where every word is another, so they are packed in between. */
const bundleChunksMax = 256;

/** Cuts a text into chunks, indexes their words and, with the built-in embedder, embeds those that have no vector. */
export function prepareText({ text, title, language, embedIn, embedded }: PrepareInput): PreparedText {
  const bundles: PreparedText['bundles'] = [];
  let postings = new PostingsBuilder();
  let gathered = 0;
  const pack = () => {
    if (gathered > 0) bundles.push({ chunkCount: gathered, content: packBundle(postings.finish()) });
    postings = new PostingsBuilder();
    gathered = 0;
  };
  const known = new Set(embedded);
  const vectors: PreparedText['vectors'] = [];
  const chunks = chunkMarkdown(text).map(({ text: passage, ...place }): PreparedChunk => {
    const context = withContext(passage, title, place.headingPath);
    const hash = createHash('sha256').update(context).digest('hex');
    const terms = new Map<string, number[]>();
    let words = 0;
    for (const token of readTokens(context, language)) {
      if (!token.whole) words += 1;
      const positions = terms.get(token.term);
      if (positions) positions.push(token.position);
      else terms.set(token.term, [token.position]);
    }
    postings.add({ ordinal: gathered, length: words, terms });
    gathered += 1;
    if (gathered === bundleChunksMax) pack();
    if (embedIn === undefined) return { ...place, hash, words, context };
    if (!known.has(hash)) {
      known.add(hash);
      vectors.push([hash, packVector(embedLexically(context, embedIn))]);
    }
    return { ...place, hash, words };
  });
  pack();
  return { lines: countLines(text), chunks, bundles, vectors };
}

/** A passage found without its surroundings should still say what it is about. */
export function withContext(text: string, title: string | undefined, headingPath: readonly string[]): string {
  const said = text.toLowerCase();
  const missing = [title ?? '', ...headingPath].filter((line) => line !== '' && !said.includes(line.toLowerCase()));
  const lines = [...new Set(missing)];
  return lines.length === 0 ? text : `${lines.join('\n')}\n\n${text}`;
}

/** Lines as people count them: a line break at the very end begins no further line. */
function countLines(text: string): number {
  if (text === '') return 0;
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < text.length - 1; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
