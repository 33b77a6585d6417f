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

/** The usual five operations on one kind of resource. An absent operation is not registered. */
type Resource<Row, Create extends TSchema, Update extends TSchema, Query extends TObject> = {
  /** Path of the collection, such as `/orgs`. */
  path: string;
  /** Name of the path parameter, such as `org`. */
  param: string;
  /** Names for operation ids and summaries: `Org` and `Orgs`, `organisation` and `organisations`. */
  ids: [one: string, many: string];
  words: [one: string, many: string];
  tag: string;
  schema: TSchema & { $id?: string };
  present: (row: Row, caller: Caller) => unknown | Promise<unknown>;
  /** The descriptions of the operations. */
  about: Partial<Record<'create' | 'list' | 'get' | 'update' | 'remove', string>>;
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
  const { tag, param, present, about, create, list, get, update, remove } = resource;
  const [one, many] = resource.ids;
  const [oneWord, manyWords] = resource.words;
  const item = ref(resource.schema);
  const onePath = `${resource.path}/:${param}`;
  const params = Type.Object({ [param]: Type.String() });
  const idOf = (given: unknown) => (given as Record<string, string>)[param] ?? '';
  if (create)
    api.provisioning(create.callers, {
      method: 'POST',
      path: resource.path,
      operationId: `create${one}`,
      tag,
      summary: `Create ${oneWord}`,
      ...descriptionOf(about.create),
      body: create.body,
      ...defined({ budget: create.budget, idempotency: create.idempotency }),
      responses: { 201: item },
      handler: async ({ caller, body }) => present(await create.run(caller, body as Static<Create>), caller),
    });
  if (list)
    api.provisioning(list.callers, {
      method: 'GET',
      path: resource.path,
      operationId: `list${many}`,
      tag,
      summary: `List ${manyWords}`,
      ...descriptionOf(about.list),
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
      operationId: `get${one}`,
      tag,
      summary: `Get ${oneWord}`,
      ...descriptionOf(about.get),
      params,
      responses: { 200: item },
      handler: async ({ caller, params: given }) => present(await get.run(caller, idOf(given)), caller),
    });
  if (update)
    api.provisioning(update.callers, {
      method: 'PATCH',
      path: onePath,
      operationId: `update${one}`,
      tag,
      summary: `Update ${oneWord}`,
      ...descriptionOf(about.update),
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
      operationId: `delete${one}`,
      tag,
      summary: `Delete ${oneWord}`,
      ...descriptionOf(about.remove),
      params,
      responses: { 204: null },
      handler: ({ caller, params: given }) => remove.run(caller, idOf(given)),
    });
}

function descriptionOf(description: string | undefined): { description?: string } {
  return description === undefined ? {} : { description };
}
