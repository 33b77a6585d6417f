import { strict } from '../../http/route/route.ts';
import { AppError } from '../../lib/errors.ts';
import { Type } from '../../lib/type.ts';
import { textInBase64 } from '../long-arguments.ts';
import {
  defineTool,
  type Page,
  pageInput,
  pageOf,
  pageOutput,
  readUtf8,
  requireOneOf,
  type Tool,
  toolLimits,
} from '../tool.ts';

type StoredFile = { id: string; filename: string; content_type: string; size: number };
type UploadLink = { file: string; method: string; url: string; expires_at: string };

type Upload = {
  id: string;
  filename: string;
  content_type: string;
  offset: number;
  length: number;
  expires_at: string;
};

const fileMembers = {
  file: Type.String({ description: 'fil_…' }),
  filename: Type.String(),
  content_type: Type.String(),
  size: Type.Integer({ description: 'Bytes.' }),
};

const uploadFile = defineTool({
  name: 'upload_file',
  title: 'Upload a file',
  operation: 'createFile',
  description: 'Stores text or bytes as a file and returns its id. Pass the id to ingest, extract_file or read_file.',
  hints: { reads: false },
  input: strict({
    filename: Type.String({ minLength: 1, maxLength: 500 }),
    text: Type.Optional(Type.String({ description: 'The content as text; required unless data is given.' })),
    data: Type.Optional(Type.String({ description: 'The content in base64; required unless text is given.' })),
    content_type: Type.Optional(
      Type.String({ maxLength: 255, description: 'Default text/plain for text, application/octet-stream for data.' }),
    ),
    agent: Type.Optional(Type.String({ description: 'agt_…; the agent that owns the file.' })),
    org: Type.Optional(Type.String({ description: 'org_…; the organisation that owns it.' })),
  }),
  output: Type.Object(fileMembers),
  async run({ text, data, content_type: type, ...rest }, { api }) {
    requireOneOf(['text', 'data'], text, data);
    const body = {
      ...rest,
      content_type: type ?? (text === undefined ? 'application/octet-stream' : 'text/plain'),
      data: data ?? textInBase64(text ?? ''),
    };
    return { data: present(await api<StoredFile>('POST', '/api/v1/files', { body })) };
  },
});

const linkSecondsDefault = 600;

const createUploadUrl = defineTool({
  name: 'create_upload_url',
  title: 'Create an upload link',
  description:
    'Returns a URL that accepts one PUT of the bytes of a file, without a credential, until it expires. Prefer it to upload_file for anything but short texts: send the bytes with a program, for example curl -T report.pdf URL. Then pass the id to ingest, extract_file or read_file.',
  operation: 'createFileUploadUrl',
  hints: { reads: false },
  input: strict({
    filename: Type.String({ minLength: 1, maxLength: 500 }),
    content_type: Type.Optional(Type.String({ maxLength: 255, description: 'Default application/octet-stream.' })),
    size: Type.Optional(Type.Integer({ minimum: 0, description: 'Maximum number of bytes.' })),
    expires_in: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 3_600, description: `Seconds. Default ${linkSecondsDefault}.` }),
    ),
    agent: Type.Optional(Type.String({ description: 'agt_…; the agent that owns the file.' })),
    org: Type.Optional(Type.String({ description: 'org_…; the organisation that owns it.' })),
  }),
  output: Type.Object({
    file: Type.String({ description: 'fil_…; the id that the file will have.' }),
    method: Type.String(),
    url: Type.String({ description: 'Accepts the bytes once.' }),
    expires_at: Type.String(),
  }),
  async run({ content_type: type = 'application/octet-stream', expires_in: seconds, ...rest }, { api }) {
    const body = { ...rest, content_type: type, expires_in: seconds ?? linkSecondsDefault };
    const { file, method, url, expires_at } = await api<UploadLink>('POST', '/api/v1/files/upload_urls', { body });
    return { data: { file, method, url, expires_at } };
  },
});

