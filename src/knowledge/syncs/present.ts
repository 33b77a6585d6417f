import { iso } from '../../http/route/present.ts';
import { formatId } from '../../lib/ids.ts';
import { emptyStats } from './apply.ts';
import type { SyncView } from './store.ts';

/** @param now decides whether an active sync has expired. */
export function presentSync(row: SyncView, now: Date) {
  return {
    id: formatId('sync', row.id),
    source: formatId('source', row.sourceId),
    mode: row.mode,
    status: row.status === 'active' && row.expiresAt <= now ? ('expired' as const) : row.status,
    fence: row.fence,
    cursor: row.cursor,
    next_batch: row.batches + 1,
    documents: row.upserts,
    pending: row.pending,
    stats: { ...emptyStats, ...row.stats },
    expires_at: iso(row.expiresAt),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
    completed_at: row.completedAt && iso(row.completedAt),
  };
}
