import type { Static } from 'typebox';
import { readBase64 } from '../../files/input.ts';
import { decodeLongBase64, encodeLongText, findLongText } from '../../http/body/long-text.ts';
import type { contentSchema } from '../schema.ts';

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

async function concatenate(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}
