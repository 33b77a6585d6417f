import { iso } from '../http/route/present.ts';
import type { LogEntry } from '../http/streams/log-stream.ts';
import { formatId } from '../lib/ids.ts';
import type { BatchResult } from './batch.ts';
import type { KvContent, KvListEntry } from './store.ts';
import { entityTag } from './tag.ts';
import type { KvChange } from './watch-store.ts';

export function presentEntry(entry: KvContent) {
  return {
    user: formatId('user', entry.userId),
    key: entry.key,
    value: entry.value,
    created_at: iso(entry.createdAt),
    updated_at: iso(entry.updatedAt),
    ...(entry.expiresAt === null ? {} : { expires_at: iso(entry.expiresAt) }),
  };
}

export function presentListEntry(entry: KvListEntry) {
  return {
    ...presentEntry(entry),
    ...(entry.userEmail === null ? {} : { user_email: entry.userEmail }),
    ...(entry.userName === null ? {} : { user_name: entry.userName }),
  };
}

export function presentBatchResult({ op, key, entry, deleted }: BatchResult) {
  if (op === 'delete') return { op, key, deleted };
  return { op, key, entry: entry === undefined ? null : presentEntry(entry), ...(entry && { etag: entityTag(entry) }) };
}

/** An event of a watch. */
export function presentChange(userId: string, change: KvChange): LogEntry {
  const { position, kind, key } = change;
  const entry = { ...change, id: change.entryId, userId };
  const data =
    kind !== 'put'
      ? { user: formatId('user', userId), key }
      : change.value === null
        ? { ...presentEntry({ ...entry, value: '' }), value: null, etag: entityTag(entry) }
        : { ...presentEntry({ ...entry, value: change.value }), etag: entityTag(entry) };
  return { position, event: kind, key, data };
}
