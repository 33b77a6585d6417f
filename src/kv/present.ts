import { formatId } from '../ids.ts';
import type { KvEntry, KvListEntry } from './store.ts';

export function presentEntry(entry: KvEntry) {
  return {
    user: formatId('user', entry.userId),
    key: entry.key,
    value: entry.value,
    created_at: entry.createdAt.toISOString(),
    updated_at: entry.updatedAt.toISOString(),
  };
}

export function presentListEntry(entry: KvListEntry) {
  return {
    ...presentEntry(entry),
    ...(entry.userEmail === null ? {} : { user_email: entry.userEmail }),
    ...(entry.userName === null ? {} : { user_name: entry.userName }),
  };
}
