import type { Domain } from '../domain.ts';
import { createFileService, type FileDeps, type FileService } from './service.ts';
import { createSweepTask, sweepJob } from './sweep.ts';

export function createFiles(deps: FileDeps): Domain<FileService> {
  return {
    service: createFileService(deps),
    tasks: { [sweepJob.task]: createSweepTask(deps) },
    recurring: [sweepJob],
  };
}
