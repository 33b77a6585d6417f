import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { comment, member, nameOf, type Schema, type Style, typeOf } from './openapi-types.ts';

/*
 * Writes what is generated in the clients from openapi.json and clients/operations.json, which gives each operation
 * its group and method: `npm run clients`. A rule test compares the files with this script's output.
 */

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
type OpenApi = {
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, { post: Operation }>;
  components: { schemas: Record<string, Schema> };
};
/** Group → method → operation id. */
type Groups = Record<string, Record<string, string>>;

/** How a client calls one operation. */
type Call = {
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
  result: Schema | undefined;
  /** A list by page or by cursor, with its items; a stream of events; or one response. */
  kind: 'pages' | 'cursor' | 'stream' | 'one';
  item: Schema | undefined;
  /** Whether POST takes Idempotency-Key. */
  keyed: boolean;
};

const header = '// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients';

const named: Style = { prefix: '', forUsers: true };
/** In the file of a group, which imports the schemas as `S`. */
const inGroup: Style = { prefix: 'S.', forUsers: true };

/** The calls of all groups, in the order of the table. Throws if the table names an operation that does not exist. */
function readCalls({ paths, components: { schemas } }: OpenApi, groups: Groups): Call[] {
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
      const result = success['application/json']?.schema;
      const list = 'text/event-stream' in success ? undefined : listOf(result, schemas);
      return {
        ...{ group, name, summary: operation.summary, method: method.toUpperCase(), path },
        pathParameters: given('path'),
        query: given('query'),
        headers: given('header').filter((parameter) => /^If-/.test(parameter.name)),
        body:
          method === 'delete' && given('query').length > 0
            ? undefined
            : operation.requestBody?.content['application/json']?.schema,
        result,
        ...('text/event-stream' in success ? { kind: 'stream' as const } : { kind: list?.kind ?? ('one' as const) }),
        item: list?.item,
        keyed: operation['x-idempotent'] === true,
      };
    }),
  );
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
function usedSchemas({ components: { schemas }, webhooks }: OpenApi, calls: Call[]): [string, Schema][] {
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

/** The files of the TypeScript client, by path below `clients/typescript/src/generated`. */
export function typescriptFiles(document: OpenApi, groups: Groups): Map<string, string> {
  const calls = readCalls(document, groups);
  const types = usedSchemas(document, calls).map(
    ([name, schema]) => `${comment(schema.description)}export type ${name} = ${typeOf(schema, named)};`,
  );
  const messages = Object.values(document.webhooks).map(({ post }) =>
    nameOf(post.requestBody?.content['application/json']?.schema),
  );
  const union = `/** A message to a webhook about an event of Quarry. */\nexport type WebhookMessage = ${messages.join(' | ')};`;
  const files = new Map([['schema.ts', `${[header, ...types, union].join('\n\n')}\n`]]);
  for (const group of Object.keys(groups)) files.set(`${group}.ts`, groupFile(group, calls));
  return files;
}

function groupFile(group: string, calls: Call[]): string {
  const own = calls.filter((call) => call.group === group);
  const methods = own.map((call) => `  /** ${call.summary}. */\n  ${call.name}: ${methodOf(call)},`);
  const kinds = [
    ...new Set(own.map(({ kind }) => ({ pages: 'Pages', cursor: 'Pages', stream: 'EventStream', one: '' })[kind])),
  ];
  const types = ['CallOptions', 'Connection', ...kinds.filter((kind) => kind !== '')].sort();
  const path = own.some(({ pathParameters }) => pathParameters.length > 0);
  return [
    header,
    `import ${path ? `{ ${[...types.map((type) => `type ${type}`), 'path'].join(', ')} }` : `type { ${types.join(', ')} }`} from '../connection.ts';`,
    ...(methods.join().includes(inGroup.prefix) ? [`import type * as S from './schema.ts';`] : []),
    '',
    `export const ${group} = (c: Connection) => ({`,
    ...methods,
    '});',
    '',
  ].join('\n');
}

function methodOf(call: Call): string {
  const { method, pathParameters, query, headers, body, result, kind, item, keyed } = call;
  const parameters = pathParameters.map(({ name }) => `${camel(name)}: string`);
  const queryType = `{ ${query.map((one) => member(one.name, asText(one.schema), one.required === true, named, one.description)).join(' ')} }`;
  const needsQuery = query.some((one) => one.required === true);
  const bodyMayBeLeftOut = body !== undefined && method !== 'PUT' && !needsBody(body);
  if (body !== undefined) parameters.push(`body${bodyMayBeLeftOut ? '?' : ''}: ${typeOf(body, inGroup)}`);
  else if (query.length > 0) parameters.push(`query${needsQuery ? '' : '?'}: ${queryType}`);
  const conditions = headers.map(({ name }) => `'${name}'?: string`);
  const more = [
    ...(conditions.length > 0 ? [`headers?: { ${conditions.join('; ')} }`] : []),
    ...(body !== undefined && query.length > 0 ? [`query?: ${queryType}`] : []),
  ];
  parameters.push(`options?: CallOptions${more.length > 0 ? ` & { ${more.join('; ')} }` : ''}`);
  const path = call.path.includes('{')
    ? `path\`${call.path.replace(/\{(\w+)\}/g, (_, name: string) => `\${${name === 'path' ? 'path_.split("/")' : camel(name)}}`)}\``
    : `'${call.path}'`;
  const passed = body !== undefined ? 'body' : query.length > 0 ? 'query' : 'undefined';
  const resultType = result === undefined ? 'void' : typeOf(result, inGroup);
  const list = `(${parameters.join(', ')})`;
  if (kind === 'stream') return `${list}: EventStream => c.stream(${path}, ${passed}, options)`;
  if (kind === 'pages' || kind === 'cursor')
    return `${list}: Pages<${typeOf(item ?? {}, inGroup)}, ${resultType}> => c.list(${path}, ${passed}, options)`;
  if (method === 'GET') return `${list}: Promise<${resultType}> => c.get(${path}, ${passed}, options)`;
  const inQuery = body === undefined && query.length > 0;
  const sent = keyed
    ? `c.postOnce(${path}, ${passed}, options)`
    : `c.send('${method}', ${path}, ${inQuery ? 'undefined, { ...options, query }' : `${passed}, options`})`;
  return `${list}: Promise<${resultType}> => ${sent}`;

  function needsBody(schema: Schema): boolean {
    return bodies.get(nameOf(schema) ?? '') ?? true;
  }
}

/** A parameter that the server checks itself is text. */
const asText = (schema: Schema): Schema => (typeOf(schema, named) === 'unknown' ? { type: 'string' } : schema);

/** Whether a body has required members, by the name of its schema. */
const bodies = new Map<string, boolean>();

const camel = (name: string) =>
  name === 'path' ? 'path_' : name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Reads the two sources. */
export function readSources(): { document: OpenApi; groups: Groups } {
  const read = (path: string) => JSON.parse(readFileSync(project(path), 'utf8'));
  const document = read('openapi.json') as OpenApi;
  for (const [name, { required = [], type }] of Object.entries(document.components.schemas))
    bodies.set(name, required.length > 0 && !(Array.isArray(type) && type.includes('null')));
  return { document, groups: read('clients/operations.json') as Groups };
}

const project = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

if (import.meta.main) {
  const { document, groups } = readSources();
  const directory = project('clients/typescript/src/generated');
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  for (const [name, text] of typescriptFiles(document, groups)) writeFileSync(`${directory}/${name}`, text);
}
