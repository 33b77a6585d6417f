import { strict } from '../../http/route/route.ts';
import { kvOperation } from '../../kv/schema.ts';
import { defined } from '../../lib/defined.ts';
import { AppError } from '../../lib/errors.ts';
import { Type } from '../../lib/type.ts';
import { defineTool, optionalText, pageInput, pageOutput, type Tool, toolLimits, truncateText } from '../tool.ts';

type Entry = { user: string; key: string; value: string; updated_at: string; expires_at?: string };
type BatchResult = { op: string; key: string; entry?: Entry | null; etag?: string; deleted?: boolean };
type Page = { data: Entry[]; page?: number; total_pages?: number; total_entries?: number };

const key = Type.String({ minLength: 1, maxLength: 2_048 });
const user = Type.Optional(
  Type.String({
    description: 'usr_…; the owner of the entry. Required with a secret key or developer token, ignored for users.',
  }),
);

const get = defineTool({
  name: 'kv_get',
  title: 'Get an entry',
  operation: 'getKvEntry',
  description: 'Returns the value of a key. A long value is returned in parts: pass next_offset as offset to continue.',
  hints: { reads: true },
  input: strict({
    key,
    user,
    offset: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 2_147_483_647, description: 'First character. Default 0.' }),
    ),
  }),
  output: Type.Object({
    user: Type.String(),
    key: Type.String(),
    value: Type.String(),
    total_characters: Type.Integer(),
    next_offset: Type.Optional(Type.Integer()),
    updated_at: Type.String(),
  }),
  async run({ key: name, user: owner, offset = 0 }, { api }) {
    const entry = await api<Entry>('GET', pathOf(name), { query: { user: owner } });
    const value = truncateText(entry.value.slice(offset), toolLimits.textBytesDefault).toWellFormed();
    const end = offset + value.length;
    const more = end < entry.value.length ? { next_offset: end } : {};
    const hint = 'next_offset' in more ? `\n\n[There is more: call kv_get with offset ${end}.]` : '';
    return {
      data: {
        user: entry.user,
        key: entry.key,
        value,
        total_characters: entry.value.length,
        ...more,
        updated_at: entry.updated_at,
      },
      text: `${value}${hint}`,
    };
  },
});

const put = defineTool({
  name: 'kv_put',
  title: 'Put an entry',
  operation: 'putKvEntry',
  description: 'Creates or overwrites the value of a key.',
  hints: { reads: false, destroys: true, repeatable: true },
  input: strict({
    key,
    value: Type.String({ minLength: 1 }),
    ttl_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 315_360_000,
        description: 'Seconds until the entry expires. Without it, the entry does not expire.',
      }),
    ),
    user,
  }),
  output: Type.Object({ user: Type.String(), key: Type.String(), updated_at: Type.String(), expires_at: optionalText }),
  async run({ key: name, value, ttl_seconds, user: owner }, { api }) {
    const expiry = ttl_seconds === undefined ? {} : { ttl_seconds };
    const body = { value, ...expiry, ...defined({ user: owner }) };
    const entry = await api<Entry>('PUT', pathOf(name), { body });
    const expires = entry.expires_at === undefined ? {} : { expires_at: entry.expires_at };
    return { data: { user: entry.user, key: entry.key, updated_at: entry.updated_at, ...expires } };
  },
});

const increment = defineTool({
  name: 'kv_increment',
  title: 'Add to a number',
  operation: 'incrementKvEntry',
  description:
    'Adds to an entry whose value is an integer; a missing entry counts as 0. Concurrent calls are all counted.',
  hints: { reads: false },
  input: strict({
    key,
    by: Type.Optional(
      Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER, description: 'Default 1.' }),
    ),
    user,
  }),
  output: Type.Object({ user: Type.String(), key: Type.String(), value: Type.String() }),
  async run({ key: name, by = 1, user: owner }, { api }) {
    const body = { key: name, by, ...defined({ user: owner }) };
    const entry = await api<Entry>('POST', '/api/v1/kv_increment', { body });
    return { data: { user: entry.user, key: entry.key, value: entry.value } };
  },
});

