import type { Db } from '../db/database.ts';
import { textBudget } from '../http/body/budgets.ts';
import { everyCaller } from '../http/route/access.ts';
import { type Api, ref } from '../http/route/route.ts';
import type { StreamHub } from '../http/streams/sse.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import { presentBatchResult, presentEntry } from './present.ts';
import {
  incrementKvBody,
  kvBatchBody,
  kvBatchResponse,
  kvChangeSchema,
  kvEntrySchema,
  kvPrefixPage,
  kvPrefixQuery,
  kvWatchQuery,
} from './schema.ts';
import type { KvService } from './service.ts';
import { entityTag } from './tag.ts';
import { type KvWatch, kvTopic } from './watch.ts';

const tag = 'Key-value storage';
/** Keys and values of a whole batch. */
const batchBytesMax = 4 * 1024 * 1024;

/** Routes for several entries. Their paths are outside of `/kv/`, below which every path is a key. */
export function registerKvCollectionRoutes(
  api: Api,
  { db, kv, kvWatch, streams }: { db: Db; kv: KvService; kvWatch: KvWatch; streams: StreamHub },
): void {
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/kv_entries',
    operationId: 'listKvEntriesByKey',
    tag,
    summary: "List a user's entries by key",
    description: 'Pages of the entries of one user in the order of their keys (by bytes), optionally with a prefix.',
    query: kvPrefixQuery,
    responses: { 200: kvPrefixPage },
    async handler({ caller, query }) {
      const { entries, next } = await kv.listByKey(db, caller, query, readCursor(query.cursor));
      return { data: entries.map(presentEntry), next_cursor: next === undefined ? null : cursorOf(next) };
    },
  });

  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/kv_increment',
    operationId: 'incrementKvEntry',
    protocol: 'tagged',
    audit: 'data',
    tag,
    summary: 'Add to a number',
    description:
      'Adds `by` to an entry whose value is a decimal integer of at most 64 bits, and returns the entry. A missing entry counts as 0. Concurrent increments are all counted.',
    body: incrementKvBody,
    responses: { 200: ref(kvEntrySchema) },
    async handler({ caller, body, reply }) {
      const entry = await kv.increment(db, caller, body);
      reply.header('etag', entityTag(entry));
      return presentEntry(entry);
    },
  });

  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/kv_batch',
    operationId: 'batchKvEntries',
    audit: 'data',
    tag,
    summary: 'Change several entries in one request',
    description:
      'Up to 100 operations on the entries of one user, in order and all or nothing: a condition that fails (412), a wrong member (422) or the quota leaves everything as it was. Errors name the operation, such as `operations.3.key`.',
    body: kvBatchBody,
    budget: { ...textBudget(batchBytesMax), valuesMax: 2_000 },
    responses: { 200: kvBatchResponse },
    async handler({ caller, body }) {
      return { data: (await kv.batch(db, caller, body)).map(presentBatchResult) };
    },
  });

  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/kv_watch',
    operationId: 'watchKvEntries',
    protocol: 'events',
    tag,
    summary: "Follow changes of a user's entries",
    description:
      'Server-Sent Events: first `ready`, after which no change is missed; then `put` with the entry, `delete` and `expire` with the key, in the order of their commits. With `Last-Event-ID`, continues after that event. `reset` means that changes in between are no longer kept (1,000 for each user): read the entries again. Without `key` and `prefix`, follows all entries.',
    query: kvWatchQuery,
    responses: { 200: ref(kvChangeSchema) },
    async handler({ caller, query, request, reply }) {
      const { key, prefix } = query;
      if (key !== undefined && prefix !== undefined) throw invalidField('prefix', 'cannot be combined with key');
      const { appId, userId } = await kvWatch.follow(caller, query.user);
      const accepts = ({ key: changed }: { key: string }) =>
        key === undefined ? changed.startsWith(prefix ?? '') : changed === key;
      return streams.open(request, reply, kvTopic, appId, userId, accepts);
    },
  });
}

function cursorOf(key: string): string {
  return Buffer.from(key).toString('base64url');
}

/** The key after which a page begins. Throws 400 `invalid_cursor`. */
function readCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const key = Buffer.from(cursor, 'base64url').toString();
  if (key === '' || key.includes('\0') || cursorOf(key) !== cursor)
    throw new AppError('invalid_cursor', 'The cursor was not returned by this list.');
  return key;
}
