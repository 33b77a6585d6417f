import type { HttpResponse } from 'tus-js-client';
import { call, readError, sessionHeaders, unreachable, urlOf } from './client.ts';
import type { StoredFile } from './generated.ts';

/** Larger files are sent as resumable uploads, so that a broken connection does not restart them. */
const resumableBytesMin = 32 * 1024 * 1024;
/** The waits before the next attempts while no byte arrives. */
const retryMs = [0, 1_000, 3_000, 5_000, 10_000, 20_000, 30_000];

/**
 * Sends a file.
 * @param onProgress receives the share that was sent, from 0 to 1
 */
export function uploadFile(
  file: File,
  query: Record<string, string | undefined>,
  onProgress: (part: number) => void,
  signal: AbortSignal,
): Promise<StoredFile> {
  const upload = file.size < resumableBytesMin ? uploadWhole : uploadResumably;
  return upload(file, query, onProgress, signal);
}

/** Uploads by tus. Continues an unfinished upload of the same file, even from a page that was closed. */
async function uploadResumably(
  file: File,
  query: Record<string, string | undefined>,
  onProgress: (part: number) => void,
  signal: AbortSignal,
): Promise<StoredFile> {
  const { DetailedError, Upload } = await import('tus-js-client');
  const metadata = { filename: file.name, content_type: file.type || guessType(file.name) };
  const last = await new Promise<HttpResponse>((resolve, reject) => {
    const upload = new Upload(file, {
      endpoint: urlOf('/api/v1/uploads', {}, {}),
      headers: sessionHeaders('/api/v1/uploads'),
      metadata: { ...metadata, ...(query.org === undefined ? {} : { org: query.org }) },
      retryDelays: retryMs,
      removeFingerprintOnSuccess: true,
      onProgress: (sent, total) => onProgress(total === null ? 0 : sent / total),
      onSuccess: ({ lastResponse }) => resolve(lastResponse),
      onError(error) {
        const response = error instanceof DetailedError ? error.originalResponse : null;
        reject(response ? readError(response.getStatus(), response.getBody()) : unreachable());
      },
    });
    signal.addEventListener(
      'abort',
      () => {
        // Deletes its bytes. If that fails, they expire.
        void upload.abort(true).catch(() => {});
        reject(new DOMException('The upload was cancelled.', 'AbortError'));
      },
      { once: true },
    );
    void upload.findPreviousUploads().then(([previous]) => {
      if (signal.aborted) return;
      if (previous) upload.resumeFromPreviousUpload(previous);
      upload.start();
    }, reject);
  });
  return call('GET /api/v1/files/{file}', { path: { file: last.getHeader('x-file') ?? '' } });
}

/** Uses XMLHttpRequest, because only that reports upload progress. */
function uploadWhole(
  file: File,
  query: Record<string, string | undefined>,
  onProgress: (part: number) => void,
  signal: AbortSignal,
): Promise<StoredFile> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', urlOf('/api/v1/files/uploads', {}, query));
    for (const [name, value] of Object.entries(sessionHeaders('/api/v1/files/uploads')))
      request.setRequestHeader(name, value);
    request.setRequestHeader('content-type', file.type || guessType(file.name));
    request.setRequestHeader('x-filename', encodeURIComponent(file.name));
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 1 : loaded / total);
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText));
      else
        reject(readError(request.status, request.responseText, request.getResponseHeader('x-request-id') ?? undefined));
    };
    request.onerror = () => reject(unreachable());
    request.onabort = () => reject(new DOMException('The upload was cancelled.', 'AbortError'));
    signal.addEventListener('abort', () => request.abort(), { once: true });
    request.send(file);
  });
}

/** The type of a file whose extension browsers do not know. */
function guessType(name: string): string {
  const ending = name.toLowerCase().split('.').at(-1) ?? '';
  return (
    { md: 'text/markdown', markdown: 'text/markdown', jsonl: 'application/x-ndjson', log: 'text/plain' }[ending] ??
    'application/octet-stream'
  );
}
