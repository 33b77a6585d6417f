import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Call, type Groups, type OpenApi, readCalls, usedSchemas } from './client-calls.ts';
import { pythonTypes, type TypeNames } from './python-types.ts';

/*
 * Writes the Python client: the types, a class for each group of operations, and the synchronous half, which is the
 * asynchronous one without `async` and `await`.
 */

const source = fileURLToPath(new URL('../clients/python/src/quarry_client/', import.meta.url));
const header = '# Written by scripts/python-client.ts. Do not edit: npm run clients';

/** Written by hand in each half: threads and tasks wait, lock and read files in different ways. */
const ownOfEachHalf = 'runtime.py';

/** Calls that also exist in a form that waits for the end of what they start. */
const waiting: Record<string, { name: string; until: string; words: string }> = {
  'automations.invoke': {
    name: 'run',
    until: 'run_end',
    words: 'Invoke an automation, and wait until its run has ended',
  },
  'extractions.create': {
    name: 'run',
    until: 'extraction_end',
    words: 'Create an extraction, and wait until it has ended',
  },
  'knowledge.ingest': { name: 'add', until: 'ingestion_end', words: 'Ingest content, and wait until it can be found' },
};

/** The generated files of the Python client, by path below `clients/python/src/quarry_client`. */
export function pythonFiles(document: OpenApi, groups: Groups): Map<string, string> {
  const calls = readCalls(document, groups);
  const { text, names } = pythonTypes(document, usedSchemas(document, calls));
  const asynchronous = new Map([['_async/generated/__init__.py', `${header}\n`]]);
  for (const group of Object.keys(groups))
    asynchronous.set(
      `_async/generated/${group}.py`,
      groupFile(
        group,
        calls.filter((call) => call.group === group),
        names,
      ),
    );
  const written = readdirSync(`${source}_async`).filter((name) => name.endsWith('.py') && name !== ownOfEachHalf);
  const all = [
    ...asynchronous,
    ...written.map((name): [string, string] => [`_async/${name}`, readFileSync(`${source}_async/${name}`, 'utf8')]),
  ];
  const synchronous = all.map(([path, text]): [string, string] => [
    path.replace('_async/', '_sync/'),
    synchronousOf(text),
  ]);
  return new Map([['types.py', `${header}\n${text}`], ...asynchronous, ...synchronous]);
}

/** The synchronous form of an asynchronous file. */
export function synchronousOf(text: string): string {
  const own = text
    .replace(/\basync (def|for|with)\b/g, '$1')
    .replace(/\bawait /g, '')
    .replace(/\bAsync([A-Z]\w*)/g, '$1')
    .replace(/\b__a(iter|next|enter|exit)__/g, '__$1__')
    .replace(/\bStopAsyncIteration\b/g, 'StopIteration')
    .replace(/\ba(close|read|iter_bytes)\b/g, '$1')
    .replace(/\b_async\b/g, '_sync');
  return own.startsWith(header) ? own : `${header}\n${own}`;
}

function groupFile(group: string, calls: Call[], names: TypeNames): string {
  const methods = calls.flatMap((call) => {
    const waits = waiting[`${group}.${call.name}`];
    return [methodOf(call, names), ...(waits === undefined ? [] : [methodOf(call, names, waits)])];
  });
  const body = methods.join('\n\n');
  const has = (word: string) => new RegExp(`\\b${word}\\b`).test(body);
  const typing = ['Any', 'Dict', 'List', 'Literal', 'Optional', 'Union'].filter(has);
  const connection = ['AsyncConnection', ...['AsyncEventStream', 'AsyncPages'].filter(has)];
  const shared = ['OMIT', 'Maybe', 'given', 'path'].filter(has);
  const until = calls.map((call) => waiting[`${group}.${call.name}`]?.until).filter((name) => name !== undefined);
  return [
    header,
    'from __future__ import annotations',
    '',
    `from typing import ${typing.join(', ')}`,
    '',
    ...(has('types') ? ['from ... import types'] : []),
    ...(shared.length > 0 ? [`from ..._shared import ${shared.join(', ')}`] : []),
    `from ..connection import ${connection.join(', ')}`,
    'from ..runtime import CallOptions',
    ...(until.length > 0 ? [`from ..waiting import ${until.join(', ')}`] : []),
    '',
    '',
    `class Async${className(group)}Operations:`,
    '    def __init__(self, connection: AsyncConnection) -> None:',
    '        self._connection = connection',
    '',
    body,
    '',
  ].join('\n');
}

type Argument = { name: string; sent: string; type: string; required: boolean; words: string | undefined };

