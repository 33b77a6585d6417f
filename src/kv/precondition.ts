import { AppError } from '../lib/errors.ts';
import type { KvEntry } from './store.ts';
import { entityTag } from './tag.ts';

/** The precondition of If-Match and If-None-Match (RFC 9110, 13.1). `current` is undefined when there is no entry. */
export type Precondition = { holds(current: Pick<KvEntry, 'id' | 'version'> | undefined): boolean };

/** Reads both headers; undefined when neither is sent. Throws 422 unless each is `*` or a list of entity tags. */
export function readPrecondition(headers: {
  'if-match'?: string | undefined;
  'if-none-match'?: string | undefined;
}): Precondition | undefined {
  const match = headers['if-match'] === undefined ? undefined : parseTags('If-Match', headers['if-match']);
  const noneMatch =
    headers['if-none-match'] === undefined ? undefined : parseTags('If-None-Match', headers['if-none-match']);
  if (!match && !noneMatch) return undefined;
  return {
    holds(current) {
      const strong = current && entityTag(current);
      if (match && !(strong !== undefined && (match === '*' || match.includes(strong)))) return false;
      if (!noneMatch || strong === undefined) return true;
      return noneMatch !== '*' && !noneMatch.some((tag) => tag.replace(/^W\//, '') === strong);
    },
  };
}

/** `*`, or the list of entity tags as sent. A weak tag never equals a strong one. */
function parseTags(header: string, text: string): '*' | string[] {
  if (text.trim() === '*') return '*';
  // Empty elements of a list are ignored (RFC 9110, 5.6.1).
  if (!/^\s*(?:,\s*)*(?:W\/)?"[^"]*"\s*(?:,\s*(?:(?:W\/)?"[^"]*"\s*)?)*$/.test(text))
    throw new AppError('invalid_parameters', `${header} must be * or entity tags in double quotes.`, {
      fields: [{ field: header.toLowerCase(), message: 'must be * or entity tags in double quotes' }],
    });
  return text.match(/(?:W\/)?"[^"]*"/g) ?? [];
}
