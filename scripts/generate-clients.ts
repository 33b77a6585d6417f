import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Call, type Groups, type OpenApi, readCalls, readSources, usedSchemas } from './client-calls.ts';
import { comment, member, nameOf, type Schema, type Style, typeOf } from './openapi-types.ts';
import { pythonFiles } from './python-client.ts';

/*
 * Writes what is generated in the clients from openapi.json and clients/operations.json, which gives each operation
 * its group and method: `npm run clients`. A rule test compares the files with this script's output.
 */

const header = '// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients';

const named: Style = { prefix: '', forUsers: true };
/** In the file of a group, which imports the schemas as `S`. */
const inGroup: Style = { prefix: 'S.', forUsers: true };

/** The files of the TypeScript client, by path below `clients/typescript/src`. */
function typescriptFiles(document: OpenApi, groups: Groups): Map<string, string> {
  const calls = readCalls(document, groups);
  const types = usedSchemas(document, calls).map(
    ([name, schema]) => `${comment(schema.description)}export type ${name} = ${typeOf(schema, named)};`,
  );
  const messages = Object.values(document.webhooks).map(({ post }) =>
    nameOf(post.requestBody?.content['application/json']?.schema),
  );
  const union = `/** A message to a webhook about an event of Quarry. */\nexport type WebhookMessage = ${messages.join(' | ')};`;
  const files = new Map([['generated/schema.ts', `${[header, ...types, union].join('\n\n')}\n`]]);
  for (const group of Object.keys(groups)) files.set(`generated/${group}.ts`, groupFile(group, calls));
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
  const bodyMayBeLeftOut = body !== undefined && method !== 'PUT' && !call.bodyIsRequired;
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
  if (kind === 'stream') return `${list}: EventStream<${resultType}> => c.stream(${path}, ${passed}, options)`;
  if (kind === 'pages' || kind === 'cursor')
    return `${list}: Pages<${typeOf(item ?? {}, inGroup)}, ${resultType}> => c.list(${path}, ${passed}, options)`;
  if (method === 'GET') return `${list}: Promise<${resultType}> => c.get(${path}, ${passed}, options)`;
  const inQuery = body === undefined && query.length > 0;
  const sent = keyed
    ? `c.postOnce(${path}, ${passed}, options)`
    : `c.send('${method}', ${path}, ${inQuery ? 'undefined, { ...options, query }' : `${passed}, options`})`;
  return `${list}: Promise<${resultType}> => ${sent}`;
}

/** A parameter that the server checks itself is text. */
const asText = (schema: Schema): Schema => (typeOf(schema, named) === 'unknown' ? { type: 'string' } : schema);

const camel = (name: string) =>
  name === 'path' ? 'path_' : name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The directory of each client's source, and those in it that hold nothing but generated files. */
export const clients = [
  {
    language: 'TypeScript',
    source: 'clients/typescript/src',
    files: typescriptFiles,
    generated: ['generated'],
  },
  {
    language: 'Python',
    source: 'clients/python/src/quarry_client',
    files: pythonFiles,
    generated: ['_async/generated', '_sync'],
  },
];

if (import.meta.main) {
  const { document, groups } = readSources();
  for (const { source, files, generated } of clients) {
    const directory = fileURLToPath(new URL(`../${source}`, import.meta.url));
    const texts = files(document, groups);
    for (const name of generated.filter((each) => each.endsWith('generated')))
      rmSync(join(directory, name), { recursive: true, force: true });
    for (const [path, text] of texts) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), text);
    }
  }
}
