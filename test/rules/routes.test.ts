import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { actionOf } from '../../src/http/audit.ts';
import { bodyBudgets } from '../../src/http/budgets.ts';
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
});

test('every route is in the document', () => {
  const documented = new Set(operations().map(({ operation }) => operation.operationId));
  const missing = server.server.api.routes.filter((route) => !documented.has(route.operationId));
  assert.deepEqual(missing, [], 'Give the route a tag that src/http/openapi.ts knows.');
});

test('every operation has an id of its own, a summary, a known tag, named callers and schemas', () => {
  const ids = operations().map(({ operation }) => operation.operationId);
  assert.equal(new Set(ids).size, ids.length, 'Two operations share an id.');
  const tags = new Set(served.tags.map((tag) => tag.name));
  for (const { name, operation } of operations()) {
    assert.match(operation.operationId ?? '', /^[a-z]+[A-Za-z]+$/, `${name}: give it an operationId such as getFile`);
    assert.ok(operation.summary, `${name}: give it a summary`);
    assert.ok(
      operation.tags?.length === 1 && tags.has(operation.tags[0] ?? ''),
      `${name}: give it one tag of src/http/openapi.ts, or add the new tag ${operation.tags} there`,
    );
    assert.ok(
      operation['x-callers']?.length,
      `${name}: say who may call it (api.app, api.key, api.developer, api.public)`,
    );
    const successes = Object.keys(operation.responses ?? {}).filter((status) => status.startsWith('2'));
    assert.ok(successes.length > 0, `${name}: name the schema of its success in responses`);
  }
});

test('no route exists beside those that the kit registers', () => {
  // Fastify's own list, as text: every line with methods must be the reference's or one of ours.
  const known = new Set(server.server.api.routes.map((route) => route.path));
  const all = server.server.fastify.printRoutes({ commonPrefix: false, includeHooks: false });
  assert.ok(all.length > 0 && known.size > 0);
  for (const route of server.server.api.routes)
    assert.ok(server.server.fastify.hasRoute({ method: route.method, url: route.path }), route.path);
});

test('every route can be asked: its schemas compile, and a wrong request is no fault of ours', async () => {
  const app = await server.provision.app();
  const failed: string[] = [];
  for (const { method, path } of server.server.api.routes) {
    if (path === '/metrics') continue;
    const url = path.replace(':app', app.app.id).replace(/:\w+|\*/g, 'nothing');
    const credentials = path.startsWith('/protected/') ? { token: app.developerToken } : { key: app.secretKey };
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: {} };
    const { status } = await server.api(method, `${url}?page=1`, { ...credentials, ...body });
    if (status >= 500 && status !== 501) failed.push(`${method} ${path}: ${status}`);
  }
  assert.deepEqual(failed, []);
});

test('a route takes bodies of 64 KiB and 2,000 values at most, or stands here with what it needs more for', () => {
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
    ['createKnowledgeSource', 'metadata and payload'],
    ['updateKnowledgeSource', 'metadata and payload'],
    ['ingestIntoKnowledgeSource', 'contents'],
    ['ingestBatchIntoKnowledgeSource', 'contents'],
    ['createThreadMessage', 'content'],
    ['updateKnowledgeDocument', 'contents'],
    ['searchKnowledgeSource', 'filter'],
    ['searchAgentKnowledge', 'filter'],
    ['createAutomation', 'graph'],
    ['updateAutomation', 'graph'],
    ['invokeAutomation', 'payload'],
    ['signalAutomationRun', 'payload'],
    ['emitEvent', 'payload'],
    ['reportAutomationRun', 'result'],
    ['callMcp', 'what its tools take'],
  ]);
  const undeclared: string[] = [];
  for (const { operationId, access, budget } of server.server.api.routes) {
    assert.ok(Number.isFinite(budget.bytesMax) && Number.isFinite(budget.valuesMax), operationId);
    const open = access.kind === 'public' || access.kind === 'key';
    const usual = open ? bodyBudgets.small : bodyBudgets.plain;
    const fits = budget.bytesMax <= usual.bytesMax && budget.valuesMax <= usual.valuesMax;
    const action = actionOf(operationId);
    if (!fits && (open || !larger.has(action))) undeclared.push(operationId);
    if (fits && larger.has(action)) undeclared.push(`${operationId} needs no row`);
  }
  assert.deepEqual(undeclared, []);
});
