import type { Static } from 'typebox';
import { invalidField } from '../../lib/errors.ts';
import type { documentContentQuery } from '../schema.ts';

export type DocumentContent = {
  content: string;
  unit?: 'lines' | 'bytes';
  offset?: number;
  limit?: number;
  start_line?: number;
  end_line?: number;
  start_byte?: number;
  end_byte?: number;
};

const linesDefault = 200;
const bytesDefault = 8_192;
/** No character has more bytes. */
const utf8Max = 4;

/** Reads a stored text as a whole, or a part of it. */
type TextReader = { all(): Promise<Buffer>; part(start: number, length: number): Promise<Buffer> };

/** Returns the whole text, or a slice of it if the query has `offset` or `limit`. */
export async function sliceText(
  read: TextReader,
  { totalSize, totalLines }: { totalSize: number; totalLines: number },
  query: Static<typeof documentContentQuery>,
): Promise<DocumentContent> {
  if (query.offset === undefined && query.limit === undefined) return { content: (await read.all()).toString() };
  const { unit = 'lines' } = query;
  if (unit === 'bytes') {
    const { offset = 0, limit = bytesDefault } = query;
    const start = Math.min(offset, totalSize);
    const end = Math.min(start + limit, totalSize);
    const from = Math.max(0, start - utf8Max);
    const around = await read.part(from, end - from + utf8Max);
    return { unit, offset, limit, ...cutBytes(around, from, start, end) };
  }
  const { offset = 1, limit = linesDefault } = query;
  if (offset < 1) throw invalidField('offset', 'lines are numbered from 1');
  return { unit, offset, limit, ...cutLines((await read.all()).toString(), totalLines, offset, limit) };
}

/** Bytes of a text, shortened so that no character is cut. `around` starts at `from`, and reaches beyond both ends. */
function cutBytes(around: Buffer, from: number, start: number, end: number) {
  let first = start - from;
  while (first < around.length && isContinuation(around[first])) first += 1;
  let last = Math.max(first, end - from);
  while (last > first && last < around.length && isContinuation(around[last])) last -= 1;
  return {
    content: around.subarray(first, last).toString(),
    start_byte: from + first,
    end_byte: from + last,
  };
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** Whole lines with their line breaks; empty past the end. */
function cutLines(text: string, totalLines: number, offset: number, limit: number) {
  let start = 0;
  for (let line = 1; line < offset && start < text.length; line++) {
    const end = text.indexOf('\n', start);
    start = end < 0 ? text.length : end + 1;
  }
  let end = start;
  for (let line = 0; line < limit && end < text.length; line++) {
    const next = text.indexOf('\n', end);
    end = next < 0 ? text.length : next + 1;
  }
  const startLine = Math.min(offset, totalLines + 1);
  return {
    content: text.slice(start, end),
    start_line: startLine,
    end_line: Math.min(startLine + limit - 1, totalLines),
  };
}
