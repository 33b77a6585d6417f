import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { expectationsByRoute, rows, unending, without } from '../../support/authorization/expectations.ts';
import { createFixtures, type Target } from '../../support/authorization/fixtures.ts';
import { type Expectation, type Row, runChecks, type Sent } from '../../support/authorization/matrix.ts';
import { operations } from '../../support/authorization/references.ts';
import { allowsOperation, keyScopes, needsSeveral } from '../../support/authorization/scopes.ts';
import { apiKeys, managed, orgs, readOwned, sandboxes, teams } from '../../support/authorization/tables.ts';
import { type CallerName, callerNames, createTenants, type Ownership } from '../../support/authorization/tenants.ts';
import { testsCells } from '../../support/cells-of-process.ts';
import { type ApiOptions, type ErrorBody, startTestServer } from '../../support/server.ts';

/*
 * Who may call what: every route × every kind of caller × every owner of the resource in its path, and every route ×
 * every scope of a key. Resources named in
 * bodies and filters are in authorization-references.test.ts, workflow nodes in authorization-nodes.test.ts, MCP tools
 * in authorization-tools.test.ts. A new route fails the first test until it has a line in
 * test/support/authorization/expectations.ts, which names its table in tables.ts; tenants.ts has the people.
 *
 * Two rules hold for all routes and have no table: invalid credentials are 401, and a developer gets the response of
 * the secret key of the scope that they choose (by the path, or by `x-app` and `x-sandbox`).
 */

const server = await startTestServer({ env: { QUARRY_DB_POOL: '10' } });
after(() => server.close());
const { api, provision } = server;
const tenants = await createTenants(server);
const { app, sandbox, otherApp, people, team, callers } = tenants;
const fixtures = createFixtures(server, tenants);
const { make } = fixtures;
const expected = expectationsByRoute(server, tenants, fixtures);

/** A key of the app with these scopes: it gets the responses of the app's key, or 403 whatever it names. */
async function createScopedKey(scopes: readonly string[]): Promise<string> {
  const body = { type: 'secret', scopes };
  return (await api<{ full_key: string }>('POST', '/api/v1/keys', { ...callers.key, body })).body.full_key;
}
const scopedKeys = new Map<string, Promise<string>>();
function scopedKey(scopes: readonly string[]): Promise<string> {
  const name = scopes.join(' ');
  const key = scopedKeys.get(name) ?? createScopedKey(scopes);
  scopedKeys.set(name, key);
  return key;
}

/** Developer routes without an app, and those of one app that have no twin under /api/v1. */
const forDevelopers = [
  'POST /protected/api/v1/developer/apps',
  'POST /protected/api/v1/developer/sign_in_links',
  'GET /protected/api/v1/developer/apps',
  'GET /protected/api/v1/developer/apps/:app',
  'PATCH /protected/api/v1/developer/apps/:app',
];
/** Routes that check only the API key. */
const forKeys = ['POST /api/v1/auth/login', 'POST /api/v1/auth/refresh', 'POST /api/v1/auth/logout'];
/** Public routes, and their status for an empty request. */
const publicRoutes: Record<string, number> = {
  // They check only the cookie: test/api/console/session.test.ts.
  'POST /console/session': 422,
  'GET /console/session': 401,
  'DELETE /console/session': 401,
  'GET /console/oidc/issuers': 422,
  'POST /console/oidc/start': 422,
  'GET /console/oidc/callback': 401,
  'GET /healthz': 200,
  'GET /readyz': 200,
  'GET /metrics': 200,
  'GET /openapi.json': 200,
  'GET /.well-known/oauth-protected-resource/mcp/:key': 404,
  // With the setting off. With it on: test/api/mcp/oauth.test.ts.
  'GET /.well-known/oauth-authorization-server/oauth/:key': 404,
  'GET /oauth/:key/authorize': 404,
  'POST /oauth/:key/register': 400,
  'POST /oauth/:key/token': 404,
  'POST /oauth/:key/revoke': 404,
  'PUT /api/v1/files/uploads': 403,
  'POST /api/v1/inbound/:token': 404,
  'GET /api/v1/approval_links/:token': 404,
  'POST /api/v1/approval_links/:token': 422,
  'POST /api/v1/claimed_run/journal': 401,
  'POST /api/v1/claimed_run/entries': 401,
  'GET /api/v1/files/:file/content': 403,
  'GET /api/v1/files/:file/picture': 403,
  'GET /api/v1/files/:file/avatar': 404,
  'GET /api/v1/files/:file/org_logo': 404,
  'GET /api/v1/files/:file/share': 404,
};

const developerPrefix = '/protected/api/v1/developer/apps/:app';
const routes = server.server.api.routes.map(({ method, path }) => ({ name: `${method} ${path}`, method, path }));
const twinOf = (name: string) =>
  name.replace(developerPrefix, '/api/v1').replace('/automations/runs/', '/automation_runs/');