const listFiles = defineTool({
  name: 'list_files',
  title: 'List files',
  description: 'Lists the files visible to you, newest first. Pass their ids to read_file, extract_file or ingest.',
  operation: 'listFiles',
  hints: { reads: true },
  input: strict({
    prefix: Type.Optional(Type.String({ maxLength: 500, description: 'Only names that begin with this.' })),
    content_type: Type.Optional(Type.String({ description: 'Only this type, or a family such as image/*.' })),
    page: pageInput,
  }),
  output: Type.Object({
    files: Type.Array(Type.Object({ ...fileMembers, created_at: Type.String() })),
    ...pageOutput,
  }),
  async run(query, { api }) {
    const found = await api<Page<StoredFile & { created_at: string }>>('GET', '/api/v1/files', { query });
    const files = found.data.map((file) => ({ ...present(file), created_at: file.created_at }));
    return { data: { files, ...pageOf(found) } };
  },
});

const readFile = defineTool({
  name: 'read_file',
  title: 'Read a text file',
  operation: 'getFile',
  description:
    'Returns bytes of a stored text file as text. Pass next_offset as offset to continue. Use extract_file for other documents.',
  hints: { reads: true },
  input: strict({
    file: Type.String({ description: 'fil_…' }),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647, description: 'First byte. Default 0.' })),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: toolLimits.textBytesMax,
        description: `Bytes. Default ${toolLimits.textBytesDefault}.`,
      }),
    ),
  }),
  output: Type.Object({
    ...fileMembers,
    content: Type.String(),
    start_byte: Type.Integer(),
    end_byte: Type.Integer(),
    next_offset: Type.Optional(Type.Integer()),
  }),
  async run({ file, offset = 0, limit = toolLimits.textBytesDefault }, context) {
    const found = await context.api<StoredFile>('GET', `/api/v1/files/${encodeURIComponent(file)}`);
    const start = Math.min(offset, found.size);
    const end = Math.min(start + limit, found.size);
    const bytes = start < end ? await context.readFile(found.id, start, end) : Buffer.alloc(0);
    if (bytes.includes(0)) throw notText(found.content_type);
    const { content, ...slice } = readUtf8(bytes, start);
    const next = slice.end < found.size && slice.end > start ? { next_offset: slice.end } : {};
    const data = { ...present(found), content, start_byte: slice.start, end_byte: slice.end, ...next };
    const hint = 'next_offset' in next ? `\n\n[There is more: call read_file with offset ${next.next_offset}.]` : '';
    return { data, text: `${content}${hint}` };
  },
});

const listUploads = defineTool({
  name: 'list_uploads',
  title: 'List unfinished uploads',
  operation: 'listUploads',
  description:
    'Lists the resumable uploads visible to you that are not complete yet, newest first, with the bytes stored so far.',
  hints: { reads: true },
  input: strict({ page: pageInput }),
  output: Type.Object({
    uploads: Type.Array(
      Type.Object({
        upload: Type.String({ description: 'upl_…' }),
        filename: Type.String(),
        content_type: Type.String(),
        stored: Type.Integer({ description: 'Bytes.' }),
        size: Type.Integer({ description: 'Bytes of the whole file.' }),
        expires_at: Type.String(),
      }),
    ),
    ...pageOutput,
  }),
  async run(query, { api }) {
    const found = await api<Page<Upload>>('GET', '/api/v1/uploads', { query });
    const uploads = found.data.map(({ id, filename, content_type, offset, length, expires_at }) => {
      return { upload: id, filename, content_type, stored: offset, size: length, expires_at };
    });
    return { data: { uploads, ...pageOf(found) } };
  },
});

function notText(type: string): AppError {
  const message = `is not text but ${type}: use extract_file`;
  return new AppError('invalid_parameters', `file: ${message}`, { fields: [{ field: 'file', message }] });
}

function present({ id, filename, content_type, size }: StoredFile) {
  return { file: id, filename, content_type, size };
}

export const fileTools: readonly Tool[] = [uploadFile, createUploadUrl, listFiles, readFile, listUploads];
