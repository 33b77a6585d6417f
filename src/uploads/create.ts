import { type Db, runApart } from '../db/database.ts';
import { findMaker } from '../files/of-runs.ts';
import { resolveFileOwner, resolveGrants } from '../files/owners.ts';
import { translateWriteError } from '../files/write.ts';
import { newUuid } from '../lib/ids.ts';
import { type Caller, canSeeWholeApp } from '../tenancy/caller.ts';
import { requireShareLeft } from '../tenancy/quotas.ts';
import { fitsShare, lockRoom, noRoom } from '../tenancy/room.ts';
import { type Appending, type Body, tooLong } from './append.ts';
import type { Sender, Upload, UploadDeps } from './finish.ts';
import type { UploadHolds } from './holds.ts';
import { readMetadata } from './protocol.ts';
import * as store from './store.ts';

/** How uploads begin. */
export function createUploadStart(deps: UploadDeps, holds: UploadHolds, { append }: Appending) {
  const { db, clock } = deps;

  /** Requires room for the upload of this transaction, among those of the space and those of the user. */
  async function requireShare(tx: Db, caller: Caller, length: number): Promise<void> {
    const max = deps.unfinishedUploadsMax;
    const isWholeApp = canSeeWholeApp(caller);
    const { uploads, bytesOfCaller } = await store.findUnfinished(tx, caller, userOf(caller));
    const held = { ofSpace: uploads.ofSpace + 1, ofCaller: uploads.ofCaller + 1 };
    if (!fitsShare(held, max, isWholeApp)) {
      const whose = held.ofSpace > max ? 'This app or sandbox has' : `You have your share of`;
      const message = `${whose} ${max} unfinished uploads. Finish or delete some first.`;
      throw noRoom({ things: 'unfinished uploads', max, message }, uploads.ofSpace, 'rate_limited');
    }
    if (!isWholeApp) await requireShareLeft(tx, caller, 'file_bytes', { held: bytesOfCaller, more: length });
  }

  return {
    /** Creates an upload and appends the body, if there is one. */
    async create(sender: Sender, metadata: string, length: number, body: Body | undefined): Promise<Upload> {
      const { caller } = sender;
      const file = readMetadata(metadata);
      if (length > deps.resumableBytesMax) throw tooLong(deps.resumableBytesMax);
      if ((body?.length ?? 0) > length) throw tooLong(length);
      const owned = await resolveFileOwner(db, caller, file);
      await resolveGrants(db, caller, [], file.acl ?? {});
      await findMaker(db, caller, file.automation_run);
      const createdAt = clock.now();
      const insert = (holder: string | null) =>
        db.begin(async (tx) => {
          await lockRoom(tx, caller, { things: 'unfinished uploads' });
          await requireShare(tx, caller, length);
          return store.insertUpload(tx, {
            appId: caller.appId,
            id: newUuid(),
            sandboxId: caller.sandboxId,
            userId: userOf(caller),
            metadata,
            owned,
            length,
            blobKey: `${caller.appId}/${newUuid()}`,
            state: { size: 0 },
            holder,
            createdAt,
            expiresAt: new Date(createdAt.getTime() + deps.uploadHours * 3_600_000),
          });
        });
      try {
        if (body === undefined && length > 0) return await insert(null);
        const bytes = body ?? noBody;
        // Committed before the bytes arrive, also within a repeatable request: only the file is part of its transaction.
        return await holds.holdNew(
          () => runApart(() => insert(holds.holder)),
          (upload) => append(sender, upload, bytes),
        );
      } catch (error) {
        throw translateWriteError(error);
      }
    },
  };
}

function userOf(caller: Caller): string | null {
  return caller.kind === 'user' ? caller.userId : null;
}

const noBody: Body = { bytes: (async function* () {})(), length: 0, check: undefined };
