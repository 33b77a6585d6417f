import type { Static } from 'typebox';
import type { Db } from '../../db/database.ts';
import { readBase64 } from '../../files/input.ts';
import { findVisibleFile } from '../../files/store.ts';
import { decodeLongBase64, encodeLongText, findLongText } from '../../http/body/long-text.ts';
import { AppError } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { fieldId, unknownReference } from '../../tenancy/references.ts';
import type { contentSchema } from '../schema.ts';
import { documentBytesMax } from './prepare.ts';
import type { ItemContent, NewItem } from './store.ts';

const textType = /^text\/(?:plain|markdown|x-markdown)\s*(?:;|$)/i;
const textName = /\.(?:md|markdown|txt|text)$/i;

/** Reads the pushed bytes. Text that is declared as plain text or Markdown becomes the document unchanged. */
export async function readContent(content: Static<typeof contentSchema>, field: string, app: string) {
  const { content_type: contentType = null, filename = null } = content;
  const long = findLongText(content, 'data');
  if (content.data_encoding === 'base64') {
    const bytes = long ? await concatenate(decodeLongBase64(field, long, app)) : readBase64(field, content.data);
    return { content: bytes, isText: false, contentType, filename };
  }
  const isText =
    (contentType === null || textType.test(contentType)) &&
    (filename === null || !/\.\w+$/.test(filename) || textName.test(filename));
  const bytes = long ? await concatenate(encodeLongText(field, long, app)) : Buffer.from(content.data);
  return { content: bytes, isText, contentType, filename };
}

/** The id of the file that a member of a body names. 422 unless the caller sees it and it is as small as a document. */
export async function requireDocumentFile(db: Db, caller: Caller, file: string, field: string): Promise<string> {
  const found = await findVisibleFile(db, caller, fieldId('file', field, file));
  if (!found) throw unknownReference(field);
  if (found.size > documentBytesMax)
    throw new AppError('file_too_large', `A file can have at most ${documentBytesMax} bytes.`, {
      fields: [{ field, message: 'is too large' }],
    });
  return found.id;
}

async function concatenate(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

export const emptyContent: ItemContent = {
  fileId: null,
  content: null,
  isText: false,
  contentType: null,
  filename: null,
  title: null,
  metadata: null,
};

export const emptyItem: NewItem = { ...emptyContent, documentId: null, dedupe: false };