const hasTwin = (name: string) => name.includes(developerPrefix) && !forDevelopers.includes(name);

// The server of a cell has no routes of the process.
const skip = testsCells;
test('every route and every operation of openapi.json is in the matrix, and every row has its route', { skip }, () => {
  const placed = new Set([...Object.keys(expected), ...forDevelopers, ...forKeys, ...Object.keys(publicRoutes)]);
  const documented = operations.map(({ name }) => name.replace('/config/:path', '/config/*'));
  const all = new Set([...documented, ...routes.map(({ name }) => name)]);
  const unplaced = [...all].filter((name) => !placed.has(hasTwin(name) ? twinOf(name) : name));
  assert.deepEqual(unplaced, [], 'Add these to test/support/authorization/expectations.ts, with who may call them.');
  const known = new Set(routes.map(({ name }) => name));
  assert.deepEqual(
    [...placed].filter((name) => !known.has(name)),
    [],
    'These routes do not exist.',
  );
});

/** A caller who gets the responses of another one: a developer those of the key of the chosen scope. */
type Guise = { name: string; as: CallerName | number; options: ApiOptions; once?: true };
const developer = { token: app.developerToken };
const xApp = { 'x-app': app.app.id };
const inSandbox = { 'x-sandbox': sandbox.sandbox.id };

const guisesHere: Guise[] = [
  ...callerNames.map((name): Guise => ({ name, as: name, options: callers[name] })),
  { name: 'developer', as: 'key', options: { ...developer, headers: xApp } },
  { name: 'developer in a sandbox', as: 'sandboxKey', options: { ...developer, headers: { ...xApp, ...inSandbox } } },
  { name: 'developer of the other app', as: 'otherKey', options: otherDeveloper({ 'x-app': otherApp.app.id }) },
  { name: 'developer without an app', as: 403, options: developer },
  { name: "developer, another developer's app", as: 403, options: otherDeveloper(xApp) },
];
const guisesOnDeveloperPath: Guise[] = [
  ...callerNames.map((name): Guise => ({ name, as: 403, options: callers[name] })),
  { name: 'developer', as: 'key', options: developer },
  { name: 'developer in a sandbox', as: 'sandboxKey', options: { ...developer, headers: inSandbox } },
  { name: "developer, another developer's app", as: 404, options: otherDeveloper({}) },
];

/** Under `/v1` a secret key may be a bearer token. */
const bearers: Guise[] = (['key', 'sandboxKey', 'otherKey'] as const).map((as) => ({
  ...{ name: `${as} as bearer`, as, options: { token: callers[as].key ?? '' } },
}));
/**
 * A key of each scope that allows an operation, and one with all scopes that do not: a scope only adds to what a key may
 * do. Where several together allow what none does alone, each is tried alone.
 */
async function scopedGuises(method: string, path: string): Promise<Guise[]> {
  const { true: allowing = [], false: others = [] } = Object.groupBy(keyScopes, (scope) =>
    allowsOperation(scope, method, path) ? 'true' : 'false',
  );
  const refused = needsSeveral(method, path) ? others.map((scope) => [scope]) : [others];
  const guise = async (scopes: string[], as: 'key' | 403): Promise<Guise> => {
    return { name: `key with ${scopes}`, as, options: { key: await scopedKey(scopes) }, once: true };
  };
  return Promise.all([
    ...allowing.map((scope) => guise([scope], 'key')),
    ...refused.filter((scopes) => scopes.length > 0).map((scopes) => guise(scopes, 403)),
  ]);
}
const takesBearer = (path: string) => path.startsWith('/v1/');

function otherDeveloper(headers: Record<string, string>): ApiOptions {
  return { token: otherApp.developerToken, headers };
}

