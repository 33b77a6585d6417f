import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import { readMetadata, tusVersion } from './protocol.ts';
import type { UploadRow } from './store.ts';

export function presentUpload(upload: UploadRow) {
  const { filename, content_type } = readMetadata(upload.metadata);
  return compact({
    id: formatId('upload', upload.id),
    file: formatId('file', upload.id),
    state: upload.finishedAt === null ? 'uploading' : 'finished',
    filename,
    content_type,
    offset: upload.received,
    length: upload.length,
    sandbox: presentSandboxId(upload.sandboxId),
    user: upload.userId && formatId('user', upload.userId),
    created_at: iso(upload.createdAt),
    expires_at: iso(upload.expiresAt),
  });
}

/** The headers of tus. `x-file`, the id of the file once it exists, is our own. */
export function uploadHeaders(upload: UploadRow): Record<string, string> {
  return {
    'tus-resumable': tusVersion,
    'upload-offset': String(upload.received),
    'upload-length': String(upload.length),
    'upload-metadata': upload.metadata,
    'upload-expires': upload.expiresAt.toUTCString(),
    ...(upload.finishedAt === null ? {} : { 'x-file': formatId('file', upload.id) }),
  };
}
