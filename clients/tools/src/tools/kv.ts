import { z } from 'zod';
import { defineTool, type ToolDefinition } from '../definition.ts';
import { ToolError } from '../errors.ts';
import type { Limits } from '../options.ts';
import type { QuarryClient, Session } from '../session.ts';
import { cutText } from '../text.ts';

export type KvGetInput = { key: string; offset?: number | undefined };
/** A part of a value. Offsets count characters; `next_offset` is absent at its end. */
export type KvValue = { key: string; value: string; offset: number; total_characters: number; next_offset?: number };
export type KvPutInput = { key: string; value: string; ttl_seconds?: number | undefined };
export type KvListInput = { prefix?: string | undefined; cursor?: string | undefined };
export type KvList = { entries: { key: string; value: string }[]; next_cursor?: string };
export type KvKey = { key: string };

type Entry = { key: string; value: string };
type Page = { data: Entry[]; next_cursor: string | null };

const pageSize = 25;
/** Characters of a value in a list. */
const previewCharactersMax = 200;
const headerCharacters = 200;
const ttlSecondsMax = 315_360_000;
const offsetMax = 2_147_483_647;

const key = z.string().min(1).max(2_048);

export function kvGetTool(client: QuarryClient, limits: Limits): ToolDefinition<KvGetInput, KvValue> {
  return defineTool<KvGetInput, KvValue>(client, limits, {
    name: 'kv_get',
    description: 'Returns the stored value of a key. A long value is returned in parts: continue at next_offset.',
    input: z.strictObject({
      key,
      offset: z.int().min(0).max(offsetMax).optional().describe('The first character. Default 0.'),
    }),
    async run({ key: name, offset = 0 }, session) {
      const { value } = await session.request<Entry>('GET', pathOf(session, name), { query: ownerOf(session) });
      const part = value.slice(offset, offset + limits.charactersMax - headerCharacters).toWellFormed();
      const end = offset + part.length;
      const next = end < value.length ? { next_offset: end } : {};
      return { key: name, value: part, offset, total_characters: value.length, ...next };
    },
    describe: ({ value, next_offset: next }) =>
      next === undefined ? value : `${value}\n\n[There is more: call kv_get with offset ${next}.]`,
  });
}

export function kvPutTool(client: QuarryClient, limits: Limits): ToolDefinition<KvPutInput, KvKey> {
  return defineTool<KvPutInput, KvKey>(client, limits, {
    name: 'kv_put',
    description: 'Stores a value under a key, in place of the value that it had.',
    input: z.strictObject({
      key,
      value: z.string().min(1),
      ttl_seconds: z.int().min(1).max(ttlSecondsMax).optional().describe('The entry ends after this time.'),
    }),
    async run({ key: name, ...entry }, session) {
      await session.request('PUT', pathOf(session, name), { body: { ...entry, ...ownerOf(session) } });
      return { key: name };
    },
    describe: ({ key: name }) => `Stored ${name}.`,
  });
}

export function kvListTool(client: QuarryClient, limits: Limits): ToolDefinition<KvListInput, KvList> {
  return defineTool<KvListInput, KvList>(client, limits, {
    name: 'kv_list',
    description: 'Lists stored keys with the beginnings of their values. Use kv_get for a whole value.',
    input: z.strictObject({
      prefix: z.string().max(2_048).optional().describe('Only keys that begin with this.'),
      cursor: z.string().max(10_000).optional().describe('The next_cursor of the list so far, to continue it.'),
    }),
    async run({ prefix = '', cursor }, session) {
      const query = { ...ownerOf(session), prefix: `${limits.kvPrefix}${prefix}`, cursor, limit: pageSize };
      const { data, next_cursor: next } = await session.request<Page>('GET', '/api/v1/kv_entries', { query });
      const entries = data.map(({ key: name, value }) => ({
        key: name.slice(limits.kvPrefix.length),
        value: cutText(value, previewCharactersMax),
      }));
      return { entries, ...(next === null ? {} : { next_cursor: next }) };
    },
    describe({ entries, next_cursor: next }) {
      // First, because long keys may be cut at the end.
      const more = next === undefined ? '' : `, and more: call kv_list with cursor ${next}`;
      const lines = entries.map(({ key: name, value }) => `\n${name}: ${value}`).join('');
      return `${entries.length} entries${more}.${lines}`;
    },
  });
}

export function kvDeleteTool(client: QuarryClient, limits: Limits): ToolDefinition<KvKey, KvKey> {
  return defineTool<KvKey, KvKey>(client, limits, {
    name: 'kv_delete',
    description: 'Deletes a key and its value for good.',
    input: z.strictObject({ key }),
    async run({ key: name }, session) {
      await session.request('DELETE', pathOf(session, name), { query: ownerOf(session) });
      return { key: name };
    },
    describe: ({ key: name }) => `Deleted ${name}.`,
  });
}

function ownerOf({ limits }: Session): { user?: string } {
  return limits.kvUser === undefined ? {} : { user: limits.kvUser };
}

function pathOf({ limits }: Session, name: string): string {
  const whole = `${limits.kvPrefix}${name}`;
  // As segments of a URL, these would change the path.
  if (whole === '.' || whole === '..') throw new ToolError('invalid_arguments', 'The key cannot be . or .. here.');
  return `/api/v1/kv/${encodeURIComponent(whole)}`;
}
