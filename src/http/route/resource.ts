import type { Static, TObject, TSchema } from 'typebox';
import { defined } from '../../lib/defined.ts';
import { Type } from '../../lib/type.ts';
import type { Caller } from '../../tenancy/caller.ts';
import type { BodyBudget } from '../body/budgets.ts';
import type { AppCallerKind } from './access.ts';
import type { IdempotencyMode } from './idempotency-key.ts';
import { type PageRequest, pageOf, pageQuery, readPage } from './pages.ts';
import { type Api, ref } from './route.ts';

type Callers = readonly AppCallerKind[];

type Operation = 'create' | 'list' | 'get' | 'update' | 'remove';

/** What the reference shows of the operations. */
type Described = {
  /** Names for operation ids and summaries: `Org` and `Orgs`, `organisation` and `organisations`. */
  ids: [one: string, many: string];
  words: [one: string, many: string];
  tag: string;
  /** The descriptions of the operations. */
  about: Partial<Record<Operation, string>>;
};

/** The usual five operations on one kind of resource. An absent operation is not registered. */
type Resource<Row, Create extends TSchema, Update extends TSchema, Query extends TObject> = Described & {
  /** Path of the collection, such as `/orgs`. */
  path: string;
  /** Name of the path parameter, such as `org`. */
  param: string;
  schema: TSchema & { $id?: string };
  present: (row: Row, caller: Caller) => unknown | Promise<unknown>;
  create?: {
    callers: Callers;
    body: Create;
    budget?: BodyBudget;
    idempotency?: IdempotencyMode | ((body: Static<Create>) => IdempotencyMode);
    run: (caller: Caller, body: Static<Create>) => Promise<Row>;
  };
  list?: {
    callers: Callers;
    query?: Query;
    run: (caller: Caller, request: PageRequest, query: Static<Query>) => Promise<[Row[], number]>;
  };
  get?: { callers: Callers; run: (caller: Caller, id: string) => Promise<Row> };
  update?: {
    callers: Callers;
    body: Update;
    budget?: BodyBudget;
    run: (caller: Caller, id: string, body: Static<Update>) => Promise<Row>;
  };
  remove?: { callers: Callers; run: (caller: Caller, id: string) => Promise<void> };
};

/** Registers a resource's operations under `/api/v1` and under the developer path of the app. */
export function registerResource<Row, Create extends TSchema, Update extends TSchema, Query extends TObject>(
  api: Api,
  resource: Resource<Row, Create, Update, Query>,
): void {
  const { param, present, create, list, get, update, remove } = resource;
  const item = ref(resource.schema);
  const onePath = `${resource.path}/:${param}`;
  const params = Type.Object({ [param]: Type.String() });
  const idOf = (given: unknown) => (given as Record<string, string>)[param] ?? '';
  if (create)
    api.provisioning(create.callers, {
      method: 'POST',
      path: resource.path,
      ...describe(resource, 'create'),
      body: create.body,
      ...defined({ budget: create.budget, idempotency: create.idempotency }),
      responses: { 201: item },
      handler: async ({ caller, body }) => present(await create.run(caller, body as Static<Create>), caller),
    });
  if (list)
    api.provisioning(list.callers, {
      method: 'GET',
      path: resource.path,
      ...describe(resource, 'list'),
      query: Type.Object({ ...pageQuery, ...list.query?.properties }),
      responses: { 200: pageOf(item) },
      handler: ({ caller, query }) =>
        readPage(
          query,
          (request) => list.run(caller, request, query as Static<Query>),
          (row) => present(row, caller),
        ),
    });
  if (get)
    api.provisioning(get.callers, {
      method: 'GET',
      path: onePath,
      ...describe(resource, 'get'),
      params,
      responses: { 200: item },
      handler: async ({ caller, params: given }) => present(await get.run(caller, idOf(given)), caller),
    });
  if (update)
    api.provisioning(update.callers, {
      method: 'PATCH',
      path: onePath,
      ...describe(resource, 'update'),
      params,
      body: update.body,
      ...defined({ budget: update.budget }),
      responses: { 200: item },
      handler: async ({ caller, params: given, body }) =>
        present(await update.run(caller, idOf(given), body as Static<Update>), caller),
    });
  if (remove)
    api.provisioning(remove.callers, {
      method: 'DELETE',
      path: onePath,
      ...describe(resource, 'remove'),
      params,
      responses: { 204: null },
      handler: ({ caller, params: given }) => remove.run(caller, idOf(given)),
    });
}

function describe({ ids, words, tag, about }: Described, operation: Operation) {
  const number = operation === 'list' ? 1 : 0;
  const verb = operation === 'remove' ? 'delete' : operation;
  return {
    ...{ tag, operationId: `${verb}${ids[number]}` },
    summary: `${verb.charAt(0).toUpperCase()}${verb.slice(1)} ${words[number]}`,
    ...defined({ description: about[operation] }),
  };
}
