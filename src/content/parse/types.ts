import { parseLimits } from './limits.ts';

/**
 * The input of a document parser. The type is determined by the bytes, otherwise by the name, otherwise by the
 * claimed type.
 */
export type ParseInput = {
  bytes: Uint8Array;
  filename?: string;
  contentType?: string;
  /** For a fetched document: its Content-Encoding header, and its size limit after decoding. */
  contentEncoding?: string;
  decodedBytesMax?: number;
  url?: string;
  /** HTML that is all text of a document, without what surrounds the text of a page. */
  isWhole?: boolean;
};

/** A document as Markdown, with the file's own metadata. Dates are ISO 8601. */
export type ParsedDocument = {
  markdown: string;
  /** The detected format: `pdf`, `docx`, `csv`, … */
  kind: string;
  /** The extractor that read the document. Absent if it was this program. */
  reader?: string;
  title?: string;
  language?: string;
  author?: string;
  created?: string;
  modified?: string;
  /** Pages of a PDF, slides of a presentation, sheets of a workbook. */
  pages?: number;
  /** The names of files inside the document, such as attachments of a mail. */
  attachments?: string[];
  /** The attachments of a mail, and of the mails attached to it, as separate documents. */
  parts?: ParsedPart[];
  /** For a web page: its type, and the facts in its metadata. */
  page?: PageReport;
  /** Present if the text of pages or pictures was recognised by OCR. */
  ocr?: OcrReport;
  /** Describes the parts that are missing because the document is too large. Absent if it is complete. */
  truncated?: string[];
  /** What Markdown or plain text that came from a URL links to. */
  links?: string[];
};

/** An attachment: its text, or why it has none. It has no parts itself: those of an attached mail follow it. */
export type ParsedPart = { name: string } & (
  | { document: ParsedDocument; error?: never }
  | { document?: never; error: { code: string; message: string } }
);

/** A file inside a document, before it is read. */
export type Attached = { name: string; byteLength: number } & (
  | { contentType: string; bytes: Uint8Array; read?: never }
  /** A message within a message has no bytes of its own. */
  | { read: () => ReadDocument; bytes?: never }
);

/** A document, with the files in it that have not been read yet. */
export type ReadDocument = ParsedDocument & { attached?: Attached[] };

export type PageReport = { page_type: string; structured: Record<string, string> };

/** What was read by OCR: the numbers of the pages, and the engine's confidence in their characters, from 0 to 1. */
export type OcrReport = { pages: number[]; confidence: number };

export type ImageSize = { width: number; height: number };

/** The formats that small pictures are written in. */
export const pictureFormats = ['webp', 'jpeg', 'png'] as const;
export type PictureFormat = (typeof pictureFormats)[number];

export type ParseFailure = 'unsupported_content' | 'extraction_failed' | 'timeout';

/** A document that cannot be converted to Markdown. The message is for the sender. */
export class ParseError extends Error {
  readonly reason: ParseFailure;
  /** The specific problem if known, otherwise the reason. */
  readonly code: ParseFailure | 'needs_browser';

  constructor(reason: ParseFailure, message: string, options: { cause?: unknown; code?: 'needs_browser' } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ParseError';
    this.reason = reason;
    this.code = options.code ?? reason;
  }
}

export function unsupported(message: string): ParseError {
  return new ParseError('unsupported_content', message);
}

/** The error for a page without text that its scripts would render. */
export function needsBrowser(): ParseError {
  const message = 'The page has no text: its scripts render it, which requires a browser.';
  return new ParseError('extraction_failed', message, { code: 'needs_browser' });
}

export function failed(message: string, cause?: unknown): ParseError {
  return new ParseError('extraction_failed', message, { cause });
}

/** Throws if a document exceeds the limit of Markdown characters. Checked while the text is built, not afterwards. */
export function requireTextSize(characters: number): void {
  if (characters > parseLimits.markdownCharactersMax)
    throw failed('The document contains more than 32 million characters of text.');
}