for (const [part, isIn, guises, scopesOf] of [
  ['under /api/v1', (name: string) => name in expected, guisesHere, scopedGuises],
  ['under the developer path', hasTwin, guisesOnDeveloperPath, async () => []],
] as const)
  test(`each route ${part} admits exactly the callers that the matrix names`, async () => {
    const checks: (() => Promise<string | undefined>)[] = [];
    for (const { name, method, path } of routes.filter((route) => isIn(route.name))) {
      const expectation = expected[hasTwin(name) ? twinOf(name) : name];
      if (!expectation) continue;
      const scoped = await scopesOf(method, path);
      for (const [row, { whose, outcomes }] of expectation.table.entries()) {
        // A caller who is refused for every resource is tried once.
        const all = [...guises, ...(takesBearer(path) ? bearers : []), ...scoped];
        for (const { name: guise, as, options } of all.filter(
          (each) => row === 0 || (typeof each.as !== 'number' && each.once !== true),
        ))
          checks.push(async () => {
            const outcome = typeof as === 'number' ? as : (outcomes.get(as) ?? 0);
            const fresh = expectation.consumes === true && outcome === 'ok';
            const target = fresh ? await expectation.make?.(whose) : await standingTarget(expectation, whose);
            const given = target ?? { id: '', whose };
            // The body and query are those of the key's twin, so that only the credential differs.
            const sent = (await expectation.send?.(given, typeof as === 'number' ? 'key' : as)) ?? {};
            const response = await request(
              unending.has(twinOf(name)) ? 'HEAD' : method,
              filled(path, given, sent),
              options,
              sent,
            );
            const { admitted = Math.min(299, Math.max(200, response.status)) } = expectation;
            const right = response.status === (outcome === 'ok' ? admitted : outcome);
            return right
              ? undefined
              : `${name} · ${whose} · ${guise}: ${response.status}, not ${outcome} ${response.text}`;
          });
      }
    }
    assert.deepEqual(await runChecks(checks), []);
  });

/** One resource per kind and ownership for all routes: a request that deletes one or ends its state gets a fresh one. */
const standing = new Map<Expectation['make'], Map<Ownership, Promise<Target>>>();
function standingTarget({ make: makeOne }: Expectation, whose: Ownership): Promise<Target> | undefined {
  const targets = standing.get(makeOne) ?? new Map<Ownership, Promise<Target>>();
  standing.set(makeOne, targets);
  const target = targets.get(whose) ?? makeOne?.(whose);
  if (target !== undefined) targets.set(whose, target);
  return target;
}

/** The path with the target's ids in it; `send` may have given the twin's path, query included. */
function filled(path: string, target: Target, sent: Sent): string {
  const own = path.startsWith('/protected/') ? developerPrefix.replace(':app', app.app.id) : '/api/v1';
  if (sent.path !== undefined) return sent.path.replace('/api/v1', own);
  const names = [...path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '').filter((name) => name !== 'app');
  const ids = target.parent === undefined ? [target.id] : [target.parent, target.id];
  return names.reduce((text, name, at) => text.replace(`:${name}`, ids[at] ?? ''), path.replace(/:app\b/, app.app.id));
}

function request(method: string, path: string, options: ApiOptions, { body, headers }: Sent = {}) {
  const hasBody = method === 'POST' || method === 'PATCH' || method === 'PUT' || body !== undefined;
  return api<ErrorBody>(method, path, {
    ...options,
    ...(hasBody ? { body: body ?? {} } : {}),
    headers: { ...options.headers, ...headers },
  });
}

test('invalid credentials are 401 on every route except public ones, and key routes take a key alone', async () => {
  const revoked = await api<{ id: string; full_key: string }>('POST', '/api/v1/keys', {
    key: app.secretKey,
    body: { type: 'secret' },
  });
  await api('DELETE', `/api/v1/keys/${revoked.body.id}`, { key: app.secretKey });
  const leaver = await provision.user(app);
  await api('DELETE', `/api/v1/users/${leaver.id}`, { key: app.secretKey });
  const closed: Record<string, ApiOptions> = {
    nothing: {},
    'a publishable key': { key: app.publishableKey },
    'an unknown key': { key: `sk_${'x'.repeat(43)}` },
    'a key of no shape': { key: 'garbage' },
    'a revoked key': { key: revoked.body.full_key },
    'an unknown token': { token: 'garbage-garbage' },
    'a token of a deleted user': { token: leaver.token },
    'an unknown developer token': { token: `dvt_${'x'.repeat(43)}`, headers: xApp },
    'an unknown personal token': { token: `sat_${'x'.repeat(43)}` },
    'another scheme': { headers: { authorization: 'Basic dXNlcjpwYXNz' } },
    'a secret key as bearer': { token: app.secretKey },
    'a developer token as key': { key: app.developerToken },
    "a user's token beside another app's key": { token: people.owner.token, key: otherApp.publishableKey },
    "a user's token beside a sandbox's key": { token: people.owner.token, key: sandbox.publishableKey },
    'a secret key beside a developer token': { key: app.secretKey, token: app.developerToken, headers: xApp },
    'a good key beside a bad token': { key: app.secretKey, token: 'garbage-garbage' },
    'two keys that differ': { key: app.secretKey, headers: { 'x-archastro-api-key': otherApp.secretKey } },
  };
  const keyRouteStatuses: Record<string, number> = { 'a publishable key': 422, 'a good key beside a bad token': 422 };
  // A key route checks only the key.
  for (const name of [
    "a user's token beside another app's key",
    "a user's token beside a sandbox's key",
    'a secret key beside a developer token',
  ])
    keyRouteStatuses[name] = 422;
  const checks: (() => Promise<string | undefined>)[] = [];
  const credentials = Object.entries(closed);
  // One hook checks the credentials of all routes: each route gets four of them in turn, and each of them a hundred routes.
  const inTurn = (at: number) =>
    Array.from({ length: 4 }, (_, next) => credentials[(at * 4 + next) % credentials.length]);
  for (const [at, { name, method, path }] of routes.filter(({ name: each }) => !(each in publicRoutes)).entries())
    for (const [credential, options] of inTurn(at).filter((each) => each !== undefined))
      checks.push(async () => {
        if (credential === 'a secret key as bearer' && takesBearer(path)) return;
        const status = forKeys.includes(name) ? (keyRouteStatuses[credential] ?? 401) : 401;
        const target = { id: 'x', parent: 'x', whose: 'mine' } as const;
        const response = await request(method, filled(path, target, {}).replace('*', 'x'), options);
        if (response.status === status && (status !== 401 || response.body.error.type === 'authentication_error'))
          return;
        return `${name} · ${credential}: ${response.status}, not ${status} ${response.text}`;
      });
  assert.deepEqual(await runChecks(checks), []);
});

