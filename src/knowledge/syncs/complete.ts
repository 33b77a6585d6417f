import type { Static } from 'typebox';
import { AppError } from '../../lib/errors.ts';
import type { syncCompleteSchema } from './schema.ts';
import { queueItems, requireActive, requireFence, type Step } from './state.ts';
import * as store from './store.ts';

/** Ends the sending. What was sent is still indexed, then a full sync deletes what was not sent. */
export async function completeSync({ tx, sync, state }: Step, body: Static<typeof syncCompleteSchema>): Promise<void> {
  requireFence(sync, body.fence);
  if (sync.status === 'completing' || sync.status === 'succeeded') return;
  requireActive(sync);
  if (body.batches !== sync.batches || body.documents !== sync.upserts)
    throw new AppError('conflict', 'The sync has another number of batches or documents.', {
      details: { batches: sync.batches, documents: sync.upserts },
    });
  if (sync.mode === 'full') {
    const unseen = await store.countUnseen(tx, sync, sync.id);
    if (unseen * 2 > sync.documentsBefore && body.confirm_deletions !== true)
      throw new AppError(
        'conflict',
        'Completing would delete more than half of the source. Confirm it with confirm_deletions.',
        { details: { deletions: unseen, documents: sync.documentsBefore } },
      );
    await store.updateState(tx, sync, { ...state, cursor: sync.cursor });
  }
  await store.updateSync(tx, sync, { ...sync, status: 'completing' });
  await queueItems(tx, sync);
}
