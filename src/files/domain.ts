import type { Domain } from '../domain.ts';
import { createFileService, type FileDeps, type FileService } from './service.ts';
import { createSweepTask, sweepJob } from './sweep.ts';

/*
 * Files with owners, access lists and public URLs. The row is here, the bytes are in blob/.
 * - `input.ts` reads what a request sends, `receive.ts` its body; `write.ts` stores bytes first and commits the row after
 *   them, so a row never names missing bytes.
 * - `acl.ts` and `owners.ts`: who may see and change a file. `upload-links.ts`: uploads by a signed URL.
 * - `bytes.ts` sends contents with ranges; `pictures.ts` makes small pictures of them.
 * - `store-identity.ts` makes sure that all processes use the same blob store.
 * - `sweep.ts` deletes bytes without a row, `fsck.ts` compares both.
 */

export function createFiles(deps: FileDeps): Domain<FileService> {
  return {
    service: createFileService(deps),
    tasks: { [sweepJob.task]: createSweepTask(deps) },
    recurring: [sweepJob],
  };
}
