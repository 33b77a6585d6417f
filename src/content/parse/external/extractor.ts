import { randomUUID } from 'node:crypto';
import { Slots } from '../../../fairness/slots.ts';
import {
  openServiceAgent,
  parseServiceJson,
  readBounded,
  type ServiceFailure,
  sendToService,
} from '../../models/service.ts';
import type { DocumentKind } from '../detect.ts';

/*
 * A server that reads documents of chosen types instead of this program: docling-serve or Apache Tika. It is the
 * operator's, so its address may be private; what it returns comes from the document, so it is as untrusted as that. Its
 * HTML is read in a parser process like an uploaded file.
 */

const extractorKinds = ['docling', 'tika'] as const;

/** The types of documents that an extractor may read, with a name and a media type by which it recognises them. */
const extractedTypes = {
  pdf: { extension: 'pdf', mediaType: 'application/pdf' },
  docx: {
    extension: 'docx',
    mediaType: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  },
  pptx: {
    extension: 'pptx',
    mediaType: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  },
  xlsx: { extension: 'xlsx', mediaType: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet' },
  odt: { extension: 'odt', mediaType: 'application/vnd.oasis.opendocument.text' },
  ods: { extension: 'ods', mediaType: 'application/vnd.oasis.opendocument.spreadsheet' },
  odp: { extension: 'odp', mediaType: 'application/vnd.oasis.opendocument.presentation' },
  epub: { extension: 'epub', mediaType: 'application/epub+zip' },
  rtf: { extension: 'rtf', mediaType: 'application/rtf' },
  image: { extension: 'png', mediaType: 'application/octet-stream' },
} as const satisfies Partial<Record<DocumentKind, { extension: string; mediaType: string }>>;

type ExtractedType = keyof typeof extractedTypes;

export type Extractor = {
  readonly name: (typeof extractorKinds)[number];
  reads(kind: string): kind is ExtractedType;
  /** Returns the document as HTML, or why the extractor has none. Rejects only with the reason of `signal`. */
  read(
    kind: ExtractedType,
    bytes: Uint8Array,
    options: { lane: string; timeMs: number; signal?: AbortSignal | undefined },
  ): Promise<{ html: string } | { problem: string }>;
};

type ExtractorSettings = {
  extractorUrl: string | undefined;
  extractorKind: (typeof extractorKinds)[number];
  extractorTypes: string[];
  extractorKey: string | undefined;
  extractorSeconds: number;
};

/** The name under which an extractor gets every document, which it may return as the title. */
export const documentName = 'document';
/** Concurrent documents of one app, and the same number for all other apps together. */
const documentsMax = 4;
/** As much as the text of a document may have. */
const responseBytesMax = 32 * 1024 * 1024;

/** The configured extractor; undefined without one. */
export function openExtractor(settings: ExtractorSettings): Extractor | undefined {
  const { extractorUrl, extractorKind, extractorTypes, extractorKey, extractorSeconds } = settings;
  if (extractorUrl === undefined) return undefined;
  const agent = openServiceAgent();
  const slots = new Slots({ slots: 2 * documentsMax, tooMany: () => new Error('Too many documents wait.') });
  const prepare = extractorKind === 'docling' ? doclingRequest : tikaRequest;
  const types = new Set(extractorTypes);
  return {
    name: extractorKind,
    reads: (kind): kind is ExtractedType => types.has(kind) && kind in extractedTypes,
    async read(kind, bytes, { lane, timeMs, signal }) {
      const deadline = AbortSignal.timeout(Math.min(timeMs, extractorSeconds * 1000));
      const either = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
      const { path, accept, readHtml, ...request } = prepare(kind, bytes, extractorKey);
      try {
        const body = await slots.run(
          lane,
          () => exchange({ ...request, url: `${extractorUrl}${path}`, dispatcher: agent(), signal: either }, accept),
          either,
        );
        const html = typeof body === 'string' ? readHtml(body) : body;
        return typeof html === 'string' ? { html } : { problem: html?.reason ?? 'It returned no text.' };
      } catch (error) {
        signal?.throwIfAborted();
        return { problem: deadline.aborted ? 'It took too long.' : String(error) };
      }
    },
  };
}

type Exchange = Omit<Parameters<typeof sendToService>[0], 'signal'> & { signal: AbortSignal };

/** The body of a response of the expected type. Redirects are not followed. */
async function exchange(request: Exchange, accept: RegExp): Promise<string | ServiceFailure> {
  const response = await sendToService(request);
  const type = String(response.headers['content-type'] ?? '');
  const isUsable = response.statusCode === 200 && accept.test(type);
  const body = await readBounded(response, 'extractor', isUsable ? responseBytesMax : 64 * 1024);
  if (isUsable || typeof body !== 'string') return body;
  const what = response.statusCode === 200 ? `the type "${type.slice(0, 100)}"` : `status ${response.statusCode}`;
  return { retryMs: undefined, reason: `It returned ${what}.`, cause: undefined };
}

type Prepared = Pick<Exchange, 'method' | 'headers' | 'body'> & {
  path: string;
  /** The media type of a usable response. */
  accept: RegExp;
  /** The HTML in the body of the response; undefined if it holds none. */
  readHtml(body: string): string | undefined;
};

/** docling-serve: a form with the file, and JSON with the document in the requested formats. */
function doclingRequest(kind: ExtractedType, bytes: Uint8Array, key: string | undefined): Prepared {
  const { extension, mediaType } = extractedTypes[kind];
  const boundary = `quarry-${randomUUID()}`;
  const part = (disposition: string, type = ''): string =>
    `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n${type}\r\n`;
  const field = (name: string, value: string): string => `${part(`name="${name}"`)}${value}\r\n`;
  const head = `${field('to_formats', 'html')}${field('image_export_mode', 'placeholder')}${field('abort_on_error', 'true')}${part(`name="files"; filename="${documentName}.${extension}"`, `Content-Type: ${mediaType}\r\n`)}`;
  return {
    path: '/v1/convert/file',
    method: 'POST',
    headers: {
      accept: 'application/json',
      'content-type': `multipart/form-data; boundary=${boundary}`,
      ...(key === undefined ? {} : { 'x-api-key': key }),
    },
    body: Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]),
    accept: /^application\/json\b/i,
    readHtml(body) {
      const { status, document } = (parseServiceJson(body) ?? {}) as Record<string, unknown>;
      const html = (document as Record<string, unknown> | undefined | null)?.html_content;
      // Part of a document is worse than what this program reads of it.
      return status === 'success' && typeof html === 'string' ? html : undefined;
    },
  };
}

/** Apache Tika's server: the file itself, and the document as XHTML. */
function tikaRequest(kind: ExtractedType, bytes: Uint8Array, key: string | undefined): Prepared {
  const { extension, mediaType } = extractedTypes[kind];
  return {
    path: '/tika',
    method: 'PUT',
    headers: {
      accept: 'text/html',
      'content-type': mediaType,
      ...(kind === 'image' ? {} : { 'content-disposition': `attachment; filename="${documentName}.${extension}"` }),
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    },
    body: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    accept: /^(?:text\/html|application\/xhtml\+xml)\b/i,
    readHtml: (body) => body,
  };
}
