import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { actionOf } from '../../src/audit/log.ts';
import { bodyBudgets } from '../../src/http/body/budgets.ts';
import { wordsOfPattern } from '../../src/lib/patterns.ts';
import { unending } from '../support/authorization/expectations.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { readProjectFile } from '../support/source.ts';

type Operation = {
  operationId?: string;
  summary?: string;
  tags?: string[];
  responses?: Record<string, { content?: unknown }>;
  requestBody?: unknown;
  'x-callers'?: string[];
};
type OpenApi = {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  tags: { name: string }[];
  components: { schemas: Record<string, unknown> };
};

let server: TestServer;
let served: OpenApi;
before(async () => {
  server = await startTestServer();
  served = (await server.api<OpenApi>('GET', '/openapi.json')).body;
});
after(() => server.close());

function operations(): { name: string; method: string; operation: Operation }[] {
  return Object.entries(served.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, method, operation })),
  );
}

test('openapi.json is what the server serves', () => {
  assert.equal(served.openapi, '3.1.0');
  const committed = JSON.parse(readProjectFile('openapi.json'));
  assert.deepEqual(
    committed,
    served,
    'The API has changed. Rewrite the file with `npm run openapi`; its diff is the review of the change.',
  );

  const { [Object.keys(committed.paths)[0] ?? '']: _one, ...paths } = committed.paths;
  assert.notDeepEqual({ ...committed, paths }, served, 'A path that is missing from the file is noticed.');
});

const undocumented = (routes: { operationId: string }[], documented: Set<string | undefined>) =>
  routes.filter((route) => !documented.has(route.operationId));

test('every route is in the document', () => {
  const documented = new Set(operations().map(({ operation }) => operation.operationId));
  const { routes } = server.server.api;
  assert.deepEqual(
    undocumented(routes, documented),
    [],
    'Give the route a tag that src/http/openapi/write-document.ts knows.',
  );

  documented.delete('getFile');
  assert.deepEqual(
    undocumented(routes, documented).map(({ operationId }) => operationId),
    ['getFile'],
  );
});

/** What is wrong with an operation, if anything. */
function fault(operation: Operation, tags: Set<string>): string | undefined {
  if (!/^[a-z]+[A-Za-z]+$/.test(operation.operationId ?? '')) return 'give it an operationId such as getFile';
  if (!operation.summary) return 'give it a summary';
  if (operation.tags?.length !== 1 || !tags.has(operation.tags[0] ?? ''))
    return `give it one tag of src/http/openapi/write-document.ts, or add the new tag ${operation.tags} there`;
  if (!operation['x-callers']?.length) return 'say who may call it (api.app, api.key, api.developer, api.public)';
  if (!Object.keys(operation.responses ?? {}).some((status) => /^[23]/.test(status)))
    return 'name the schema of its success in responses';
  return undefined;
}

test('every operation has a unique id, a summary, a known tag, named callers and schemas', () => {
  const ids = operations().map(({ operation }) => operation.operationId);
  assert.equal(new Set(ids).size, ids.length, 'Two operations share an id.');
  const tags = new Set(served.tags.map((tag) => tag.name));
  const faults = operations().flatMap(({ name, operation }) => {
    const found = fault(operation, tags);
    return found === undefined ? [] : [`${name}: ${found}`];
  });
  assert.deepEqual(faults, []);

  const good: Operation = served.paths['/api/v1/files/{file}']?.get ?? {};
  assert.equal(fault(good, tags), undefined);
  for (const member of ['operationId', 'summary', 'tags', 'x-callers', 'responses'] as const) {
    const { [member]: _left, ...bad } = good;
    assert.ok(fault(bad, tags), `An operation without ${member} is reported.`);
  }
  assert.ok(fault({ ...good, tags: ['Unheard of'] }, tags));
});

