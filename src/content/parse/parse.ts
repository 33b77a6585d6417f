import { codeLanguages, type DocumentKind, detectKind, extensionOf } from './detect.ts';
import { parseEpub } from './html/epub.ts';
import { parseHtmlDocument } from './html/html.ts';
import { AttachmentReader, CollectedParts } from './mail/attachments.ts';
import { parseMail } from './mail/mail.ts';
import { parsePicture } from './ocr/picture.ts';
import { parseCompound } from './office/compound.ts';
import { parseDocx } from './office/docx.ts';
import { parseOdf } from './office/odf.ts';
import { parsePptx } from './office/pptx.ts';
import { parseRtf } from './office/rtf.ts';
import { parseXlsb } from './office/xlsb.ts';
import { parseXlsx } from './office/xlsx.ts';
import { parsePdf } from './pdf/pdf.ts';
import { Reading } from './reading.ts';
import { cleanText, decodeText } from './text/charset.ts';
import { csvToMarkdown, looksLikeCsv } from './text/csv.ts';
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
  return requireText(await parseKind(kind, input, reading));
}

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

async function parseKind(kind: DocumentKind, input: ParseInput, reading: Reading): Promise<ReadDocument> {
  const { bytes } = input;
  switch (kind) {
    case 'pdf':
      return parsePdf(bytes, reading);
    case 'docx':
      return parseDocx(bytes);
    case 'pptx':
      return parsePptx(bytes);
    case 'xlsx':
      return parseXlsx(bytes);
    case 'xlsb':
      return parseXlsb(bytes);
    case 'odt':
    case 'ods':
    case 'odp':
      return parseOdf(bytes, kind);
    case 'epub':
      return parseEpub(bytes);
    case 'rtf':
      return parseRtf(bytes);
    case 'cfb':
      return parseCompound(bytes);
    case 'mail':
      return parseMail(bytes);
    case 'html':
      return parseHtmlDocument(bytes, input);
    case 'markdown':
      return parseMarkdownText(textOf(input));
    case 'csv':
      return { kind: 'csv', markdown: csvToMarkdown(cleanText(textOf(input))) };
    case 'json':
    case 'xml':
      return parseCodeText(textOf(input), kind);
    case 'code':
      return parseCodeText(textOf(input), codeLanguages[extensionOf(input.filename)] ?? '');
    case 'text': {
      const text = textOf(input);
      return extensionOf(input.filename) === '' && looksLikeCsv(text)
        ? { kind: 'csv', markdown: csvToMarkdown(cleanText(text)) }
        : parsePlainText(text);
    }
    case 'image':
      return parsePicture(bytes, reading);
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
