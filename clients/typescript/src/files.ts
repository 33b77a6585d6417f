import type { CallOptions, Connection } from './connection.ts';
import { QuarryError } from './errors.ts';
import { files as operations } from './generated/files.ts';
import type { StoredFile, Upload } from './generated/schema.ts';
import { pause } from './wait.ts';

/** What to upload: a path (not in browsers), a Blob or File, or a stream of a known `size`. */
export type UploadSource = string | Blob | ReadableStream<Uint8Array>;

export type UploadOptions = CallOptions & {
  /** Default: the name of the File, or the last part of the path. */
  filename?: string;
  /** Default: the type of the Blob, or `application/octet-stream`. */
  contentType?: string;
  /** The size of a stream in bytes. */
  size?: number;
  /** Owners of the file, the run that makes it, and whether an image gets a public URL. */
  owner?: { agent?: string; org?: string; team?: string; user?: string; automation_run?: string; share?: boolean };
  /** Called whenever more bytes are stored. */
  onProgress?: (stored: number, size: number) => void;
};

/** Larger files are sent in pieces, each of which is repeated alone when the connection breaks. */
const wholeBytesMax = 8 * 1024 * 1024;
const pieceBytes = 8 * 1024 * 1024;
const attemptsMax = 8;

/** Upload, update, sharing and download. */
export const files = (c: Connection) => {
  const own = operations(c);
  return {
    ...own,
    /** Stores a file. Files over 8 MiB resume after a broken connection. */
    async upload(source: UploadSource, options: UploadOptions = {}): Promise<StoredFile> {
      const given = await open(source, options);
      if (given.data instanceof Blob && given.data.size > wholeBytesMax)
        return uploadInPieces(c, given.data, given, options);
      const { filename, contentType, size } = given;
      const headers = { ...options.headers, 'x-filename': encodeURIComponent(filename) };
      const request = {
        ...{ method: 'POST', path: '/api/v1/files/uploads', query: options.owner, keyed: true },
        bytes: { data: given.data, type: contentType },
      };
      const response = await c.request(request, { ...options, headers });
      options.onProgress?.(size, size);
      return (await response.json()) as StoredFile;
    },
    /** The contents of a file, or a part of them: `range` is such as `bytes=0-1023`. */
    async content(file: string, options: CallOptions & { range?: string } = {}): Promise<Response> {
      const { url } = await own.get(file, undefined, options);
      const { pathname, search } = new URL(url);
      // By way of the connection, whose base URL the caller can reach.
      const headers = { ...options.headers, range: options.range };
      return c.request({ method: 'GET', path: pathname + search }, { ...options, headers }, false);
    },
  };
};

type Opened = { data: Blob | ReadableStream<Uint8Array>; filename: string; contentType: string; size: number };

async function open(source: UploadSource, options: UploadOptions): Promise<Opened> {
  const data = typeof source === 'string' ? await openPath(source) : source;
  const named = typeof source === 'string' ? source.split(/[\\/]/).at(-1) : (source as { name?: string }).name;
  const filename = options.filename ?? named;
  const size = data instanceof Blob ? data.size : options.size;
  if (!filename) throw new TypeError('Give the upload a filename.');
  if (size === undefined) throw new TypeError('Give the size of the stream in bytes.');
  const type = data instanceof Blob ? data.type : '';
  return { data, filename, contentType: options.contentType || type || 'application/octet-stream', size };
}

/** Opens a file without reading it, in runtimes that have a file system. No import: bundles for browsers have none. */
async function openPath(name: string): Promise<Blob> {
  type Runtime = { getBuiltinModule?(id: string): { openAsBlob(path: string): Promise<Blob> } };
  const { process } = globalThis as { process?: Runtime };
  if (process?.getBuiltinModule === undefined) throw new TypeError('This runtime has no files: pass a Blob.');
  return process.getBuiltinModule('node:fs').openAsBlob(name);
}

/** Uploads by tus: creates an upload, and appends pieces to what is stored. */
async function uploadInPieces(
  c: Connection,
  data: Blob,
  { filename, contentType }: Opened,
  options: UploadOptions,
): Promise<StoredFile> {
  const { size } = data;
  const { share, ...owner } = options.owner ?? {};
  const members = {
    filename,
    content_type: contentType,
    ...owner,
    ...(share === undefined ? {} : { share: String(share) }),
  };
  const metadata = Object.entries(members).map(([name, value]) => `${name} ${base64(value)}`);
  const tus = { ...options.headers, 'tus-resumable': '1.0.0' };
  const empty = { data: new Blob([]), type: 'application/offset+octet-stream' };
  const created = await c.request(
    { method: 'POST', path: '/api/v1/uploads', bytes: empty, keyed: true },
    { ...options, headers: { ...tus, 'upload-length': String(size), 'upload-metadata': metadata.join(',') } },
  );
  const { id, file } = (await created.json()) as Upload;
  const path = `/api/v1/uploads/${id}`;
  let offset = 0;
  for (let failures = 0; offset < size; ) {
    try {
      const piece = { data: data.slice(offset, offset + pieceBytes), type: 'application/offset+octet-stream' };
      const headers = { ...tus, 'upload-offset': String(offset) };
      const { headers: state } = await c.request(
        { method: 'PATCH', path, bytes: piece },
        { ...options, headers, retries: 0 },
      );
      offset = Number(state.get('upload-offset'));
      failures = 0;
      options.onProgress?.(offset, size);
    } catch (error) {
      options.signal?.throwIfAborted();
      if (++failures >= attemptsMax || !canResume(error)) throw error;
      await pause(250 * 2 ** failures, options.signal);
      offset = await storedBytes(c, id, options);
    }
  }
  return c.get(`/api/v1/files/${file}`, undefined, options);
}

/** What the server has of an upload, after a broken piece. */
async function storedBytes(c: Connection, id: string, options: CallOptions): Promise<number> {
  const { offset } = await c.get<Upload>(`/api/v1/uploads/${id}`, undefined, options);
  return offset;
}

/** A piece that did not arrive, or that another attempt still holds. */
function canResume(error: unknown): boolean {
  if (!(error instanceof QuarryError)) return false;
  const { status, code } = error;
  return status === undefined
    ? code !== 'signed_out'
    : status === 409 || status === 423 || status === 429 || status >= 500;
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
