import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { nameOf, type Schema } from './openapi-types.ts';

/* The operations as clients call them, read from openapi.json and clients/operations.json. */

type Parameter = { name: string; in: string; required?: boolean; description?: string; schema: Schema };
type Operation = {
  operationId: string;
  summary: string;
  tags: string[];
  'x-idempotent'?: boolean;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema?: Schema }> };
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
};
export type OpenApi = {
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, { post: Operation }>;
  components: { schemas: Record<string, Schema> };
};
/** Group → method → operation id. */
export type Groups = Record<string, Record<string, string>>;

/** How a client calls one operation. */
export type Call = {
  group: string;
  name: string;
  summary: string;
  method: string;
  /** The path, with its parameters in braces. */
  path: string;
  pathParameters: Parameter[];
  query: Parameter[];
  /** Conditional headers, which the caller sets. */
  headers: Parameter[];
  body: Schema | undefined;
  /** Whether the body has required members. */
  bodyIsRequired: boolean;
  /** The body of the response, or the data of an event. */
  result: Schema | undefined;
  /** A list by page or by cursor, with its items; a stream of events; or one response. */
  kind: 'pages' | 'cursor' | 'stream' | 'one';
  item: Schema | undefined;
  /** Whether POST takes Idempotency-Key. */
  keyed: boolean;
};

/** The calls of all groups, in the order of the table. Throws if the table names an operation that does not exist. */
export function readCalls({ paths, components: { schemas } }: OpenApi, groups: Groups): Call[] {
  const operations = new Map(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [operation.operationId, { path, method, operation }]),
    ),
  );
  return Object.entries(groups).flatMap(([group, methods]) =>
    Object.entries(methods).map(([name, id]): Call => {
      const found = operations.get(id);
      if (found === undefined)
        throw new Error(`clients/operations.json names ${id}, which openapi.json does not have.`);
      const { path, method, operation } = found;
      const given = (place: string) => (operation.parameters ?? []).filter((parameter) => parameter.in === place);
      const success = Object.entries(operation.responses).find(([status]) => status.startsWith('2'))?.[1].content ?? {};
      const result = (success['text/event-stream'] ?? success['application/json'])?.schema;
      const body =
        method === 'delete' && given('query').length > 0
          ? undefined
          : operation.requestBody?.content['application/json']?.schema;
      const list = 'text/event-stream' in success ? undefined : listOf(result, schemas);
      return {
        ...{ group, name, summary: operation.summary, method: method.toUpperCase(), path },
        pathParameters: given('path'),
        query: given('query'),
        headers: given('header').filter((parameter) => /^If-/.test(parameter.name)),
        ...{ body, bodyIsRequired: body !== undefined && isRequired(body, schemas), result },
        ...('text/event-stream' in success ? { kind: 'stream' as const } : { kind: list?.kind ?? ('one' as const) }),
        item: list?.item,
        keyed: operation['x-idempotent'] === true,
      };
    }),
  );
}

function isRequired(body: Schema, schemas: Record<string, Schema>): boolean {
  const { required = [], type } = schemas[nameOf(body) ?? ''] ?? body;
  return required.length > 0 && !(Array.isArray(type) && type.includes('null'));
}

/** How a response is a list; undefined for any other response. */
function listOf(result: Schema | undefined, schemas: Record<string, Schema>): Pick<Call, 'kind' | 'item'> | undefined {
  const schema = schemas[nameOf(result) ?? ''];
  const own = schema?.allOf?.at(-1) ?? schema;
  const item = own?.properties?.data?.items;
  if (item === undefined) return undefined;
  if (schema?.allOf !== undefined || own?.properties?.has_next !== undefined) return { kind: 'pages', item };
  const cursors = own?.properties?.after_cursor ?? own?.properties?.next_cursor;
  return cursors === undefined ? undefined : { kind: 'cursor', item };
}

/** The named schemas that the calls and the messages to webhooks use, in the order of the document. */
export function usedSchemas({ components: { schemas }, webhooks }: OpenApi, calls: Call[]): [string, Schema][] {
  const used = new Set<string>();
  const add = (part: unknown): void => {
    if (typeof part !== 'object' || part === null) return;
    const name = nameOf(part as Schema);
    if (name !== undefined && !used.has(name)) {
      used.add(name);
      add(schemas[name]);
    }
    for (const inner of Object.values(part)) add(inner);
  };
  add(calls);
  add(webhooks);
  add({ $ref: 'Error' });
  add({ $ref: 'Upload' });
  return Object.entries(schemas).filter(([name]) => used.has(name));
}

/** Reads the two sources. */
export function readSources(): { document: OpenApi; groups: Groups } {
  const read = (path: string) =>
    JSON.parse(readFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), 'utf8'));
  return { document: read('openapi.json') as OpenApi, groups: read('clients/operations.json') as Groups };
}
