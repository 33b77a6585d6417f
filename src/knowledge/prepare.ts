import { createHash } from 'node:crypto';
import { type Chunk, chunkMarkdown } from '../content/chunk.ts';
import { readTokens, type StemLanguage } from '../content/terms.ts';
import { newUuid } from '../ids.ts';

export type PreparedChunk = Omit<Chunk, 'text'> & {
  id: string;
  /** What is embedded: the chunk below the title and headings that it does not say itself. */
  context: string;
  /** SHA-256 of `context`. */
  hash: Buffer;
  words: number;
  terms: Map<string, number[]>;
};

export type PreparedDocument = {
  text: Buffer;
  textHash: Buffer;
  lines: number;
  words: number;
  chunks: PreparedChunk[];
};

/** Everything the index needs of a document's text. NUL becomes U+FFFD, since nothing downstream can hold it. */
export function prepareDocument(raw: string, title: string | undefined, language: StemLanguage): PreparedDocument {
  const text = raw.replaceAll('\0', '\uFFFD').toWellFormed();
  const bytes = Buffer.from(text);
  const chunks = chunkMarkdown(text).map((chunk) => prepareChunk(chunk, title, language));
  return {
    text: bytes,
    textHash: createHash('sha256').update(bytes).digest(),
    lines: countLines(text),
    words: chunks.reduce((sum, chunk) => sum + chunk.words, 0),
    chunks,
  };
}

function prepareChunk(chunk: Chunk, title: string | undefined, language: StemLanguage): PreparedChunk {
  const { text, ...place } = chunk;
  const context = withContext(text, title, chunk.headingPath);
  const terms = new Map<string, number[]>();
  let words = 0;
  for (const token of readTokens(context, language)) {
    if (!token.whole) words += 1;
    const positions = terms.get(token.term);
    if (positions) positions.push(token.position);
    else terms.set(token.term, [token.position]);
  }
  return { ...place, id: newUuid(), context, hash: createHash('sha256').update(context).digest(), words, terms };
}

/** A passage found without its surroundings should still say what it is about. */
export function withContext(text: string, title: string | undefined, headingPath: readonly string[]): string {
  const said = text.toLowerCase();
  const missing = [title ?? '', ...headingPath].filter((line) => line !== '' && !said.includes(line.toLowerCase()));
  const lines = [...new Set(missing)];
  return lines.length === 0 ? text : `${lines.join('\n')}\n\n${text}`;
}

/** Lines as people count them: a line break at the very end begins no further line. */
export function countLines(text: string): number {
  if (text === '') return 0;
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < text.length - 1; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
