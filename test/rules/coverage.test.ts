import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildProgram } from '../../src/cli/program.ts';
import { tools } from '../../src/mcp/tools/index.ts';
import { readProjectFile, readSources } from '../support/source.ts';

/* docs/console-coverage.md names every operation of openapi.json, and the console calls those that it says it reaches. */

const appPath = '/protected/api/v1/developer/apps/{app}';
const document = JSON.parse(readProjectFile('openapi.json')) as {
  paths: Record<string, Record<string, { operationId?: string }>>;
};
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).flatMap(([method, { operationId }]) =>
    operationId === undefined ? [] : [{ operationId, name: `${method.toUpperCase()} ${path}`, path }],
  ),
);
const isTwin = ({ path }: { path: string }) =>
  path.startsWith(`${appPath}/`) && path.replace(appPath, '/api/v1') in document.paths;

type Row = { operation: string; request: string; console: string; command: string; mcp: string };
const rows = readProjectFile('docs/console-coverage.md')
  .split('\n')
  .flatMap((line): Row[] => {
    const [, operation, request, page, command, mcp] =
      /^\| `(\w+)` +\| `([^`]+)` +\| ([^|]*?) *\| ([^|]*?) *\| ([^|]*?) *\|$/.exec(line) ?? [];
    if (operation === undefined) return [];
    return [{ operation, request: request ?? '', console: page ?? '', command: command ?? '', mcp: mcp ?? '' }];
  });

test('every operation has one row that names where it is reached', () => {
  const expected = operations.filter((one) => !isTwin(one)).map(({ operationId, name }) => `${operationId} ${name}`);
  const found = rows.map(({ operation, request }) => `${operation} ${request}`);
  assert.deepEqual(found.toSorted(), expected.toSorted(), 'Add, change or remove its row in docs/console-coverage.md.');
  assert.deepEqual(
    rows.filter(({ console: page }) => page === '' || page === '–').map(({ operation }) => operation),
    [],
    'Name the pages, or write a dash and the reason.',
  );
});

/** Requests that are not written as the name of an operation. */
const otherwise: Record<string, string> = {
  'POST /api/v1/files/uploads': "'/api/v1/files/uploads'",
  // These are requests of tus.
  ...Object.fromEntries(
    ['POST /api/v1/uploads', ...['GET', 'PATCH', 'DELETE'].map((method) => `${method} /api/v1/uploads/{upload}`)].map(
      (request) => [request, "'/api/v1/uploads'"],
    ),
  ),
  'GET /api/v1/automation_runs/{automation_run}/stream': "'/api/v1/automation_runs/{automation_run}/stream'",
  'GET /api/v1/automation_runs/{automation_run}/output_stream':
    "'/api/v1/automation_runs/{automation_run}/output_stream'",
  'GET /api/v1/kv_watch': "'/api/v1/kv_watch'",
};

function isCalled(request: string, text: string): boolean {
  const twin = request.replace('/api/v1', appPath);
  return [`'${request}'`, `\`${request}\``, `'${twin}'`, `\`${twin}\``, otherwise[request] ?? '\0'].some((one) =>
    text.includes(one),
  );
}

test('the console calls exactly the operations that the table lists for it', () => {
  const text = readSources('console/src')
    .filter(({ name }) => !name.endsWith('generated.ts'))
    .map((source) => source.text)
    .join('\n')
    // A prefix that one page names once.
    .replaceAll(/\$\{sandboxesPath\}/g, `${appPath}/sandboxes`);
  const wrong = rows.filter(({ request, console: page }) => isCalled(request, text) === page.startsWith('–'));
  assert.deepEqual(
    wrong.map(({ operation, console: page }) => `${operation}: ${page}`),
    [],
  );
  assert.equal(isCalled('GET /api/v1/nothing', text), false);
});

/** `a`, `b c`: the names in a cell. */
const namesIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '');

function commandNames(command: ReturnType<typeof buildProgram>['program'], path = ''): string[] {
  return command.commands.flatMap((each) => {
    const name = `${path} ${each.name()}`.trim();
    return [name, ...commandNames(each, name)];
  });
}

test('the commands and tools that the table names exist, and it names every tool', () => {
  const commands = new Set(commandNames(buildProgram().program));
  const toolNames = tools.map(({ definition }) => definition.name);
  const unknown = rows.flatMap(({ operation, command, mcp }) => [
    ...namesIn(command).filter((name) => !command.startsWith('–') && !commands.has(name)),
    ...namesIn(mcp).filter((name) => !toolNames.includes(name)),
    ...(command === '' || command === '–' ? [`${operation} names no command and no reason`] : []),
    ...(mcp === '' ? [`${operation} has an empty cell under MCP`] : []),
  ]);
  assert.deepEqual(unknown, []);
  const named = new Set(rows.flatMap(({ mcp }) => namesIn(mcp)));
  assert.deepEqual(
    toolNames.filter((name) => !named.has(name)),
    [],
    'Name each tool in the row of the operation that it calls.',
  );
  const misplaced = tools.filter(
    (tool) =>
      !rows.some(({ operation, mcp }) => operation === tool.operation && namesIn(mcp).includes(tool.definition.name)),
  );
  assert.deepEqual(
    misplaced.map(({ definition, operation }) => `${definition.name} is not in the row of ${operation}`),
    [],
  );
  assert.ok(!commands.has('kv nothing') && commands.has('kv get'));
});
