import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Db } from '../db/database.ts';
import { type BodyBudget, textBudget } from '../http/body/budgets.ts';
import { isCurrent } from '../http/body/ranges.ts';
import { everyCaller } from '../http/route/access.ts';
import { mapAsync } from '../http/route/lists.ts';
import { page, pageRequest } from '../http/route/pages.ts';
import { type Api, ref } from '../http/route/route.ts';
import { checkQuery } from '../http/route/validation.ts';
import { invalidField } from '../lib/errors.ts';
import type { Caller } from '../tenancy/caller.ts';
import { readPathKey } from './paths.ts';
import { readPrecondition } from './precondition.ts';
import { presentEntry, presentListEntry } from './present.ts';
import {
  createKvBody,
  deleteKvBody,
  kvEntrySchema,
  kvListSchema,
  kvUserQuery,
  listKvQuery,
  putKvBody,
} from './schema.ts';
import type { KvService } from './service.ts';
import type { KvEntry } from './store.ts';
import { entityTag } from './tag.ts';

const tag = 'Key-value storage';
const path = '/api/v1/kv';
const keyPath = '/api/v1/kv/:key';

type KvRouteDeps = { db: Db; kv: KvService };

/** Key-value storage. The server must be created with `rewriteUrl: rewriteKvUrl`. */
export function registerKvRoutes(api: Api, deps: KvRouteDeps): void {
  const { db, kv } = deps;
  const { keyBytesMax, valueBytesMax } = kv.limits;
  const budget = textBudget(keyBytesMax + valueBytesMax);

  api.app(everyCaller, {
    method: 'GET',
    path,
    operationId: 'listKvEntries',
    tag,
    summary: 'List entries',
    description:
      'End users get all their own entries without pagination, and query parameters are ignored. Developers and secret keys get pages of the entries of all users, newest first.',
    query: listKvQuery,
    uncheckedQuery: true,
    responses: { 200: kvListSchema },
    async handler({ caller, request }) {
      if (caller.kind === 'user') return { data: mapAsync(kv.listOwn(db, caller), presentEntry) };
      const query = checkQuery(listKvQuery, request.query);
      const wanted = pageRequest(query);
      const { entries, total } = await kv.list(db, caller, query, wanted);
      return page(wanted, mapAsync(entries, presentListEntry), total);
    },
  });

  api.app(everyCaller, {
    method: 'POST',
    path,
    operationId: 'createKvEntry',
    protocol: 'tagged',
    audit: 'data',
    tag,
    summary: 'Create an entry',
    description:
      '422 if the user already has the key; PUT creates or overwrites. With `ttl_seconds`, the entry expires.',
    body: createKvBody,
    budget,
    responses: { 200: ref(kvEntrySchema) },
    async handler({ caller, body, reply }) {
      return sendEntry(reply, await kv.create(db, caller, body));
    },
  });

  registerEntryRoutes(api, deps, budget);
}

/** The routes of one entry, by its key. */
function registerEntryRoutes(api: Api, { db, kv }: KvRouteDeps, budget: BodyBudget): void {
  api.app(everyCaller, {
    method: 'GET',
    path: keyPath,
    operationId: 'getKvEntry',
    protocol: 'cached',
    tag,
    summary: 'Get an entry',
    description:
      'The key is everything after `/kv/`, percent-encoded or literal. `ETag` identifies the state of the entry; 304 when `If-None-Match` names it.',
    query: kvUserQuery,
    uncheckedQuery: true,
    responses: { 200: ref(kvEntrySchema) },
    async handler({ caller, params, request, reply }) {
      const key = readPathKey(keyOf(params));
      const entry = await kv.get(db, caller, key, userInQuery(caller, request));
      const tag = entityTag(entry);
      if (request.headers['if-none-match'] === undefined || !isCurrent(request.headers, tag))
        return sendEntry(reply, entry);
      return reply.code(304).header('etag', tag).send();
    },
  });

  api.app(everyCaller, {
    method: 'PUT',
    path: keyPath,
    operationId: 'putKvEntry',
    protocol: 'conditional',
    audit: 'data',
    tag,
    summary: 'Create or overwrite an entry',
    description:
      '`If-Match` and `If-None-Match` make the write conditional: 412 when the entry is in another state. Without `ttl_seconds` the entry no longer expires.',
    body: putKvBody,
    budget,
    responses: { 200: ref(kvEntrySchema) },
    async handler({ caller, params, body, request, reply }) {
      const key = readPathKey(keyOf(params));
      return sendEntry(reply, await kv.put(db, caller, key, body, preconditionOf(request)));
    },
  });

  api.app(everyCaller, {
    method: 'DELETE',
    path: keyPath,
    operationId: 'deleteKvEntry',
    protocol: 'conditional',
    audit: 'data',
    tag,
    summary: 'Delete an entry',
    description: 'Developers and secret keys name the user in the query or in a JSON body.',
    query: kvUserQuery,
    uncheckedQuery: true,
    body: deleteKvBody,
    responses: { 204: null },
    async handler({ caller, params, body, request }) {
      const key = readPathKey(keyOf(params));
      const user = userInQuery(caller, request);
      if (user !== undefined && body?.user !== undefined && user !== body.user)
        throw invalidField('user', 'differs between the query and the body');
      await kv.delete(db, caller, key, user ?? body?.user, preconditionOf(request));
    },
  });
}

/** The path parameter created by `rewriteKvUrl`. */
function keyOf(params: object): string {
  return (params as { key: string }).key;
}

/** The user that the query names. An end user's query is ignored, whatever it contains. */
function userInQuery(caller: Caller, { query }: FastifyRequest): unknown {
  return caller.kind === 'user' ? undefined : checkQuery(kvUserQuery, query).user;
}

function preconditionOf({ headers }: FastifyRequest) {
  return readPrecondition({ 'if-match': headers['if-match'], 'if-none-match': headers['if-none-match'] });
}

function sendEntry(reply: FastifyReply, entry: KvEntry) {
  reply.header('etag', entityTag(entry));
  return presentEntry(entry);
}
