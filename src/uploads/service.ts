import type { PageRequest } from '../http/route/pages.ts';
import { AppError, found } from '../lib/errors.ts';
import type { Caller } from '../tenancy/caller.ts';
import { hasScope } from '../tenancy/key-scopes.ts';
import { pathId } from '../tenancy/references.ts';
import { type Body, createAppending, tooLong } from './append.ts';
import { createUploadStart } from './create.ts';
import { ended, type Sender, type Upload, type UploadDeps } from './finish.ts';
import { UploadHolds } from './holds.ts';
import * as store from './store.ts';

export type UploadService = ReturnType<typeof createUploadService>;

export function createUploadService(deps: UploadDeps) {
  const { db, clock } = deps;
  const holds = new UploadHolds(db, deps.session);
  const appending = createAppending(deps, holds);

  async function getVisible(caller: Caller, id: string): Promise<Upload> {
    return found(await store.findVisibleUpload(db, caller, pathId('upload', id), clock.now()));
  }

  return {
    ...createUploadStart(deps, holds, appending),

    /** Appends a body at an offset. 409 if the stored bytes do not end there; 423 while another request appends. */
    async append(sender: Sender, id: string, offset: number, body: Body): Promise<Upload> {
      const seen = await getVisible(sender.caller, id);
      requireOffset(seen, offset);
      if (seen.finishedAt !== null) {
        if (body.length === 0) return seen;
        throw tooLong(0);
      }
      return holds.hold(seen, (upload) => {
        requireOffset(upload, offset);
        if (upload.finishedAt !== null) throw ended();
        return appending.append(sender, upload, body);
      });
    },

    /**
     * Returns the upload. If all its bytes are stored but finishing was interrupted, finishes it first, unless the
     * caller may only read.
     */
    async get(sender: Sender, id: string): Promise<Upload> {
      const { caller } = sender;
      const seen = await getVisible(caller, id);
      if (seen.finishedAt !== null || seen.received < seen.length) return seen;
      if (!hasScope(caller.scopes, 'files', false)) return seen;
      return holds.hold(seen, (upload) =>
        upload.finishedAt === null ? appending.finish(sender, upload) : Promise.resolve(upload),
      );
    },

    list: (caller: Caller, page: PageRequest) => store.listVisibleUploads(db, caller, page, clock.now()),

    /** Deletes the upload and its bytes. The file of a finished upload stays. */
    async delete(caller: Caller, id: string): Promise<void> {
      const seen = await getVisible(caller, id);
      await holds.hold(seen, async (upload) => {
        found(await store.deleteUpload(db, upload));
      });
    },
  };
}

function requireOffset({ received }: Upload, offset: number): void {
  if (offset === received) return;
  throw new AppError('conflict', `The upload has ${received} bytes. Continue there.`, {
    details: { offset: received },
  });
}