/** `METHOD path` of everything in Fastify's own list, which it prints as a tree. */
function registeredRoutes(tree: string): string[] {
  const parents: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent = '', part = '', methods = ''] = /^((?:[│ ] {3})*[├└]── )(\S+) \(([A-Z, ]+)\)/.exec(line) ?? [];
    if (part === '') return [];
    const depth = indent.length / 4 - 1;
    const path = `${depth === 0 ? '' : parents[depth - 1]}${part === '*' ? '/*' : part}`;
    parents[depth] = path;
    return methods.split(', ').map((method) => `${method} ${path}`);
  });
}

/** Routes that did not come through the kit, and so have no callers, limits or schemas. */
function strayRoutes(tree: string, routes: { method: string; path: string }[]): string[] {
  const known = new Set(routes.map(({ method, path }) => `${method} ${path}`));
  return registeredRoutes(tree).filter(
    (route) =>
      !known.has(route.replace(/^HEAD /, 'GET ')) &&
      !/^(?:GET|HEAD) \/(?:(?:console|docs)(?:[/*]|$)|$)|^OPTIONS /.test(route),
  );
}

test('every route except the console and the reference is registered through the kit', () => {
  const { fastify, api } = server.server;
  const tree = fastify.printRoutes({ commonPrefix: false });
  assert.ok(registeredRoutes(tree).length > api.routes.length);
  assert.deepEqual(
    strayRoutes(tree, api.routes),
    [],
    'Register it with api.app, api.key, api.developer or api.public.',
  );

  const withoutOne = api.routes.filter(({ path, method }) => !(path === '/api/v1/files/:file' && method === 'PATCH'));
  assert.deepEqual(strayRoutes(tree, withoutOne), ['PATCH /api/v1/files/:file']);
});

test('every route takes a wrong request without a 500: its schemas compile', async () => {
  const app = await server.provision.app();
  const send = async (method: string, path: string): Promise<number> => {
    const url = path.replace(/:app\b/, app.app.id).replace(/:\w+|\*/g, 'nothing');
    const credentials = path.startsWith('/protected/') ? { token: app.developerToken } : { key: app.secretKey };
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: {} };
    const asked = unending.has(`${method} ${path}`) ? 'HEAD' : method;
    return (await server.api(asked, `${url}?page=1`, { ...credentials, ...body })).status;
  };
  const { routes } = server.server.api;
  assert.deepEqual(await routesThatFail(routes, send), []);

  const broken = async (method: string, path: string) => (path === '/api/v1/usage' ? 500 : send(method, path));
  assert.deepEqual(await routesThatFail(routes, broken), ['GET /api/v1/usage: 500']);
});

async function routesThatFail(
  routes: { method: string; path: string }[],
  send: (method: string, path: string) => Promise<number>,
): Promise<string[]> {
  const failed: string[] = [];
  for (const { method, path } of routes) {
    if (path === '/metrics') continue;
    const status = await send(method, path);
    if (status >= 500 && status !== 501) failed.push(`${method} ${path}: ${status}`);
  }
  return failed;
}

