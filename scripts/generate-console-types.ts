import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/*
 * Writes console/src/api/generated.ts, the types that the console's client has, from openapi.json:
 * `npm run console:types`. A rule test compares the file with this script's output. The available generators need
 * TypeScript's compiler API, which TypeScript 7 does not have.
 */

type Schema = {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
};
type Content = Record<string, { schema?: Schema }>;
type Operation = {
  parameters?: { name: string; in: string; required?: boolean; schema: Schema }[];
  requestBody?: { content: Content };
  responses: Record<string, { content?: Content }>;
};
export type OpenApi = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
};

/** The text of the file. */
export function consoleTypes({ paths, components }: OpenApi): string {
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema)};`,
  );
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]) => `  '${method.toUpperCase()} ${path}': ${operationType(operation)};`,
    ),
  );
  return [
    '// Written by scripts/generate-console-types.ts from openapi.json. Do not edit: npm run console:types',
    ...schemas,
    '/** Every operation by method and path: its input, and the body of a successful response. */',
    'export type Operations = {',
    ...operations,
    '};',
    '',
  ].join('\n');
}

function operationType({ parameters = [], requestBody, responses }: Operation): string {
  const given = (place: string) => {
    const members = parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, required, schema }) => `${key(name)}${required ? '' : '?'}: ${typeOf(schema)}`);
    return members.length === 0 ? 'undefined' : `{ ${members.join('; ')} }`;
  };
  const success = Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, { content }]) => contentType(content) ?? 'undefined');
  const body = requestBody === undefined ? 'undefined' : (contentType(requestBody.content) ?? 'undefined');
  const result = [...new Set(success)].join(' | ') || 'undefined';
  return `{ path: ${given('path')}; query: ${given('query')}; body: ${body}; result: ${result} }`;
}

function contentType(content: Content | undefined): string | undefined {
  const schema = content?.['application/json']?.schema;
  return schema === undefined || schema.type === 'null' ? undefined : typeOf(schema);
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? 'unknown';
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return options.map(typeOf).join(' | ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(' | ');
  switch (schema.type) {
    case 'string':
      return 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'null':
      return 'null';
    case 'array':
      return `Array<${typeOf(schema.items ?? {})}>`;
    case 'object':
      return objectType(schema);
    default:
      return 'unknown';
  }
}

function objectType({ properties = {}, required = [] }: Schema): string {
  const members = Object.entries(properties).map(
    ([name, member]) => `${key(name)}${required.includes(name) ? '' : '?'}: ${typeOf(member)}`,
  );
  return members.length === 0 ? 'Record<string, unknown>' : `{ ${members.join('; ')} }`;
}

const key = (name: string) => (/^[a-z_]\w*$/i.test(name) ? name : `'${name}'`);
const literal = (value: unknown) => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value));

if (import.meta.main) {
  const project = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));
  const openApi = JSON.parse(readFileSync(project('openapi.json'), 'utf8')) as OpenApi;
  writeFileSync(project('console/src/api/generated.ts'), consoleTypes(openApi));
}
