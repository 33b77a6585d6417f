import { Type } from 'typebox';
import { strict } from '../../http/route/route.ts';
import { AppError } from '../../lib/errors.ts';
import { textInBase64 } from '../long-arguments.ts';
import { defineTool, pageInput, pageOutput, readUtf8, requireOneOf, type Tool, toolLimits } from '../tool.ts';

type StoredFile = { id: string; filename: string; content_type: string; size: number };

type UploadPage = { data: Upload[]; page: number; total_pages: number; total_entries: number };
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

const readFile = defineTool({
  name: 'read_file',
  title: 'Read a text file',
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
    const { data, page, total_pages, total_entries } = await api<UploadPage>('GET', '/api/v1/uploads', { query });
    const uploads = data.map(({ id, filename, content_type, offset, length, expires_at }) => {
      return { upload: id, filename, content_type, stored: offset, size: length, expires_at };
    });
    return { data: { uploads, page, total_pages, total_entries } };
  },
});

function notText(type: string): AppError {
  const message = `is not text but ${type}: use extract_file`;
  return new AppError('invalid_parameters', `file: ${message}`, { fields: [{ field: 'file', message }] });
}

function present({ id, filename, content_type, size }: StoredFile) {
  return { file: id, filename, content_type, size };
}

export const fileTools: readonly Tool[] = [uploadFile, readFile, listUploads];