function methodOf(call: Call, names: TypeNames, waits?: { name: string; until: string; words: string }): string {
  const { method, result, kind, item, keyed } = call;
  const query = call.query.map(
    (one): Argument => ({
      ...{ name: one.name, sent: one.name, required: one.required === true, words: one.description },
      type: names.inParameter(one.schema),
    }),
  );
  const body = call.body === undefined ? [] : names.members(call.body);
  const headers = call.headers.map(
    ({ name, description }): Argument => ({
      ...{ name: name.toLowerCase().replaceAll('-', '_'), sent: name, type: 'str', required: false },
      words: description,
    }),
  );
  if (body.length > 0 && query.length > 0) throw new Error(`${call.name} has a body and a query.`);
  const named = [...body, ...query, ...headers].sort((a, b) => Number(b.required) - Number(a.required));
  // `models.update(model_id, model=…)`: the one in the path and one in the body may have the same name.
  const inPath = (name: string) => (named.some((each) => each.name === name) ? `${name}_id` : snake(name));
  const positional = call.pathParameters.map(({ name }) => `${inPath(name)}: str`);
  const parameters = [
    'self',
    ...positional,
    ...(named.length > 0 ? ['*'] : []),
    ...named.map(({ name, type, required }) => `${name}: ${required ? type : `Maybe[${type}] = OMIT`}`),
    'options: Optional[CallOptions] = None',
  ];
  const path = pathOf(call, inPath);
  const content = call.body !== undefined ? givenOf(body) : query.length > 0 ? givenOf(query) : 'None';
  const conditions = headers.length > 0 ? `, ${givenOf(headers)}` : '';
  const resultType = result === undefined ? 'None' : names.typeOf(result);
  const words = documentation(
    waits?.words ?? call.summary,
    named.map(({ name, words }) => [name, words]),
  );
  const define = (isAsync: boolean, type: string, lines: string[]) => {
    const list = [...parameters].join(', ');
    const begin = `    ${isAsync ? 'async ' : ''}def ${waits?.name ?? snake(call.name)}(`;
    const signature =
      begin.length + list.length + type.length < 110
        ? `${begin}${list}) -> ${type}:`
        : `${begin}\n${parameters.map((one) => `        ${one},\n`).join('')}    ) -> ${type}:`;
    return [signature, words, ...lines.map((line) => `        ${line}`)].join('\n');
  };
  if (kind === 'stream')
    return define(false, `AsyncEventStream[${names.ofEvents(result ?? {})}]`, [
      `return AsyncEventStream(self._connection, ${path}, ${content}, options)`,
    ]);
  if (kind === 'pages' || kind === 'cursor')
    return define(false, `AsyncPages[${names.typeOf(item ?? {})}, ${resultType}]`, [
      `return AsyncPages(self._connection, ${path}, ${content}, options)`,
    ]);
  const place =
    method === 'GET' || (call.body === undefined && query.length > 0) ? `query=${content}` : `body=${content}`;
  const sent = content === 'None' ? '' : `, ${place}`;
  const sending = `await self._connection.call("${method}", ${path}${sent}${conditions === '' ? '' : `, headers=${givenOf(headers)}`}${keyed ? ', keyed=True' : ''}, options=options)`;
  if (result === undefined) return define(true, 'None', [sending]);
  const ending =
    waits === undefined ? 'return response' : `return await ${waits.until}(self._connection, response, options)`;
  return define(true, resultType, [`response: ${resultType} = ${sending}`, ending]);
}

const givenOf = (list: Argument[]) =>
  list.length === 0
    ? '{}'
    : list.every(({ name, sent }) => name === sent)
      ? `given(${list.map(({ name }) => `${name}=${name}`).join(', ')})`
      : `given(**{${list.map(({ name, sent }) => `"${sent}": ${name}`).join(', ')}})`;

function pathOf({ path, pathParameters }: Call, inPath: (name: string) => string): string {
  if (pathParameters.length === 0) return `"${path}"`;
  const values = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) =>
    name === 'path' ? 'path_.split("/")' : inPath(name),
  );
  return `path("${path.replace(/\{\w+\}/g, '{}')}", ${values.join(', ')})`;
}

function documentation(summary: string, parameters: [string, string | undefined][]): string {
  const lines = parameters.flatMap(([name, words]) =>
    words === undefined ? [] : [`        :param ${name}: ${words}`],
  );
  if (lines.length === 0) return `        """${summary}."""`;
  return [`        """${summary}.`, '', ...lines, '        """'].join('\n').replaceAll('\\', '\\\\');
}

const className = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);
const snake = (name: string) =>
  name === 'path' ? 'path_' : name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
