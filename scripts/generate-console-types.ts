import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { member, type Schema, type Style, typeOf } from './openapi-types.ts';

/*
 * Writes console/src/api/generated.ts, the types that the console's client has, from openapi.json:
 * `npm run console:types`. A rule test compares the file with this script's output. The available generators need
 * TypeScript's compiler API, which TypeScript 7 does not have.
 */

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

const style: Style = { prefix: '', forUsers: false };

/** The text of the file. */
export function consoleTypes({ paths, components }: OpenApi): string {
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema, style)};`,
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
      .map(({ name, required, schema }) => member(name, schema, required === true, style));
    return members.length === 0 ? 'undefined' : `{ ${members.join(' ')} }`;
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
  return schema === undefined || schema.type === 'null' ? undefined : typeOf(schema, style);
}

if (import.meta.main) {
  const project = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));
  const openApi = JSON.parse(readFileSync(project('openapi.json'), 'utf8')) as OpenApi;
  writeFileSync(project('console/src/api/generated.ts'), consoleTypes(openApi));
}
