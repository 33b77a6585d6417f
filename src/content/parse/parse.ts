import { codeLanguages, type DocumentKind, detectKind, extensionOf } from './detect.ts';
import { parseHtmlDocument } from './html/html.ts';
import { AttachmentReader, CollectedParts } from './mail/attachments.ts';
import { Reading } from './reading.ts';
import { cleanText, decodeText } from './text/charset.ts';
import { markdownLinks } from './text/links.ts';
import { parseCodeText, parseMarkdownText, parsePlainText } from './text/text.ts';
import {
  type Attached,
  failed,
  type ParsedDocument,
  type ParseInput,
  type ReadDocument,
  unsupported,
} from './types.ts';

/** Converts a document of any known format to Markdown. Runs in a parser process. Throws ParseError or Unfinished. */
export async function parseDocument(input: ParseInput, reading = new Reading()): Promise<ParsedDocument> {
  const collected = new CollectedParts();
  const attachments = new AttachmentReader((event) => collected.add(event));
  const document = await readDocument(input, reading, attachments);
  if (!attachments.isUsed) return document;
  const { parts, ...mail } = collected.finish();
  return { ...mail, ...(parts.length > 0 ? { parts } : {}) };
}

/** The same, but reports a mail that has attachments, and then its attachments one by one. */
export async function readDocument(
  input: ParseInput,
  reading: Reading,
  attachments: AttachmentReader,
): Promise<ParsedDocument> {
  const { attached, ...document } = await readOne(input, reading);
  if (attached) await attachments.read({ ...document, attached }, reading, readAttached);
  return document;
}

async function readOne(input: ParseInput, reading: Reading): Promise<ReadDocument> {
  if (input.bytes.byteLength === 0) throw failed('The file is empty.');
  const kind = input.isWhole === true ? 'html' : await detectKind(input);
  const document = requireText(await parseKind(kind, input, reading));
  if (input.url === undefined || !linking.has(document.kind)) return document;
  return { ...document, links: markdownLinks(document.markdown, input.url) };
}

const linking = new Set(['markdown', 'text']);

async function readAttached(one: Attached, reading: Reading): Promise<ReadDocument> {
  if (one.bytes !== undefined)
    return readOne({ bytes: one.bytes, contentType: one.contentType, filename: one.name }, reading);
  try {
    return requireText(one.read());
  } catch (error) {
    if (error instanceof RangeError) throw failed('The message is damaged or truncated.', error);
    throw error;
  }
}

function requireText(document: ReadDocument): ReadDocument {
  if (document.markdown.trim() === '') throw failed('The document contains no text.');
  return document;
}

/** The reader of a kind is loaded with its first document: a parser process that a web page waits for starts sooner. */
async function parseKind(kind: DocumentKind, input: ParseInput, reading: Reading): Promise<ReadDocument> {
  const { bytes } = input;
  switch (kind) {
    case 'pdf':
      return (await import('./pdf/pdf.ts')).parsePdf(bytes, reading);
    case 'docx':
      return (await import('./office/docx.ts')).parseDocx(bytes, reading);
    case 'pptx':
      return (await import('./office/pptx.ts')).parsePptx(bytes, reading);
    case 'xlsx':
      return (await import('./office/xlsx.ts')).parseXlsx(bytes);
    case 'xlsb':
      return (await import('./office/xlsb.ts')).parseXlsb(bytes);
    case 'odt':
    case 'ods':
    case 'odp':
      return (await import('./office/odf.ts')).parseOdf(bytes, kind, reading);
    case 'epub':
      return (await import('./html/epub.ts')).parseEpub(bytes);
    case 'rtf':
      return (await import('./office/rtf.ts')).parseRtf(bytes);
    case 'cfb':
      return (await import('./office/compound.ts')).parseCompound(bytes);
    case 'mail':
      return (await import('./mail/mail.ts')).parseMail(bytes);
    case 'html':
      return parseHtmlDocument(bytes, input);
    case 'markdown':
      return parseMarkdownText(textOf(input));
    case 'csv':
      return { kind: 'csv', markdown: (await import('./text/csv.ts')).csvToMarkdown(cleanText(textOf(input))) };
    case 'ipynb':
      return (await import('./text/notebook.ts')).parseNotebook(textOf(input));
    case 'json':
    case 'xml':
      return parseCodeText(textOf(input), kind);
    case 'code':
      return parseCodeText(textOf(input), codeLanguages[extensionOf(input.filename)] ?? '');
    case 'text': {
      const text = textOf(input);
      if (extensionOf(input.filename) !== '') return parsePlainText(text);
      const { csvToMarkdown, looksLikeCsv } = await import('./text/csv.ts');
      return looksLikeCsv(text) ? { kind: 'csv', markdown: csvToMarkdown(cleanText(text)) } : parsePlainText(text);
    }
    case 'image':
      return (await import('./ocr/picture.ts')).parsePicture(bytes, reading);
    case 'archive':
      throw unsupported('The file is an archive. Upload the documents in it one by one.');
    case 'media':
      throw unsupported('The file is audio or video, which has no text to read.');
    default:
      throw unsupported('The file is not in a format that can be read as a document.');
  }
}

function textOf(input: ParseInput): string {
  const charset = /charset\s*=\s*"?([\w.:-]+)/i.exec(input.contentType ?? '')?.[1];
  return decodeText(input.bytes, charset).text;
}
