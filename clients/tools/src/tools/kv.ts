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
export type KvListInput = { prefix?: string | undefined; page?: number | undefined };
export type KvList = {
  entries: { key: string; value: string }[];
  page: number;
  total_pages: number;
  total_entries: number;
};
export type KvKey = { key: string };

type Entry = { key: string; value: string };
type Page = { data: Entry[]; total_pages?: number; total_entries?: number };

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
      page: z.int().min(1).max(offsetMax).optional().describe('From 1.'),
    }),
    async run({ prefix = '', page = 1 }, session) {
      const start = `${limits.kvPrefix}${prefix}`;
      const query = { ...ownerOf(session), key: start, page, page_size: pageSize };
      const found = await session.request<Page>('GET', '/api/v1/kv', { query });
      const { data, total_pages, total_entries } = pageOf(found, start, page);
      const entries = data.map(({ key: name, value }) => ({
        key: name.slice(limits.kvPrefix.length),
        value: cutText(value, previewCharactersMax),
      }));
      return { entries, page, total_pages, total_entries };
    },
    describe({ entries, page, total_pages: pages, total_entries: total }) {
      // First, because long keys may be cut at the end.
      const more = page < pages ? ` Call kv_list with page ${page + 1} for more.` : '';
      const lines = entries.map(({ key: name, value }) => `\n${name}: ${value}`).join('');
      return `${total} entries, page ${page} of ${pages}.${more}${lines}`;
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

/** Filters and pages the list of an end user, which the API returns whole. */
function pageOf(found: Page, prefix: string, page: number): Required<Page> {
  const { data, total_pages, total_entries } = found;
  if (total_pages !== undefined && total_entries !== undefined) return { data, total_pages, total_entries };
  const matching = data.filter((entry) => entry.key.startsWith(prefix));
  return {
    data: matching.slice((page - 1) * pageSize, page * pageSize),
    total_pages: Math.ceil(matching.length / pageSize),
    total_entries: matching.length,
  };
}
