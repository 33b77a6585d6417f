import type { Domain } from '../domain.ts';
import { createUploadService, type UploadDeps, type UploadService } from './service.ts';
import { sweepUploads, uploadSweepJob } from './sweep.ts';

export function createUploads(deps: UploadDeps): Domain<UploadService> {
  return {
    service: createUploadService(deps),
    tasks: { [uploadSweepJob.task]: () => sweepUploads(deps) },
    recurring: [uploadSweepJob],
  };
}
