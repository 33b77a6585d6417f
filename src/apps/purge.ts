import type { Db } from '../db/database.ts';
import { isInUse } from '../db/fences.ts';
import { deleteContents } from '../deletions/batches.ts';
import type { Scope } from '../tenancy/caller.ts';

const sandboxesBatch = 20;

/**
 * Deletes what deleted sandboxes have left. Each is gone for every caller as soon as its row says so. Any number of
 * processes may do so; a killed one is continued.
 */
export async function purgeSandboxes(db: Db, signal: AbortSignal): Promise<void> {
  for (;;) {
    const removed = await db<Scope[]>`
      select app_id, id as sandbox_id from sandboxes s
      where s.removed_at is not null and ${isInUse(db, 's.app_id')} limit ${sandboxesBatch}`;
    if (removed.length === 0) return;
    for (const { appId, sandboxId } of removed) {
      await deleteContents(db, { appId, kind: 'sandbox', id: sandboxId }, signal);
      // The rest are a few rows of settings, and what was written meanwhile.
      await db`delete from sandboxes where app_id = ${appId} and id = ${sandboxId} and removed_at is not null`;
    }
  }
}
