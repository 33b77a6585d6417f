/** What a document parser is given. The bytes decide the type first, then the name, then the claimed type. */
export type ParseInput = {
  bytes: Uint8Array;
  filename?: string;
  contentType?: string;
  /** Of a document that was fetched: its Content-Encoding header, and how large it may be without it. */
  contentEncoding?: string;
  decodedBytesMax?: number;
  url?: string;
};

/** A document as Markdown, with what the file says about itself. Dates are ISO 8601. */
export type ParsedDocument = {
  markdown: string;
  /** The format that was found: `pdf`, `docx`, `csv`, … */
  kind: string;
  title?: string;
  language?: string;
  author?: string;
  created?: string;
  modified?: string;
  /** Pages of a PDF, slides of a presentation, sheets of a workbook. */
  pages?: number;
  /** Names of files inside the document (mail attachments, embedded files); their contents are not read. */
  attachments?: string[];
  /** Of a web page: its type, and what it states about its subject. */
  page?: PageReport;
  /** What is missing because the document is too large, in words. Absent when it is whole. */
  truncated?: string[];
};

export type PageReport = { page_type: string; structured: Record<string, string> };

/** A page image in Netpbm form, and the placeholder that its text replaces. */
export type Scan = { placeholder: string; image: Uint8Array };
export type ParsedWithScans = ParsedDocument & { scans?: Scan[] };

export type ImageSize = { width: number; height: number };

export type ParseFailure = 'unsupported_content' | 'extraction_failed' | 'timeout';

/** A document that gives no Markdown. The message is in plain words for the person who sent it. */
export class ParseError extends Error {
  readonly reason: ParseFailure;
  /** What exactly is wrong, where that is known; else the reason again. */
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

/** A page without text of its own, which its scripts would draw. */
export function needsBrowser(): ParseError {
  const message = 'The page has no text of its own: its scripts draw it, which needs a browser.';
  return new ParseError('extraction_failed', message, { code: 'needs_browser' });
}

export function failed(message: string, cause?: unknown): ParseError {
  return new ParseError('extraction_failed', message, { cause });
}

/** Bounds of a parse, each with its unit. Memory and time are the pool's; these stop what would merely waste them. */
export const parseLimits = {
  markdownCharactersMax: 32 * 1024 * 1024,
  pdfPagesMax: 10_000,
  zipEntriesMax: 20_000,
  zipEntryBytesMax: 128 * 1024 * 1024,
  zipTotalBytesMax: 256 * 1024 * 1024,
  xmlDepthMax: 512,
  xmlNodesMax: 4_000_000,
  sheetRowsMax: 100_000,
  sheetCellsMax: 1_000_000,
  /** Cells of tables with the empty ones between them, which a small file can have by the billion. */
  tablePlacesMax: 4_000_000,
  imagePixelsMax: 100_000_000,
  mailDepthMax: 8,
  ocrPagesMax: 50,
} as const;

/** Throws when a document gives more characters of Markdown than are kept: while it is built, not when it is done. */
export function requireTextSize(characters: number): void {
  if (characters > parseLimits.markdownCharactersMax)
    throw failed('The document gives more than 32 million characters of text.');
}