const list = defineTool({
  name: 'kv_list',
  title: 'List entries',
  operation: 'listKvEntries',
  description: 'Lists keys with the beginnings of their values. Use kv_get to read a whole value.',
  hints: { reads: true },
  input: strict({
    prefix: Type.Optional(Type.String({ description: 'Only keys with this prefix.' })),
    user: Type.Optional(
      Type.String({ description: 'usr_…; only entries of this user. Users always see only their own.' }),
    ),
    page: pageInput,
  }),
  output: Type.Object({
    entries: Type.Array(
      Type.Object({
        user: Type.String(),
        key: Type.String(),
        value: Type.String(),
        value_cut: Type.Optional(Type.Boolean()),
        updated_at: optionalText,
      }),
    ),
    ...pageOutput,
  }),
  async run({ prefix, user: owner, page = 1 }, { api }) {
    const query = { key: prefix, user: owner, page, page_size: toolLimits.listedMax };
    const found = pageOf(await api<Page>('GET', '/api/v1/kv', { query }), prefix ?? '', page);
    const entries = found.data.map((entry) => {
      const value = truncateText(entry.value, toolLimits.valueCharactersInListsMax);
      const cut = value.length < entry.value.length ? { value_cut: true } : {};
      return { user: entry.user, key: entry.key, value, ...cut, updated_at: entry.updated_at };
    });
    const { total_pages, total_entries } = found;
    return { data: { entries, page, total_pages, total_entries } };
  },
});

/** Filters and pages a user's list, which the API returns whole. */
function pageOf(found: Page, prefix: string, page: number) {
  if (found.total_pages !== undefined && found.total_entries !== undefined)
    return { data: found.data, total_pages: found.total_pages, total_entries: found.total_entries };
  const matching = found.data.filter((entry) => entry.key.startsWith(prefix));
  const start = (page - 1) * toolLimits.listedMax;
  return {
    data: matching.slice(start, start + toolLimits.listedMax),
    total_pages: Math.ceil(matching.length / toolLimits.listedMax),
    total_entries: matching.length,
  };
}

const remove = defineTool({
  name: 'kv_delete',
  title: 'Delete an entry',
  operation: 'deleteKvEntry',
  description: 'Permanently deletes a key and its value.',
  hints: { reads: false, destroys: true },
  input: strict({ key, user }),
  output: Type.Object({ key: Type.String(), deleted: Type.Boolean() }),
  async run({ key: name, user: owner }, { api }) {
    await api('DELETE', pathOf(name), { query: { user: owner } });
    return { data: { key: name, deleted: true } };
  },
});

const batch = defineTool({
  name: 'kv_batch',
  title: 'Change several entries',
  operation: 'batchKvEntries',
  description:
    'Reads and changes up to 100 entries of one user in order, all or nothing. With if_match (an etag of an earlier result) or if_none_match, nothing happens unless the entry is as expected.',
  hints: { reads: false, destroys: true },
  input: strict({ operations: Type.Array(kvOperation, { minItems: 1, maxItems: 100 }), user }),
  output: Type.Object({
    results: Type.Array(
      Type.Object({
        op: Type.String(),
        key: Type.String(),
        value: optionalText,
        value_cut: Type.Optional(Type.Boolean()),
        etag: optionalText,
        deleted: Type.Optional(Type.Boolean()),
      }),
    ),
  }),
  async run({ operations, user: owner }, { api }) {
    const body = { operations, ...defined({ user: owner }) };
    const { data } = await api<{ data: BatchResult[] }>('POST', '/api/v1/kv_batch', { body });
    const results = data.map(({ op, key: name, entry, etag, deleted }) => {
      const value = entry && truncateText(entry.value, toolLimits.valueCharactersInListsMax);
      return {
        op,
        key: name,
        ...(value == null ? {} : { value }),
        ...(entry && (value?.length ?? 0) < entry.value.length ? { value_cut: true } : {}),
        ...defined({ etag, deleted }),
      };
    });
    return { data: { results } };
  },
});

function pathOf(name: string): string {
  // A URL cannot end in these segments: they would change the path.
  if (name === '.' || name === '..')
    throw new AppError('invalid_parameters', 'key: cannot be . or .. here', {
      fields: [{ field: 'key', message: 'cannot be . or .. here' }],
    });
  return `/api/v1/kv/${encodeURIComponent(name)}`;
}

export const kvTools: readonly Tool[] = [get, put, increment, list, remove, batch];
