import type { KvEntry } from './store.ts';

/** The strong entity tag of an entry: new for every write, and never reused after a delete. */
export function entityTag(entry: Pick<KvEntry, 'id' | 'version'>): string {
  return `"${entry.id}.${entry.version}"`;
}
