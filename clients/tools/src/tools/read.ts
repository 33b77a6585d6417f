import { z } from 'zod';
import { defineTool, type ToolDefinition } from '../definition.ts';
import { ToolError } from '../errors.ts';
import type { Limits } from '../options.ts';
import type { QuarryClient, Session, StoredFile } from '../session.ts';
import { decodeRange, isSameId, joinParts } from '../text.ts';

export type ReadInput = { id: string; offset?: number | undefined; limit?: number | undefined };

/** A part of a text. Offsets are bytes of its UTF-8; `next_offset` is absent at its end. */
export type Part = { content: string; offset: number; size: number; next_offset?: number };
export type ReadResult = { id: string; title?: string } & Part;

type Content = { content: string; title?: string; total_size: number; start_byte: number; end_byte: number };

/** What has text in it only for a reader of its format. */
const documentTypes = /^(?:image|audio|video|font)\/(?!svg)|^application\/(?:pdf|zip|gzip|epub|msword|vnd\.)/;
/** A character has at most 4 bytes; a part that is shorter might never advance. */
const limitMin = 4;
const offsetMax = 2_147_483_647;
/** What the description of a part takes of charactersMax. */
const headerCharacters = 500;

export const offsetInput = z.int().min(0).max(offsetMax).optional();

export function readTool(client: QuarryClient, limits: Limits): ToolDefinition<ReadInput, ReadResult> {
  const bytesMax = partBytesMax(limits);
  const ids = limits.files ? 'document (cdo_…) or of a stored text file (fil_…)' : 'document (cdo_…)';
  return defineTool<ReadInput, ReadResult>(client, limits, {
    name: 'read',
    description: `Returns a part of the text of a ${ids}. To continue, call it again with offset set to next_offset.`,
    input: z.strictObject({
      id: z.string().min(1).max(200),
      offset: offsetInput.describe('The first byte. Default 0.'),
      limit: z.int().min(limitMin).max(bytesMax).optional().describe(`Bytes. Default ${bytesMax}.`),
    }),
    async run({ id, offset = 0, limit = bytesMax }, session) {
      if (!id.startsWith('fil_')) return readDocument(session, id, offset, limit);
      if (!limits.files) throw new ToolError('not_allowed', 'This tool reads documents (cdo_…) and no files.');
      const file = await session.getFile(id);
      return { id: file.id, title: file.filename, ...(await readPart(session, file, offset, limit)) };
    },
    describe: ({ id, title, ...part }) => describePart(part, `read with id ${id} and`, joinParts(title, id)),
  });
}

/** Bytes of a part, so that its text and what is said about it fit the result. */
export function partBytesMax(limits: Limits): number {
  return limits.charactersMax - headerCharacters;
}

async function readDocument(session: Session, id: string, offset: number, limit: number): Promise<ReadResult> {
  const path = `/api/v1/knowledge_documents/${encodeURIComponent(id)}`;
  const { sources } = session.limits;
  if (sources !== undefined) {
    const { source } = await session.request<{ source: string }>('GET', path);
    if (![...sources.keys()].some((allowed) => isSameId(allowed, source)))
      throw new ToolError('not_allowed', `${id} belongs to a source that this tool may not read.`);
  }
  const query = { unit: 'bytes', offset, limit };
  const found = await session.request<Content>('GET', `${path}/content`, { query });
  const { content, title, total_size: size, start_byte: start, end_byte: end } = found;
  return { id, ...(title === undefined ? {} : { title }), content, offset: start, size, ...nextOf(end, size) };
}

/** A part of a stored text file; ToolError if it is not text. */
export async function readPart(session: Session, file: StoredFile, offset: number, limit: number): Promise<Part> {
  const start = Math.min(offset, file.size);
  const bytes = await session.readRange(file, start, Math.min(start + limit, file.size));
  if (bytes.includes(0) || documentTypes.test(file.content_type))
    throw new ToolError('unsupported_content', `${file.id} is not text but ${file.content_type}. Use extract for it.`);
  const { content, start: first, end } = decodeRange(bytes, start);
  return { content, offset: first, size: file.size, ...nextOf(end, file.size) };
}

function nextOf(end: number, size: number): { next_offset?: number } {
  return end < size ? { next_offset: end } : {};
}

/** @param again how to call for the next part, before its offset. */
export function describePart({ content, offset, size, next_offset: next }: Part, again: string, name: string): string {
  const more = next === undefined ? '' : `\n\n[There is more: call ${again} offset ${next}.]`;
  return `${name}, bytes ${offset}-${next ?? size} of ${size}:\n\n${content}${more}`;
}
