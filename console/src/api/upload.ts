import { readError, sessionHeaders, unreachable, urlOf } from './client.ts';
import type { File as StoredFile } from './generated.ts';

/**
 * Sends a file with XMLHttpRequest, because only that reports upload progress.
 * @param onProgress the part that was sent, from 0 to 1
 */
export function uploadFile(
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

/** Types whose extension browsers do not know. */
function guessType(name: string): string {
  const ending = name.toLowerCase().split('.').at(-1) ?? '';
  return (
    { md: 'text/markdown', markdown: 'text/markdown', jsonl: 'application/x-ndjson', log: 'text/plain' }[ending] ??
    'application/octet-stream'
  );
}
