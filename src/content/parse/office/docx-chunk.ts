import { bodyBlocks, readMail } from '../mail/mail.ts';
import { decodeText } from '../text/charset.ts';
import type { Block } from '../write-markdown.ts';
import { rtfBlocks } from './rtf.ts';

/** The blocks of a document in another format within a Word document. Other Word documents are left out. Throws ParseError. */
export async function chunkBlocks(bytes: Uint8Array): Promise<Block[]> {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(1024, bytes.byteLength)).toString('latin1');
  if (head.startsWith('PK')) return [];
  if (/^\s*\{\\rtf/.test(head)) return rtfBlocks(bytes);
  if (/^(?:MIME-Version|Content-Type|From|Subject):/im.test(head)) return bodyBlocks(await readMail(bytes));
  const { text } = decodeText(bytes);
  return bodyBlocks(
    /<(?:!doctype|html|body|p|div|table|h[1-6])\b/i.test(text.slice(0, 10_000)) ? { html: text } : { text },
  );
}
