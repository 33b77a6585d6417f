import type { Db } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { notFound } from '../lib/errors.ts';
import { type Caller, canSeeWholeApp, type Scope, type UserCaller } from '../tenancy/caller.ts';
import { fieldId } from '../tenancy/references.ts';
import { targetOwner, userNotFound } from './owner.ts';
import { nameOf, sharedStatements } from './shared-statements.ts';
import {
  findEntries,
  type KvContent,
  type KvEntry,
  type KvListEntry,
  type KvListed,
  type KvPosition,
  listEntries,
  listEntriesByKey,
  listUserEntries,
  userExists,
} from './store.ts';

type KvListFilter = {
  user?: string | undefined;
  user_search?: string | undefined;
  key?: string | undefined;
};

/** Entries that a list reads per query. */
const listBounds = { rowsMax: 500, bytesMax: 256 * 1024 };

const pageRowsDefault = 100;
const pageBytesMax = 4 * 1024 * 1024;

/** All entries of an end user, newest first. No connection is held between two reads. */
export async function* listOwn(db: Db, caller: UserCaller): AsyncGenerator<KvEntry> {
  let after: KvPosition | undefined;
  for (;;) {
    const entries = await listUserEntries(db, caller, after, listBounds);
    yield* entries;
    after = entries.at(-1);
    if (after === undefined) return;
  }
}

/** A page of the entries of all users of the app. */
export async function list(
  db: Db,
  caller: Caller,
  filter: KvListFilter,
  page: PageRequest,
): Promise<{ entries: AsyncIterable<KvListEntry>; total: number }> {
  if (!canSeeWholeApp(caller)) throw notFound();
  const userId = fieldId('user', 'user', filter.user);
  const userSearch = filter.user_search || undefined;
  const keys = filter.key ? { from: filter.key, before: firstTextAfterPrefix(filter.key) } : undefined;
  const window = { limit: page.pageSize, offset: page.offset, bytesMax: listBounds.bytesMax };
  const { entries, total } = await listEntries(db, caller, { userId, userSearch, keys }, window);
  return { entries: withValues(db, caller, entries), total };
}

/** The user's entries by key, and the key after which the next page continues. */
export async function listByKey(
  db: Db,
  caller: Caller,
  query: { user?: unknown; prefix?: string | undefined; limit?: number | undefined },
  after: string | undefined,
): Promise<{ entries: KvContent[]; next: string | undefined }> {
  const owner = targetOwner(caller, query.user);
  const prefix = query.prefix ?? '';
  const rowsMax = query.limit ?? pageRowsDefault;
  const page = {
    ...{ ...owner, from: firstKey(prefix, after), before: firstTextAfterPrefix(prefix) },
    ...{ rowsMax: rowsMax + 1, bytesMax: pageBytesMax },
  };
  const found = (await sharedStatements(db).pages.add(nameOf(owner), page)) ?? (await listEntriesByKey(db, page));
  if (found.length === 0 && !(await userExists(db, owner))) throw userNotFound();
  const entries = found.slice(0, rowsMax);
  // A page may also end because of its bytes; then the next one may turn out to be empty.
  const bytes = entries.reduce((sum, { value }) => sum + Buffer.byteLength(value), 0);
  const more = found.length > rowsMax || bytes >= pageBytesMax;
  return { entries, next: more ? entries.at(-1)?.key : undefined };
}

/** Adds the values omitted from the page. Entries deleted meanwhile are omitted. */
async function* withValues(db: Db, scope: Scope, entries: KvListed[]): AsyncGenerator<KvListEntry> {
  for (let from = 0; from < entries.length; ) {
    const next = entries.slice(from, from + sizeOfPiece(entries, from));
    from += next.length;
    const missing = next.filter(({ value }) => value === null);
    const found = missing.length === 0 ? [] : await findEntries(db, scope, missing);
    const values = new Map(found.map((entry, index) => [missing[index], entry?.value]));
    for (const entry of next) {
      const value = entry.value ?? values.get(entry);
      if (value !== undefined) yield { ...entry, value };
    }
  }
}

/** The number of entries from here on that fit into one piece: at least one. */
function sizeOfPiece(entries: KvListed[], from: number): number {
  let bytes = 0;
  let to = from;
  do bytes += entries[to++]?.valueBytes ?? 0;
  while (to < entries.length && bytes + (entries[to]?.valueBytes ?? 0) <= listBounds.bytesMax);
  return to - from;
}

/** The first key that may be on a page: with the prefix, and greater than `after`, by bytes. */
function firstKey(prefix: string, after: string | undefined): string {
  if (after === undefined) return prefix;
  // The next text: PostgreSQL's texts have no U+0000.
  const next = `${after}\u0001`;
  return Buffer.compare(Buffer.from(next), Buffer.from(prefix)) > 0 ? next : prefix;
}

/** The first text after all texts with the prefix, in code point order (UTF-8's byte order). */
export function firstTextAfterPrefix(prefix: string): string | undefined {
  let end = prefix.length;
  // The last character that has a successor; what follows it is dropped.
  for (;;) {
    if (end === 0) return undefined;
    const last = prefix.codePointAt(end - 2) ?? 0;
    const point = last > 0xffff ? last : prefix.charCodeAt(end - 1);
    end -= point > 0xffff ? 2 : 1;
    if (point === 0x10ffff) continue;
    return prefix.slice(0, end) + String.fromCodePoint(point === 0xd7ff ? 0xe000 : point + 1);
  }
}
