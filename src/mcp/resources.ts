import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { defined } from '../lib/defined.ts';
import { type ApiClient, ApiError } from './api-client.ts';
import type { ToolContext } from './tool.ts';

/** Documents and files as resources: `quarry://documents/cdo_…` and `quarry://files/fil_…`. */

type Page<T> = { data: T[]; page: number; total_pages: number };
type Document = { id: string; title?: string; source_url?: string; total_size: number };
type StoredFile = { id: string; filename: string; content_type: string; size: number };
type Content = { content: string; total_size: number; end_byte?: number };

const pageSize = 50;
/** A client gives a whole resource to its model, so larger ones are read in parts with tools. */
const resourceBytesMax = 256 * 1024;
const kinds = ['documents', 'files'] as const;
type Kind = (typeof kinds)[number];

export const resourceTemplates = [
  {
    uriTemplate: 'quarry://documents/{document}',
    name: 'document',
    title: 'Document',
    description: 'The text of a knowledge document, by its id (cdo_…).',
    mimeType: 'text/markdown',
  },
  {
    uriTemplate: 'quarry://files/{file}',
    name: 'file',
    title: 'File',
    description: 'The bytes of a file, by its id (fil_…).',
  },
];

/** A page of documents, then pages of files, newest first. */
export async function listResources(api: ApiClient, cursor: string | undefined) {
  const { kind, page } = readCursor(cursor);
  const query = { page, page_size: pageSize };
  const found =
    kind === 'documents'
      ? await api<Page<Document>>('GET', '/api/v1/knowledge_documents', { query })
      : await api<Page<StoredFile>>('GET', '/api/v1/files', { query });
  const resources = found.data.map((each) => ('filename' in each ? describeFile(each) : describeDocument(each)));
  const next = page < found.total_pages ? `${kind}/${page + 1}` : kind === 'documents' ? 'files/1' : undefined;
  return { resources, ...defined({ nextCursor: next }) };
}

/** The contents of a resource. Throws ProtocolError if it is not visible, or too large to be read whole. */
export async function readResource({ api, readFile }: Pick<ToolContext, 'api' | 'readFile'>, uri: string) {
  const [, kind, id = ''] = /^quarry:\/\/(documents|files)\/(\w+)$/.exec(uri) ?? [];
  if (kind === undefined) throw notFound(uri);
  try {
    return {
      contents: [kind === 'documents' ? await readDocument(api, uri, id) : await readBytes({ api, readFile }, uri, id)],
    };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) throw notFound(uri);
    if (error instanceof ApiError) throw new ProtocolError(ProtocolErrorCode.InvalidParams, error.message);
    throw error;
  }
}

async function readDocument(api: ApiClient, uri: string, id: string) {
  const path = `/api/v1/knowledge_documents/${id}/content`;
  const found = await api<Content>('GET', path, { query: { unit: 'bytes', offset: 0, limit: resourceBytesMax } });
  requireSmall(found.total_size, `read_document with document ${id}`);
  return { uri, mimeType: 'text/markdown', text: found.content };
}

async function readBytes({ api, readFile }: Pick<ToolContext, 'api' | 'readFile'>, uri: string, id: string) {
  const file = await api<StoredFile>('GET', `/api/v1/files/${id}`);
  requireSmall(file.size, `read_file with file ${id}`);
  const bytes = await readFile(id, 0, file.size);
  const mimeType = file.content_type;
  const isText = /^text\/|[/+](?:json|xml|yaml)\b/.test(mimeType);
  return isText ? { uri, mimeType, text: bytes.toString('utf8') } : { uri, mimeType, blob: bytes.toString('base64') };
}

function requireSmall(bytes: number, tool: string): void {
  if (bytes <= resourceBytesMax) return;
  const words = `This resource has ${bytes} bytes, more than ${resourceBytesMax}. Read it in parts: call ${tool}.`;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, words);
}

function describeDocument({ id, title, source_url: url, total_size: size }: Document) {
  const uri = `quarry://documents/${id}`;
  return {
    uri,
    name: title ?? id,
    ...defined({ description: url }),
    mimeType: 'text/markdown',
    size,
  };
}

function describeFile({ id, filename, content_type: mimeType, size }: StoredFile) {
  return { uri: `quarry://files/${id}`, name: filename, mimeType, size };
}

function readCursor(cursor: string | undefined): { kind: Kind; page: number } {
  const [, kind, page] = /^(documents|files)\/([1-9]\d{0,5})$/.exec(cursor ?? 'documents/1') ?? [];
  if (kind === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'cursor: is not one of this list');
  return { kind: kind as Kind, page: Number(page) };
}

function notFound(uri: string): ProtocolError {
  return new ProtocolError(
    ProtocolErrorCode.ResourceNotFound,
    `The resource ${uri} does not exist, or you may not see it.`,
    {
      uri,
    },
  );
}
