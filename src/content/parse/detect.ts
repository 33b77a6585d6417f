import { ZipArchive } from './format/zip.ts';
import { looksLikeText } from './text/charset.ts';
import { failed } from './types.ts';

export type DocumentKind =
  | 'pdf'
  | 'docx'
  | 'pptx'
  | 'xlsx'
  | 'xlsb'
  | 'odt'
  | 'ods'
  | 'odp'
  | 'epub'
  | 'cfb'
  | 'rtf'
  | 'mail'
  | 'html'
  | 'markdown'
  | 'csv'
  | 'json'
  | 'ipynb'
  | 'xml'
  | 'text'
  | 'code'
  | 'image'
  | 'archive'
  | 'media'
  | 'binary';

type DetectInput = { bytes: Uint8Array; filename?: string; contentType?: string };

/**
 * Detects the format: from the content if possible, otherwise from the name, otherwise from the claimed type. Throws
 * ParseError on a damaged archive.
 */
export async function detectKind(input: DetectInput): Promise<DocumentKind> {
  const { bytes } = input;
  const binary = await binaryKind(bytes);
  if (binary) return binary;
  const isText = looksLikeText(bytes, /^text\//i.test(input.contentType ?? '')) || isDeclaredWide(input.contentType);
  if (!isText) return mailByName(input) ?? 'binary';
  const head = textHead(bytes);
  if (/^\{\\[a-z]/.test(head) && extensionOf(input.filename) === 'rtf') return 'rtf';
  return textKind(head) ?? kindByName(input.filename) ?? kindByType(input.contentType) ?? shapeOfText(head) ?? 'text';
}

/** Text in UTF-16 without a byte order mark has as many control characters as a binary format. */
function isDeclaredWide(contentType = ''): boolean {
  return /^text\/[^;]+;.*charset\s*=\s*"?utf-?16/i.test(contentType);
}

/** The file extension in lower case, without the dot. */
export function extensionOf(filename: string | undefined): string {
  return /\.([A-Za-z0-9]{1,10})$/.exec(filename ?? '')?.[1]?.toLowerCase() ?? '';
}

async function binaryKind(bytes: Uint8Array): Promise<DocumentKind | undefined> {
  const latin = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(1024, bytes.byteLength)).toString('latin1');
  if (latin.includes('%PDF-')) return 'pdf';
  if (latin.startsWith('PK\u0003\u0004') || latin.startsWith('PK\u0005\u0006')) return zipKind(bytes);
  if (latin.startsWith('\u00d0\u00cf\u0011\u00e0\u00a1\u00b1\u001a\u00e1')) return 'cfb';
  if (/^\s*\{\\rtf/.test(latin)) return 'rtf';
  if (isImage(bytes)) return 'image';
  if (archiveMarks.some((mark) => latin.startsWith(mark)) || latin.slice(257, 262) === 'ustar') return 'archive';
  if (mediaMarks.some((mark) => latin.startsWith(mark)) || latin.slice(4, 8) === 'ftyp') return 'media';
  return undefined;
}

const archiveMarks = ['\u001f\u008b', 'BZh', '7z\u00bc\u00af', 'Rar!', '\u00fd7zXZ', '\u0028\u00b5\u002f\u00fd'];
const mediaMarks = [
  'ID3',
  'OggS',
  'fLaC',
  'RIFF',
  '\u001aE\u00df\u00a3',
  '\u00ff\u00fb',
  '\u00ff\u00f3',
  '\u00ff\u00f2',
];

function isImage(bytes: Uint8Array): boolean {
  const ascii = (from: number, to: number): string => String.fromCharCode(...bytes.subarray(from, to));
  if (ascii(1, 4) === 'PNG' || ascii(0, 3) === '\u00ff\u00d8\u00ff' || ascii(0, 4) === 'GIF8') return true;
  if (ascii(0, 4) === 'RIFF' && ascii(8, 12) === 'WEBP') return true;
  if (ascii(0, 2) === 'BM' && bytes.length > 26 && bytes[6] === 0 && bytes[7] === 0) return true;
  if (ascii(0, 4) === 'II*\0' || ascii(0, 4) === 'MM\0*') return true;
  return ascii(4, 8) === 'ftyp' && /^(?:avi|hei|hev|mif|msf)/.test(ascii(8, 12));
}

async function zipKind(bytes: Uint8Array): Promise<DocumentKind> {
  const zip = await ZipArchive.open(bytes);
  const mimetype = zip.has('mimetype')
    ? Buffer.from(zip.read('mimetype') ?? [])
        .toString('latin1')
        .trim()
    : '';
  if (mimetype === 'application/epub+zip') return 'epub';
  const open = /^application\/vnd\.oasis\.opendocument\.(text|spreadsheet|presentation|graphics)/.exec(mimetype)?.[1];
  if (open !== undefined) return open === 'text' ? 'odt' : open === 'spreadsheet' ? 'ods' : 'odp';
  const names = zip.names;
  if (names.some((name) => /^word\/document\d*\.xml$/i.test(name))) return 'docx';
  if (names.some((name) => /^ppt\/presentation\d*\.xml$/i.test(name))) return 'pptx';
  if (names.some((name) => /^xl\/workbook\d*\.bin$/i.test(name))) return 'xlsb';
  if (names.some((name) => /^xl\/workbook\d*\.xml$/i.test(name))) return 'xlsx';
  if (zip.has('META-INF/container.xml')) return 'epub';
  const types = zip.has('[Content_Types].xml') ? (zip.readText('[Content_Types].xml') ?? '') : '';
  if (types.includes('wordprocessingml')) return 'docx';
  if (types.includes('presentationml')) return 'pptx';
  if (types.includes('spreadsheetml')) return 'xlsx';
  if (zip.has('content.xml')) return contentXmlKind(zip);
  return 'archive';
}

function contentXmlKind(zip: ZipArchive): DocumentKind {
  const content = zip.readText('content.xml')?.slice(0, 1_000_000) ?? '';
  if (content.includes('<office:spreadsheet')) return 'ods';
  if (content.includes('<office:presentation') || content.includes('<office:drawing')) return 'odp';
  if (content.includes('<office:text')) return 'odt';
  throw failed('The file is an archive that looks like an OpenDocument file but contains no document.');
}

function textHead(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(16_384, bytes.byteLength))
    .toString('latin1')
    .replaceAll('\0', '')
    .replace(/^(?:\u00ef\u00bb\u00bf|\u00ff\u00fe|\u00fe\u00ff)/, '')
    .trimStart();
}

/** Formats whose first characters are unambiguous. */
function textKind(head: string): DocumentKind | undefined {
  if (/^<!doctype\s+html|^<html[\s>]/i.test(head)) return 'html';
  if (/^<\?xml\b/i.test(head)) return /<(?:!doctype\s+)?html[\s>]/i.test(head.slice(0, 2000)) ? 'html' : 'xml';
  if (/^(?:<!--[\s\S]*?-->\s*)+(?:<!doctype\s+html|<html[\s>])/i.test(head)) return 'html';
  if (looksLikeMail(head)) return 'mail';
  return undefined;
}

/**
 * Whether the text starts with three or more mail headers, one of them about the sender, the route or the structure.
 */
function looksLikeMail(head: string): boolean {
  const top = head.replace(/^From [^\n]*\n/, '').split(/\r?\n\r?\n/, 1)[0] ?? '';
  const lines = top.split(/\r?\n/);
  const names = lines
    .filter((line) => /^[A-Za-z][A-Za-z0-9-]*:/.test(line))
    .map((line) => line.slice(0, line.indexOf(':')).toLowerCase());
  const wellFormed = lines.every(
    (line, index) => /^[A-Za-z][A-Za-z0-9-]*:/.test(line) || (index > 0 && /^[ \t]/.test(line)),
  );
  const telling = ['from', 'received', 'return-path', 'message-id', 'mime-version', 'delivered-to', 'x-sender'];
  const known = names.filter(
    (name) => telling.includes(name) || ['to', 'subject', 'date', 'content-type', 'cc'].includes(name),
  );
  return known.length >= 3 && names.some((name) => telling.includes(name)) && (wellFormed || head.length >= 16_000);
}

function mailByName(input: DetectInput): DocumentKind | undefined {
  return extensionOf(input.filename) === 'eml' ? 'mail' : undefined;
}

const kindOfExtension: Record<string, DocumentKind> = {
  html: 'html',
  htm: 'html',
  xhtml: 'html',
  md: 'markdown',
  markdown: 'markdown',
  mdx: 'markdown',
  csv: 'csv',
  tsv: 'csv',
  tab: 'csv',
  json: 'json',
  jsonl: 'json',
  ndjson: 'json',
  geojson: 'json',
  ipynb: 'ipynb',
  xml: 'xml',
  svg: 'xml',
  rss: 'xml',
  atom: 'xml',
  eml: 'mail',
  mbox: 'mail',
  txt: 'text',
  text: 'text',
  log: 'text',
  rst: 'text',
  srt: 'text',
  vtt: 'text',
};

/** Extensions of source code, which is kept in a fence that names the language. */
export const codeLanguages: Record<string, string> = {
  js: 'javascript',
  mjs: 'javascript',
  ts: 'typescript',
  tsx: 'tsx',
  jsx: 'jsx',
  py: 'python',
  rb: 'ruby',
  go: 'go',
  rs: 'rust',
  java: 'java',
  kt: 'kotlin',
  c: 'c',
  h: 'c',
  cpp: 'cpp',
  cs: 'csharp',
  php: 'php',
  sh: 'sh',
  sql: 'sql',
  css: 'css',
  yaml: 'yaml',
  yml: 'yaml',
  toml: 'toml',
  ini: 'ini',
};

function kindByName(filename: string | undefined): DocumentKind | undefined {
  const extension = extensionOf(filename);
  if (Object.hasOwn(codeLanguages, extension)) return 'code';
  return Object.hasOwn(kindOfExtension, extension) ? kindOfExtension[extension] : undefined;
}

function kindByType(contentType: string | undefined): DocumentKind | undefined {
  const type = contentType?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (type === 'text/markdown' || type === 'text/x-markdown') return 'markdown';
  if (type === 'text/csv' || type === 'text/tab-separated-values') return 'csv';
  if (type === 'message/rfc822') return 'mail';
  if (type === 'application/x-ipynb+json') return 'ipynb';
  if (type === 'application/json' || type.endsWith('+json')) return 'json';
  if (type === 'application/xml' || type === 'text/xml' || type.endsWith('+xml')) return 'xml';
  return undefined;
}

/** Guesses from the text itself, for a file without a name or type. */
function shapeOfText(head: string): DocumentKind | undefined {
  if (
    /^<(?:head|body|div|table|p|h[1-6]|article|section|ul|ol|meta|title|span|a|b|strong|em|img|br)\b[^>]*>/i.test(head)
  )
    return 'html';
  if (/^\{\s*"(?:cells|worksheets|nbformat(?:_minor)?)"\s*:/.test(head)) return 'ipynb';
  if (/^[{[]\s*(?:["{[\]}\d-]|true|false|null)/.test(head)) return 'json';
  if (/^<[A-Za-z][\w:.-]*(?:\s[^<>]*)?>/.test(head)) return 'xml';
  if (/^#{1,6} \S/m.test(head) && /\n/.test(head)) return 'markdown';
  return undefined;
}
