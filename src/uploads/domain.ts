import type { Domain } from '../domain.ts';
import type { UploadDeps } from './finish.ts';
import { createUploadService, type UploadService } from './service.ts';
import { sweepUploads, uploadSweepJob } from './sweep.ts';

/*
 * Resumable uploads by the tus protocol: bytes that arrive in several requests become one file.
 * - `protocol.ts` reads and checks the headers of tus, `routes.ts` speaks it.
 * - `create.ts` creates an upload, `append.ts` appends bytes to its partial blob, and `finish.ts` makes a file of the
 *   complete one (files/write.ts). `service.ts` finds and deletes uploads.
 * - `holds.ts` lets one request at a time write to an upload.
 * - `sweep.ts` deletes uploads that nobody continued.
 */

export function createUploads(deps: UploadDeps): Domain<UploadService> {
  return {
    service: createUploadService(deps),
    tasks: { [uploadSweepJob.task]: () => sweepUploads(deps) },
    recurring: [uploadSweepJob],
  };
}