test('a route takes bodies of 64 KiB and 2,000 values at most, or is listed here with the reason for more', () => {
  const larger = new Map([
    ['createOrg', 'logo'],
    ['updateOrg', 'logo'],
    ['createAgent', 'profile picture'],
    ['updateAgent', 'profile picture'],
    ['createUser', 'metadata'],
    ['updateUser', 'metadata'],
    ['createTeam', 'metadata'],
    ['updateTeam', 'metadata'],
    ['createFile', 'contents in base64'],
    ['updateFile', 'access list and metadata'],
    ['createExtraction', 'path patterns'],
    ['createKvEntry', 'value'],
    ['putKvEntry', 'value'],
    ['batchKvEntries', 'values'],
    ['putConfig', 'content'],
    ['createKnowledgeSource', 'metadata and payload'],
    ['updateKnowledgeSource', 'metadata and payload'],
    ['ingestIntoKnowledgeSource', 'contents'],
    ['ingestBatchIntoKnowledgeSource', 'contents'],
    ['putKnowledgeSyncBatch', 'contents'],
    ['createThreadMessage', 'content'],
    ['updateKnowledgeDocument', 'contents'],
    ['updateKnowledgeDocumentAcl', 'grants'],
    ['setGroupMembers', 'members'],
    ['developerSetGroupMembers', 'members'],
    ['searchKnowledgeSource', 'filter'],
    ['openaiCreateResponse', 'a conversation of 200,000 characters'],
    ['openaiCreateVectorStore', '500 files'],
    ['openaiCreateFileBatch', '500 files with attributes'],
    ['openaiSearchVectorStore', 'filters'],
    ['searchAgentKnowledge', 'filter'],
    ['searchKnowledge', 'filter'],
    ['verifyCitations', 'text'],
    ['checkAutomation', 'graph'],
    ['createAutomation', 'graph'],
    ['updateAutomation', 'graph'],
    ['invokeAutomation', 'payload'],
    ['retryAutomationRun', 'payload and outputs'],
    ['signalAutomationRun', 'payload'],
    ['emitEvent', 'payload'],
    ['reportAutomationRun', 'result'],
    ['appendRunEntries', 'outputs of steps'],
    ['appendClaimedRun', 'outputs of steps'],
    ['callMcp', 'what its tools take'],
    ['callAppMcp', 'what its tools take'],
  ]);
  const { routes } = server.server.api;
  assert.deepEqual(undeclaredBudgets(routes, larger), []);

  const getFile = routes.find(({ operationId }) => operationId === 'getFile');
  assert.ok(getFile);
  const widened = { ...getFile, budget: { ...getFile.budget, bytesMax: bodyBudgets.plain.bytesMax + 1 } };
  assert.deepEqual(undeclaredBudgets([widened], larger), ['getFile']);
  assert.deepEqual(undeclaredBudgets([getFile], new Map([['getFile', 'nothing']])), ['getFile needs no row']);
});

function undeclaredBudgets(
  routes: Pick<(typeof server.server.api.routes)[number], 'operationId' | 'isOpen' | 'budget'>[],
  larger: Map<string, string>,
): string[] {
  const undeclared: string[] = [];
  for (const { operationId, isOpen, budget } of routes) {
    assert.ok(Number.isFinite(budget.bytesMax) && Number.isFinite(budget.valuesMax), operationId);
    const usual = isOpen ? bodyBudgets.small : bodyBudgets.plain;
    const fits = budget.bytesMax <= usual.bytesMax && budget.valuesMax <= usual.valuesMax;
    const action = actionOf(operationId);
    if (!fits && (isOpen || !larger.has(action))) undeclared.push(operationId);
    if (fits && larger.has(action)) undeclared.push(`${operationId} needs no row`);
  }
  return undeclared;
}

test('input_schema is described as the JSON Schema that it is, not as a graph', () => {
  const document = JSON.parse(readProjectFile('openapi.json'));
  const { properties } = document.components.schemas.Automation;
  assert.match(properties.input_schema.description, /JSON Schema/);
  assert.doesNotMatch(properties.input_schema.description, /Graph/);
});

test('a text that does not match a pattern is refused in words: no error shows a regular expression', () => {
  const wordless = (value: unknown): string[] => {
    if (typeof value !== 'object' || value === null) return [];
    const { pattern } = value as { pattern?: unknown };
    const own = typeof pattern === 'string' && wordsOfPattern(pattern) === undefined ? [pattern] : [];
    return [...own, ...Object.values(value).flatMap(wordless)];
  };
  const bodies = operations().map(({ operation }) => operation.requestBody);
  assert.deepEqual(wordless([bodies, served.components.schemas]), []);
  assert.deepEqual(wordless({ properties: { a: { pattern: '^a$' } } }), ['^a$']);
});
