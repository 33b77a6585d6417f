import { codeLanguages, type DocumentKind, detectKind, extensionOf } from './detect.ts';
import { parseEpub } from './html/epub.ts';
import { parseHtmlDocument } from './html/html.ts';
import { imageSize } from './image-size.ts';
import { parseMail } from './mail/mail.ts';
import { parseCompound } from './office/compound.ts';
import { parseDocx } from './office/docx.ts';
import { parseOdf } from './office/odf.ts';
import { parsePptx } from './office/pptx.ts';
import { parseRtf } from './office/rtf.ts';
import { parseXlsx } from './office/xlsx.ts';
import { parsePdf } from './pdf/pdf.ts';
import { cleanText, decodeText } from './text/charset.ts';
import { csvToMarkdown, looksLikeCsv } from './text/csv.ts';
import { parseCodeText, parseMarkdownText, parsePlainText } from './text/text.ts';
import { failed, type ParsedWithScans, type ParseInput, parseLimits, unsupported } from './types.ts';

/** A document of any known format as Markdown. Runs in a parser process. `ocr`: page images may be returned for recognition. Throws ParseError. */
export async function parseDocument(input: ParseInput, ocr: boolean): Promise<ParsedWithScans> {
  if (input.bytes.byteLength === 0) throw failed('The file is empty.');
  const kind = await detectKind(input);
  const document = await parseKind(kind, input, ocr);
  if (document.markdown.trim() === '' && document.scans === undefined) throw failed('The document contains no text.');
  return document;
}

async function parseKind(kind: DocumentKind, input: ParseInput, ocr: boolean): Promise<ParsedWithScans> {
  const { bytes } = input;
  switch (kind) {
    case 'pdf':
      return parsePdf(bytes, ocr);
    case 'docx':
      return parseDocx(bytes);
    case 'pptx':
      return parsePptx(bytes);
    case 'xlsx':
      return parseXlsx(bytes);
    case 'xlsb':
      throw unsupported('Binary Excel workbooks (xlsb) cannot be read. Save the workbook as xlsx.');
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
      return parseImage(bytes, ocr);
    case 'archive':
      throw unsupported('The file is an archive. Upload the documents in it one by one.');
    case 'media':
      throw unsupported('The file is audio or video, which has no text to read.');
    default:
      throw unsupported('The file has no format that can be read as a document.');
  }
}

/** A picture is returned for recognition when there is an OCR engine. */
function parseImage(bytes: Uint8Array, ocr: boolean): ParsedWithScans {
  if (!ocr) throw unsupported('The file is a picture, and no OCR engine is installed to read its text.');
  const size = imageSize(bytes);
  if (!size) throw failed('The picture is damaged or truncated.');
  if (size.width * size.height > parseLimits.imagePixelsMax)
    throw failed(`The picture has more than ${parseLimits.imagePixelsMax / 1_000_000} million pixels.`);
  const placeholder = '<!-- picture -->';
  return { kind: 'image', markdown: placeholder, scans: [{ placeholder, image: bytes }] };
}

function textOf(input: ParseInput): string {
  const charset = /charset\s*=\s*"?([\w.:-]+)/i.exec(input.contentType ?? '')?.[1];
  return decodeText(input.bytes, charset).text;
}
