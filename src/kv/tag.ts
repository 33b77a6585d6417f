import type { KvEntry } from './store.ts';

/** The strong entity tag of an entry: a new one for every write, never used again after a delete. */
export function entityTag(entry: Pick<KvEntry, 'id' | 'version'>): string {
  return `"${entry.id}.${entry.version}"`;
}
