import type { Keyset } from '../db/pages.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import { type IdKind, nativeId, parseId } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';

const limitDefault = 20;

type CursorQuery = {
  limit?: number | undefined;
  order?: 'asc' | 'desc' | undefined;
  after?: string | undefined;
  before?: string | undefined;
};

/** The page that a query asks for. The cursors are ids of these kinds. */
export function readCursors({ limit, order, after, before }: CursorQuery, ...kinds: IdKind[]): Keyset {
  const read = (field: string, text: string | undefined) => {
    if (text === undefined) return undefined;
    const id = kinds.map((kind) => parseId(kind, nativeId(text))).find((uuid) => uuid !== undefined);
    if (id === undefined)
      throw new AppError('invalid_cursor', `${field}: is not an id of this list`, {
        fields: [{ field, message: 'is not an id of this list' }],
      });
    return id;
  };
  return {
    limit: Math.min(limit ?? limitDefault, limits.pageSizeMax),
    ascending: order === 'asc',
    after: read('after', after),
    before: read('before', before),
  };
}

/** 422 on any strategy other than the one that Quarry has. */
export function requireAutoChunking(strategy: unknown, field = 'chunking_strategy'): void {
  if (strategy === undefined) return;
  const { type } = (strategy ?? {}) as { type?: unknown };
  if (type === 'auto' && Object.keys(strategy as object).length === 1) return;
  throw invalidField(field, 'must be {"type": "auto"}: documents are split at headings and paragraphs');
}
