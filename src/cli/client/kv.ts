import { defined } from '../../lib/defined.ts';
import { countOf } from '../count.ts';
import { UsageError } from '../errors.ts';
import { follow } from './follow.ts';
import { findLocalFile, readAll } from './local-file.ts';
import { confirm } from './prompt.ts';
import { jsonLine, type Session } from './session.ts';

export type KvOptions = { user?: string };
export type KvListOptions = KvOptions & { prefix?: string; page?: number };

export type KvPutOptions = KvOptions & { ttl?: number };
export type KvEntriesOptions = KvOptions & { prefix?: string; cursor?: string; limit?: number };
export type KvWatchOptions = KvOptions & { prefix?: string; limit?: number };

type Entry = { user: string; key: string; value: string; updated_at: string };
type EntryPage = { data: Entry[]; page?: number; total_pages?: number };

const valueBytesMax = 64 * 1024 * 1024;

/** `quarry kv get`: prints the value byte for byte, so that it can be piped; on a terminal, adds a line break. */
export async function get(session: Session, key: string, { user }: KvOptions): Promise<number> {
  const entry = await session.client.send<Entry>('GET', pathOf(key), { query: { user } });
  await session.print(session.json ? jsonLine(entry) : entry.value);
  if (!session.json && process.stdout.isTTY) await session.print('\n');
  return 0;
}

/** `quarry kv put`: writes the given value, or standard input. */
export async function put(
  session: Session,
  key: string,
  value: string | undefined,
  { user, ttl }: KvPutOptions,
): Promise<number> {
  const text =
    value === undefined || value === '-'
      ? (await readAll(await findLocalFile('-'), valueBytesMax)).toString('utf8')
      : value;
  const body = {
    value: text,
    ...defined({ user, ttl_seconds: ttl }),
  };
  const entry = await session.client.send<Entry>('PUT', pathOf(key), { body });
  if (session.json) await session.print(jsonLine(entry));
  return 0;
}

export async function list(session: Session, { user, prefix, page }: KvListOptions): Promise<number> {
  const found = await session.client.send<EntryPage>('GET', '/kv', {
    query: { user, key: prefix, page, page_size: 100 },
  });
  if (session.json) await session.print(jsonLine(found));
  // For an end user, the server returns all entries, unfiltered.
  const entries = found.data.filter(({ key }) => key.startsWith(prefix ?? ''));
  if (!session.json)
    for (const { user: owner, key, value } of entries)
      await session.print(`${found.page === undefined ? '' : `${owner}  `}${key}  ${shorten(value)}\n`);
  const { page: at = 1, total_pages: pages = 1 } = found;
  if (at < pages) session.say(`Page ${at} of ${pages}: see the next with --page ${at + 1}.`);
  return 0;
}

/** `quarry kv increment`: adds to a number and prints the sum. */
export async function increment(session: Session, key: string, by: number, { user }: KvOptions): Promise<number> {
  const body = { key, by, ...defined({ user }) };
  const entry = await session.client.send<Entry>('POST', '/kv_increment', { body });
  await session.print(session.json ? jsonLine(entry) : `${entry.value}\n`);
  return 0;
}

/** `quarry kv watch`: prints changes as they happen, until Ctrl-C or `limit` changes. */
export async function watch(
  session: Session,
  key: string | undefined,
  { user, prefix, limit = Number.POSITIVE_INFINITY }: KvWatchOptions,
): Promise<number> {
  let seen = 0;
  for await (const { event, data } of follow(session, '/kv_watch', { user, key, prefix })) {
    const { key: changed, value } = data as Partial<Entry>;
    const line = `${event}  ${changed}${value == null ? '' : `  ${shorten(value)}`}\n`;
    await session.print(session.json ? jsonLine({ event, ...(data as object) }) : line);
    seen += 1;
    if (seen >= limit) break;
  }
  return 0;
}

/** `quarry kv entries`: lists entries in the order of their keys, with a cursor instead of pages. */
export async function entries(session: Session, { user, prefix, cursor, limit }: KvEntriesOptions): Promise<number> {
  const found = await session.client.send<{ data: Entry[]; next_cursor: string | null }>('GET', '/kv_entries', {
    query: { user, prefix, cursor, limit },
  });
  if (session.json) await session.print(jsonLine(found));
  else for (const { key, value } of found.data) await session.print(`${key}  ${shorten(value)}\n`);
  if (found.next_cursor != null) session.say(`There are more: --cursor ${found.next_cursor}`);
  return 0;
}

/** `quarry kv batch <file>`: runs all operations or none. */
export async function batch(session: Session, path: string, { user }: KvOptions): Promise<number> {
  const text = (await readAll(await findLocalFile(path), valueBytesMax)).toString('utf8');
  let operations: unknown;
  try {
    operations = JSON.parse(text);
  } catch {
    throw new UsageError('The operations must be a JSON array.');
  }
  const body = { operations, ...defined({ user }) };
  const found = await session.client.send<{ data: Record<string, unknown>[] }>('POST', '/kv_batch', { body });
  if (session.json) await session.print(jsonLine(found));
  else session.say(`${countOf(found.data.length, 'operation')} done.`);
  return 0;
}

export async function remove(
  session: Session,
  key: string,
  { user, yes }: KvOptions & { yes: boolean | undefined },
): Promise<number> {
  await confirm(`Delete the entry ${key}?`, yes);
  await session.client.send('DELETE', pathOf(key), { query: { user } });
  return 0;
}

function pathOf(key: string): string {
  return `/kv/${encodeURIComponent(key)}`;
}

function shorten(value: string): string {
  const line = JSON.stringify(value).slice(1, -1);
  return line.length > 100 ? `${line.slice(0, 99)}…` : line;
}
