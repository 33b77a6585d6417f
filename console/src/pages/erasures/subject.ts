import type { Erasure } from '../../api/generated.ts';
import type { SubjectKind } from './erase-button.tsx';

/** What an erasure is about. */
export function subjectOf({ user, document, source }: Pick<Erasure, SubjectKind>): { kind: string; id: string } {
  if (user !== undefined) return { kind: 'User', id: user };
  if (document !== undefined) return { kind: 'Document', id: document };
  return { kind: 'Source', id: source ?? '' };
}

export function removedTotal({ removed }: Pick<Erasure, 'removed'>): number {
  return Object.values(removed).reduce((sum, count) => sum + count, 0);
}

/** A name of the API in words: `key_value_entries` is "Key-value entries". */
export function wordsOf(name: string): string {
  const words = name.replace(/^key_value|^write_ahead/, (two) => two.replace('_', '-')).replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
