import PostalMime, { type Address, type Attachment, type Email } from 'postal-mime';
import { htmlBlocks } from '../html/blocks.ts';
import { plainStructure } from '../html/structure/structure.ts';
import { parseHtml } from '../html/tree.ts';
import { parseLimits } from '../limits.ts';
import { decodeText, wideCharset } from '../text/charset.ts';
import { isoDate } from '../text/text.ts';
import { type Attached, failed, type ParsedDocument } from '../types.ts';
import { type Block, escapeText, oneLine, writeMarkdown } from '../write-markdown.ts';

type MailFields = {
  subject: string;
  from: string;
  to: string;
  cc: string;
  date: string | undefined;
  html: string | undefined;
  text: string | undefined;
  attachments: string[];
};

/** An e-mail: subject as the heading, sender, recipients and date, the text, the names of attachments. Throws ParseError. */
export async function parseMail(bytes: Uint8Array): Promise<ParsedDocument & { attached: Attached[] }> {
  const email = await readMail(bytes);
  const files = email.attachments.filter((one) => !one.related || one.filename);
  const nameOf = (one: Attachment) => one.filename ?? `unnamed (${one.mimeType})`;
  const document = mailDocument('eml', {
    subject: email.subject ?? '',
    from: email.from ? addressText(email.from) : '',
    to: (email.to ?? []).map(addressText).join(', '),
    cc: (email.cc ?? []).map(addressText).join(', '),
    date: email.date,
    html: email.html,
    text: email.text,
    attachments: files.map(nameOf),
  });
  // Pictures within the text, such as logos, are only named.
  const attached = files
    .filter((one) => !one.related)
    .map((one) => {
      const bytes = bytesOf(one.content);
      return { name: attachmentName(nameOf(one)), contentType: one.mimeType, bytes, byteLength: bytes.byteLength };
    });
  return { ...document, attached };
}

/** Reads a mail or a web archive. One that was saved in UTF-16 is read as UTF-8. Throws ParseError. */
export async function readMail(bytes: Uint8Array): Promise<Email> {
  const isMarked = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  const isWide = isMarked || wideCharset(bytes) !== undefined;
  try {
    return await PostalMime.parse(isWide ? Buffer.from(decodeText(bytes).text) : bytes, {
      maxNestingDepth: 64,
      maxHeadersSize: 1024 * 1024,
    });
  } catch (error) {
    throw failed('The e-mail is damaged or nested too deeply to be read.', error);
  }
}

/** The name of an attachment on one line, at most 300 characters. */
export function attachmentName(name: string): string {
  return oneLine(name).slice(0, 300);
}

function bytesOf(content: Attachment['content']): Uint8Array {
  return typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content);
}

/** Writes a mail as Markdown: its fields, its text and the names of its attachments. Throws ParseError if all are empty. */
export function mailDocument(kind: string, mail: MailFields): ParsedDocument {
  const created = isoDate(mail.date);
  const lines = [
    ['From', mail.from],
    ['To', mail.to],
    ['Cc', mail.cc],
    ['Date', created ?? mail.date ?? ''],
  ]
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `**${name}:** ${escapeText(oneLine(value ?? ''))}`);
  const blocks: Block[] = [];
  if (mail.subject.trim() !== '') blocks.push({ type: 'heading', level: 1, text: escapeText(oneLine(mail.subject)) });
  if (lines.length > 0) blocks.push({ type: 'paragraph', text: lines.join('  \n') });
  blocks.push(...bodyBlocks(mail));
  const attachments = mail.attachments.slice(0, 1000).map(attachmentName);
  if (attachments.length > 0) {
    blocks.push({ type: 'paragraph', text: '**Attachments:**' });
    for (const name of attachments) blocks.push({ type: 'item', depth: 0, marker: '-', text: escapeText(name) });
  }
  if (blocks.length === 0) throw failed('The e-mail contains no text.');
  return {
    kind,
    markdown: writeMarkdown(blocks),
    ...(mail.subject.trim() === '' ? {} : { title: oneLine(mail.subject) }),
    ...(mail.from === '' ? {} : { author: oneLine(mail.from) }),
    ...(created ? { created } : {}),
    ...(attachments.length > 0 ? { attachments } : {}),
  };
}

/** The blocks of the HTML part if it has content, otherwise of the text, whose quotes and line ends are kept. */
export function bodyBlocks(mail: Pick<Email, 'html' | 'text'>): Block[] {
  if (mail.html !== undefined && mail.html.trim() !== '') {
    const { root, truncated } = parseHtml(mail.html.slice(0, parseLimits.markdownCharactersMax));
    if (truncated) throw failed('The e-mail has more parts than can be read.');
    plainStructure(root);
    const blocks = htmlBlocks(root);
    if (blocks.length > 0) return blocks;
  }
  return (mail.text ?? '')
    .replaceAll(/\r\n?/g, '\n')
    .split(/\n{2,}/)
    .filter((paragraph) => paragraph.trim() !== '')
    .flatMap((paragraph) => quotedRuns(paragraph.split('\n')))
    .map(({ isQuote, lines }) => {
      const text = lines
        .map((line) => escapeText(isQuote ? line.replace(/^(?:>\s?)+/, '') : line.trimEnd()))
        .join('  \n');
      return isQuote ? { type: 'quote', blocks: [{ type: 'paragraph', text }] } : { type: 'paragraph', text };
    });
}

/** Divides the lines of a paragraph where a quote begins or ends, as below "… wrote:". */
function quotedRuns(lines: string[]): { isQuote: boolean; lines: string[] }[] {
  const runs: { isQuote: boolean; lines: string[] }[] = [];
  for (const line of lines) {
    const isQuote = line.startsWith('>');
    const last = runs.at(-1);
    if (last?.isQuote === isQuote) last.lines.push(line);
    else runs.push({ isQuote, lines: [line] });
  }
  return runs;
}

function addressText(address: Address): string {
  if (address.group) return `${address.name}: ${address.group.map(addressText).join(', ')}`;
  if (address.name === '') return address.address ?? '';
  return address.address ? `${address.name} <${address.address}>` : address.name;
}