test('developers alone manage apps, and each their own', async () => {
  for (const name of forDevelopers) {
    const [method = '', path = ''] = name.split(' ');
    const sent = method === 'POST' && path.endsWith('/apps') ? { body: { name: 'App' } } : {};
    const own = await request(method, path.replace(/:app\b/, app.app.id), developer, sent);
    assert.equal(own.status, method === 'POST' ? 201 : 200, `${name}: ${own.text}`);
    if (path.includes(':app')) {
      const others = await request(method, path.replace(/:app\b/, otherApp.app.id), developer, sent);
      assert.equal(others.status, 404, name);
    }
    for (const caller of callerNames)
      assert.equal(
        (await request(method, path.replace(/:app\b/, app.app.id), callers[caller], sent)).status,
        403,
        name,
      );
  }
});

test('public routes return the same with any credential', async () => {
  for (const [name, status] of Object.entries(publicRoutes)) {
    const [method = '', path = ''] = name.split(' ');
    const at = path.replace(':file', (await make.file('mine')).id).replace(':token', 'x');
    for (const options of [
      {},
      callers.key,
      { key: await scopedKey(['read']) },
      { key: 'garbage' },
      { token: 'garbage-garbage' },
    ]) {
      const response = await api(method, at, options);
      assert.equal(response.status, status, `${name}: ${response.text}`);
    }
  }
});

test('a list contains exactly the items that each caller can read one by one', async () => {
  const lists: [string, Row[], (whose: Ownership) => Promise<Target>][] = [
    ['/files', readOwned, make.file],
    ['/agents', without(readOwned, 'agent'), make.agent],
    ['/teams', teams.read, async (whose) => ({ whose, id: (await make.team(whose)).parent ?? '' })],
    ['/orgs', orgs.read, make.org],
    ['/threads', managed, make.thread],
    ['/installations', managed, make.installation],
    ['/users', rows(managed, 'mine', 'other-app', 'sandbox'), make.user],
    ['/keys', apiKeys, make.apiKey],
    ['/sandboxes', sandboxes.one, make.spareSandbox],
  ];
  for (const [path, table, makeOne] of lists) {
    const targets = await Promise.all(table.map(async ({ whose }) => ({ whose, id: (await makeOne(whose)).id })));
    for (const caller of callerNames) {
      const { status, ids } = await listAll(path, callers[caller]);
      for (const [at, { outcomes }] of table.entries()) {
        const target = targets[at];
        if (outcomes.get(caller) === 403) assert.equal(status, 403, `${path} ${caller}`);
        else
          assert.equal(ids.has(target?.id ?? ''), outcomes.get(caller) === 'ok', `${path} ${caller} ${target?.whose}`);
      }
    }
  }
});

async function listAll(path: string, options: ApiOptions): Promise<{ status: number; ids: Set<string> }> {
  const ids = new Set<string>();
  for (let page = 1; page <= 100; page++) {
    const response = await api<{ data: { id: string }[]; has_next: boolean }>(
      'GET',
      `/api/v1${path}?page_size=100&page=${page}`,
      options,
    );
    if (response.status !== 200) return { status: response.status, ids };
    for (const { id } of response.body.data) ids.add(id);
    if (!response.body.has_next) break;
  }
  return { status: 200, ids };
}

test('the refusals above changed nothing: the team still has its members', async () => {
  const members = await api<{ data: { user: { id: string } }[] }>('GET', `/api/v1/teams/${team.id}/members`, {
    key: app.secretKey,
  });
  assert.deepEqual(
    new Set(members.body.data.map(({ user }) => user.id)),
    new Set([people.owner.id, people.teammate.id]),
  );
});
