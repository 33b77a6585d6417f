import type { Readable } from 'node:stream';
import { Upload, type UploadOptions } from 'tus-js-client';
import type { ApiOptions, ApiResponse } from './server.ts';

type UploadBody = {
  id: string;
  file: string;
  state: 'uploading' | 'finished';
  filename: string;
  content_type: string;
  offset: number;
  length: number;
  user?: string;
  sandbox?: string;
  created_at: string;
  expires_at: string;
};

/** A header Upload-Metadata. */
export function metadataOf(members: Record<string, string>): string {
  return Object.entries(members)
    .map(([name, text]) => `${name} ${Buffer.from(text).toString('base64')}`)
    .join(',');
}

export const tus = { 'tus-resumable': '1.0.0' };
/** The headers that create an upload of one byte. */
export function uploadHeaders(members: Record<string, string>): Record<string, string> {
  return { ...tus, 'upload-length': '1', 'upload-metadata': metadataOf(members) };
}
export const offsetType = { 'content-type': 'application/offset+octet-stream' };

type Send = <T>(method: string, path: string, options?: ApiOptions) => Promise<ApiResponse<T>>;
type Who = Pick<ApiOptions, 'key' | 'token'>;

/** Sends the requests of tus one by one. */
export function uploadRequests(api: Send) {
  return {
    create: <T = UploadBody>(
      who: Who,
      length: number | string,
      members: Record<string, string> = {},
      options: ApiOptions = {},
    ) =>
      api<T>('POST', '/api/v1/uploads', {
        ...who,
        ...options,
        headers: {
          ...tus,
          'upload-length': String(length),
          'upload-metadata': metadataOf({ filename: 'a.bin', content_type: 'application/octet-stream', ...members }),
          ...(options.body === undefined ? {} : offsetType),
          ...options.headers,
        },
      }),
    append: <T = undefined>(
      who: Who,
      id: string,
      offset: number | string,
      body: Uint8Array | string,
      headers: Record<string, string> = {},
    ) =>
      api<T>('PATCH', `/api/v1/uploads/${id}`, {
        ...who,
        body,
        headers: { ...tus, ...offsetType, 'upload-offset': String(offset), ...headers },
      }),
    head: (who: Who, id: string) => api('HEAD', `/api/v1/uploads/${id}`, { ...who, headers: tus }),
  };
}

/** Uploads with the official client. Resolves with the id of the file. */
export function uploadWithClient(
  file: Buffer | Readable,
  options: UploadOptions & { onBegin?: (upload: Upload) => void },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const upload = new Upload(file as never, {
      retryDelays: Array.from({ length: 60 }, () => 20),
      ...options,
      onError: reject,
      onSuccess: ({ lastResponse }) => resolve(lastResponse.getHeader('x-file') ?? ''),
    });
    options.onBegin?.(upload);
    upload.start();
  });
}
