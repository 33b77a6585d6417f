import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Row, readMatrix, runChecks } from '../support/matrix.ts';
import { type CallerName, callerNames, type Ownership, settle } from '../support/neighbours.ts';
import type { TestUser } from '../support/provisioner.ts';
import { type ApiOptions, type ErrorBody, startTestServer } from '../support/server.ts';
import {
  apiKeys,
  config,
  createOfAgent,
  createOfOrg,
  createOwned,
  deleteOwned,
  everybody,
  extract,
  fileUnderOrg,
  keysOnly,
  kv,
  managed,
  orgs,
  readOwned,
  sandboxes,
  sources,
  teams,
  updateOwned,
  users,
} from '../support/who-may.ts';

/*
 * Who may call what: every route × every kind of caller × whose the thing is. A new route fails the first test until it
 * has its line in `expected`. test/support/who-may.ts has the tables of outcomes, test/support/neighbours.ts the people.
 *
 * Two rules hold everywhere and so have no table: credentials that open nothing are 401, and a developer is answered
 * like the secret key of the scope that they choose (by the path, or by `x-app` and `x-sandbox`).
 */

/** What a request needs to know: the thing that it names, and whose that is. */
type Target = { id: string; parent?: string; whose: Ownership };
type Sent = { path?: string; body?: unknown; headers?: Record<string, string> };
type Expectation = {
  table: Row[];
  /** Makes a thing of this ownership. Without it the request names nothing. */
  make?: (whose: Ownership) => Promise<Target>;
  /** What is sent; by default the path with the thing's id, and an empty body where the method has one. */
  send?: (target: Target, caller: CallerName) => Sent | Promise<Sent>;
  /** Success ends the thing, so each success gets one of its own. */
  consumes?: boolean;
};

const server = await startTestServer({ env: { QUARRY_DB_POOL: '10' } });
after(() => server.close());
const { api, provision } = server;
const town = await settle(server);
const { app, sandbox, otherApp, people, team, agent, scopes, owners, callers } = town;

type Made = { id: string };
const keyOf = (whose: Ownership) => scopes[whose].secretKey;
const ownerIds = (whose: Ownership) =>
  Object.fromEntries(Object.entries(owners[whose]).map(([member, { id }]) => [member, id]));
const persons: Partial<Record<Ownership, TestUser>> = {
  'other-org': people.outsider,
  'other-app': people.stranger,
  sandbox: people.sandboxed,
};
const userOf = (whose: Ownership) => persons[whose] ?? people.owner;
const teamOrg = (whose: Ownership) => (owners[whose].org ? { org: owners[whose].org } : {});

/** Makes a thing by the API, with the key of where it belongs. */
async function post(whose: Ownership, path: string, body: object): Promise<Target> {
  const made = await api<Made>('POST', `/api/v1${path}`, { key: keyOf(whose), body });
  assert.equal(made.status, 201, `${path} ${whose}: ${made.text}`);
  return { id: made.body.id, whose };
}

const text = { filename: 'a.txt', content_type: 'text/plain', data: Buffer.from('Text.').toString('base64') };
const make = {
  file: (whose: Ownership) => post(whose, '/files', { ...text, ...ownerIds(whose) }),
  agent: (whose: Ownership) => post(whose, '/agents', { name: 'Agent', ...ownerIds(whose) }),
  thread: (whose: Ownership) => post(whose, '/threads', { title: 'Thread', ...ownerIds(whose) }),
  async installation(whose: Ownership) {
    const { id } = whose === 'agent' ? agent : await make.agent(whose);
    return post(whose, '/installations', { agent: id, kind: 'webhook/inbound' });
  },
  async org(whose: Ownership): Promise<Target> {
    if (whose === 'org') return { id: town.org.id, whose };
    if (whose === 'other-org') return { id: town.otherOrg.id, whose };
    return post(whose, '/orgs', { name: 'Org' });
  },
  /** A team with a member who can be spared. */
  async team(whose: Ownership): Promise<Target> {
    const scope = scopes[whose];
    const spared = await provision.user(scope);
    const members: NonNullable<Parameters<typeof provision.team>[1]>['members'] = [[spared, 'member']];
    if (whose === 'team') members.push([people.owner, 'owner'], [people.teammate, 'member']);
    const made = await provision.team(scope, {
      ...(whose === 'team' ? { org: town.org } : whose === 'other-org' ? { org: town.otherOrg } : {}),
      members,
    });
    return { id: spared.id, parent: made.id, whose };
  },
  user: async (whose: Ownership): Promise<Target> => ({ id: userOf(whose).id, whose }),
  spareUser: async (whose: Ownership): Promise<Target> => ({ id: (await provision.user(scopes[whose])).id, whose }),
  async token(whose: Ownership): Promise<Target> {
    const user = userOf(whose).id;
    return { ...(await post(whose, `/users/${user}/tokens`, { type: 'personal' })), parent: user };
  },
  sandbox: async (whose: Ownership): Promise<Target> => ({
    id: whose === 'sandbox' ? sandbox.sandbox.id : whose,
    whose,
  }),
  spareSandbox: async (whose: Ownership): Promise<Target> => ({ id: (await provision.sandbox(app)).sandbox.id, whose }),
  apiKey: (whose: Ownership) => post(whose, '/keys', { type: 'publishable' }),
  /** The job belongs to its agent, or to the user who asks for it, or to the org that a key names. */
  async extraction(whose: Ownership): Promise<Target> {
    const file = await make.file(whose);
    const body = { file: file.id, destination_kind: 'storage' };
    const user = owners[whose].user;
    if (user === undefined) return post(whose, '/extractions', { ...body, ...(await agentOwners(whose)) });
    const made = await api<Made>('POST', '/api/v1/extractions', { token: userOf(whose).token, body });
    assert.equal(made.status, 201, made.text);
    return { id: made.body.id, whose };
  },
  /** An entry at `shelf/a.md` of the owner. */
  async config(whose: Ownership): Promise<Target> {
    const file = await make.file(whose);
    const body = { file: file.id, destination_kind: 'config', destination_path: 'shelf' };
    const as = whose === 'mine' ? { token: people.owner.token } : { key: keyOf(whose) };
    const made = await api('POST', '/api/v1/extractions', {
      ...as,
      body: { ...body, ...(whose === 'mine' ? {} : ownerIds(whose)) },
    });
    assert.equal(made.status, 201, made.text);
    return { id: 'shelf/a.md', whose };
  },
  source: (whose: Ownership) => post(whose, '/knowledge_sources', { type: 'knowledge/documents', ...oneOwner(whose) }),
  /** What a webhook fills: the source of an installation. */
  async inbound(whose: Ownership): Promise<Target> {
    const { id } = await make.installation(whose);
    const found = await api<{ data: Made[] }>('GET', `/api/v1/knowledge_sources?installation=${id}`, {
      key: keyOf(whose),
    });
    return { id: found.body.data[0]?.id ?? '', whose };
  },
  async ingestion(whose: Ownership): Promise<Target> {
    const source = await make.source(whose);
    return post(whose, `/knowledge_sources/${source.id}/ingest`, { content: { data: 'Text.' } });
  },
  /** A document that is there to read: its ingestion has ended. */
  async document(whose: Ownership): Promise<Target> {
    const ingestion = await make.ingestion(whose);
    const path = `/api/v1/knowledge_ingestions/${ingestion.id}`;
    for (;;) {
      const { body } = await api<{ status: string; metadata: { document: string } }>('GET', path, {
        key: keyOf(whose),
      });
      if (body.status === 'succeeded') return { id: body.metadata.document, whose };
      assert.notEqual(body.status, 'failed');
    }
  },
  /** A thread of an agent that takes its messages. */
  async agentThread(whose: Ownership): Promise<Target> {
    const { id } = whose === 'agent' ? agent : await make.agent(whose);
    await post(whose, '/installations', { agent: id, kind: 'thread/messages' });
    return post(whose, '/threads', { agent: id });
  },
  async entry(whose: Ownership): Promise<Target> {
    const key = `key-${++entries}`;
    const made = await api('PUT', `/api/v1/kv/${key}`, {
      key: keyOf(whose),
      body: { value: 'v', user: userOf(whose).id },
    });
    assert.equal(made.status, 200, made.text);
    return { id: key, whose };
  },
};
let entries = 0;

/** An individual owner alone; its org comes along by itself. */
function oneOwner(whose: Ownership): Record<string, string> {
  const { org, ...individual } = ownerIds(whose);
  return Object.keys(individual).length > 0 || org === undefined ? individual : { org };
}

/** A team's job is one of the team's agent. */
async function agentOwners(whose: Ownership): Promise<Record<string, string>> {
  if (whose !== 'team') return ownerIds(whose);
  return { agent: (await make.agent('team')).id };
}

const rows = (table: Row[], ...kept: Ownership[]) => table.filter(({ whose }) => kept.includes(whose));
const without = (table: Row[], ...left: Ownership[]) => table.filter(({ whose }) => !left.includes(whose));
/** Teams and orgs have no owner but their org, app or sandbox. */
const tenantRows = (...first: Ownership[]) => rows(managed, ...first, 'other-app', 'sandbox');
const named = (body: object) => ({ send: ({ whose }: Target) => ({ body: { ...body, ...oneOwner(whose) } }) });
const ownerQuery = ({ whose }: Target) => new URLSearchParams(oneOwner(whose)).toString();
const isKey = (caller: CallerName) => /key$/i.test(caller);
const kvUser = ({ whose }: Target, caller: CallerName) => (isKey(caller) ? { user: userOf(whose).id } : {});
const kvPath = (target: Target, caller: CallerName) =>
  `/api/v1/kv/${target.id}?${new URLSearchParams(kvUser(target, caller)).toString()}`;

const newThing = (path: string, table: Row[], body: object): Record<string, Expectation> => ({
  [`POST ${path}`]: { table, send: () => ({ body }) },
});

const expected: Record<string, Expectation> = {
  'GET /api/v1/files': { table: everybody },
  'POST /api/v1/files': { table: [...createOwned, ...createOfAgent, ...fileUnderOrg], ...named(text) },
  'POST /api/v1/files/uploads': {
    table: [...createOwned, ...createOfAgent, ...fileUnderOrg],
    send: (target) => ({
      path: `/api/v1/files/uploads?${ownerQuery(target)}`,
      body: 'bytes',
      headers: { 'x-filename': 'a.txt', 'content-type': 'text/plain' },
    }),
  },
  'POST /api/v1/files/upload_urls': {
    table: [...createOwned, ...createOfAgent, ...fileUnderOrg],
    ...named({ filename: 'a.txt', content_type: 'text/plain' }),
  },
  'GET /api/v1/files/:file': { table: readOwned, make: make.file },
  'PATCH /api/v1/files/:file': { table: updateOwned, make: make.file },
  'DELETE /api/v1/files/:file': { table: deleteOwned, make: make.file, consumes: true },

  'POST /api/v1/extractions': {
    table: [...extract],
    make: make.file,
    send: ({ id }) => ({ body: { file: id, destination_kind: 'storage' } }),
  },
  'GET /api/v1/extractions/:extraction': { table: readOwned, make: make.extraction },
  'GET /api/v1/extractions': { table: everybody },
  'DELETE /api/v1/extractions/:extraction': { table: deleteOwned, make: make.extraction, consumes: true },
  'GET /api/v1/extractions/:extraction/stream': { table: readOwned, make: make.extraction },
  'GET /api/v1/config': {
    table: [...everybody, ...config.named],
    send: (target) => ({ path: `/api/v1/config?${target.whose === 'mine' ? '' : ownerQuery(target)}` }),
  },
  'GET /api/v1/config/*': {
    table: [...config.mine, ...config.named],
    make: make.config,
    send: (target) => ({
      path: `/api/v1/config/${target.id}?${target.whose === 'mine' ? '' : ownerQuery(target)}`,
    }),
  },

  'GET /api/v1/agents': { table: everybody },
  'POST /api/v1/agents': { table: [...createOwned, ...createOfOrg], ...named({ name: 'Agent' }) },
  'GET /api/v1/agents/:agent': { table: without(readOwned, 'agent'), make: make.agent },
  'PATCH /api/v1/agents/:agent': { table: without(updateOwned, 'agent'), make: make.agent },
  'DELETE /api/v1/agents/:agent': { table: without(deleteOwned, 'agent'), make: make.agent, consumes: true },

  'GET /api/v1/teams': { table: everybody },
  'POST /api/v1/teams': {
    table: teams.create,
    send: ({ whose }) => ({
      body: { name: 'Team', ...(whose === 'mine' ? {} : { org: teamOrg(whose).org?.id }) },
    }),
  },
  'GET /api/v1/teams/:team': { table: teams.read, make: make.team },
  'PATCH /api/v1/teams/:team': { table: teams.manage, make: make.team },
  'DELETE /api/v1/teams/:team': { table: teams.manage, make: make.team, consumes: true },
  'GET /api/v1/teams/:team/members': { table: teams.read, make: make.team },
  'POST /api/v1/teams/:team/members': {
    table: teams.manage,
    make: make.team,
    // The new member is somebody whom the caller sees: themselves, or a new user where a key asks.
    send: async ({ whose }, caller) => {
      const newcomer = { admin: people.member, owner: people.member, outsider: people.outsider }[caller as 'admin'];
      return { body: { user: (newcomer ?? (await provision.user(scopes[whose]))).id } };
    },
    consumes: true,
  },
  'DELETE /api/v1/teams/:team/members': {
    table: teams.manage,
    make: make.team,
    send: ({ id }) => ({ body: { user: id } }),
    consumes: true,
  },
  'GET /api/v1/teams/:team/members/:member': { table: teams.read, make: make.team },
  'PATCH /api/v1/teams/:team/members/:member': {
    table: teams.manage,
    make: make.team,
    send: () => ({ body: { role: 'member' } }),
  },
  'DELETE /api/v1/teams/:team/members/:member': { table: teams.manage, make: make.team, consumes: true },

  'GET /api/v1/orgs': { table: everybody },
  ...newThing('/api/v1/orgs', keysOnly, { name: 'Org' }),
  'GET /api/v1/orgs/:org': { table: orgs.read, make: make.org },
  'PATCH /api/v1/orgs/:org': { table: tenantRows('org', 'other-org'), make: make.org },
  'DELETE /api/v1/orgs/:org': {
    table: tenantRows('mine'),
    make: (whose) => post(whose, '/orgs', { name: 'Org' }),
    consumes: true,
  },

  'GET /api/v1/users/me': {
    table: readMatrix(`
              users key  sandboxKey otherKey
      mine    ok    404  404        404
    `),
  },
  'GET /api/v1/users': { table: keysOnly },
  'POST /api/v1/users': {
    table: keysOnly,
    send: () => ({ body: { email: `new-${++entries}@example.test` } }),
  },
  'GET /api/v1/users/:user': { table: users.read, make: make.user },
  'PATCH /api/v1/users/:user': { table: tenantRows('mine'), make: make.user },
  'DELETE /api/v1/users/:user': { table: tenantRows('mine'), make: make.spareUser, consumes: true },
  'POST /api/v1/users/:user/tokens': { table: users.tokens, make: make.user },
  'GET /api/v1/users/:user/tokens': { table: users.tokens, make: make.user },
  'DELETE /api/v1/users/:user/tokens/:token': { table: users.tokens, make: make.token, consumes: true },

  'GET /api/v1/threads': { table: keysOnly },
  ...newThing('/api/v1/threads', keysOnly, { title: 'Thread' }),
  'GET /api/v1/threads/:thread': { table: managed, make: make.thread },
  'PATCH /api/v1/threads/:thread': { table: managed, make: make.thread },
  'DELETE /api/v1/threads/:thread': { table: managed, make: make.thread, consumes: true },

  'GET /api/v1/installations': { table: keysOnly },
  'POST /api/v1/installations': {
    table: readMatrix(`
              users key  sandboxKey otherKey
      mine    403   ok   422        422
      sandbox 403   422  ok         422
    `),
    make: make.agent,
    send: ({ id }) => ({ body: { agent: id, kind: 'webhook/inbound' } }),
  },
  'GET /api/v1/installations/:installation': { table: managed, make: make.installation },
  'PATCH /api/v1/installations/:installation': { table: managed, make: make.installation },
  'DELETE /api/v1/installations/:installation': { table: managed, make: make.installation, consumes: true },

  'GET /api/v1/sandboxes': { table: sandboxes.collection },
  ...newThing('/api/v1/sandboxes', sandboxes.collection, { name: 'Sandbox' }),
  'GET /api/v1/sandboxes/:sandbox': { table: sandboxes.one, make: make.sandbox },
  'PATCH /api/v1/sandboxes/:sandbox': { table: sandboxes.one, make: make.sandbox },
  'DELETE /api/v1/sandboxes/:sandbox': { table: sandboxes.one, make: make.spareSandbox, consumes: true },

  'GET /api/v1/keys': { table: keysOnly },
  ...newThing('/api/v1/keys', keysOnly, { type: 'publishable' }),
  'GET /api/v1/keys/:key': { table: apiKeys, make: make.apiKey },
  'DELETE /api/v1/keys/:key': { table: apiKeys, make: make.apiKey, consumes: true },

  'GET /api/v1/knowledge_sources/kinds': { table: everybody },
  'GET /api/v1/knowledge_sources': { table: everybody },
  'POST /api/v1/knowledge_sources': {
    table: [...createOwned, ...createOfAgent, ...createOfOrg],
    send: ({ whose }) => ({ body: { type: 'knowledge/documents', ...oneOwner(whose) } }),
  },
  'GET /api/v1/knowledge_sources/:source': { table: sources.read, make: make.source },
  'PATCH /api/v1/knowledge_sources/:source': { table: sources.update, make: make.source },
  'DELETE /api/v1/knowledge_sources/:source': { table: sources.delete, make: make.source, consumes: true },
  'GET /api/v1/knowledge_sources/:source/inbound_url': { table: sources.update, make: make.inbound },
  'POST /api/v1/knowledge_sources/:source/inbound_url': { table: sources.update, make: make.inbound },
  'POST /api/v1/knowledge_sources/:source/ingest': {
    table: sources.update,
    make: make.source,
    send: () => ({ body: { content: { data: 'Text.' } } }),
  },
  'POST /api/v1/knowledge_sources/:source/ingest/batch': {
    table: sources.update,
    make: make.source,
    send: () => ({ body: { items: [{ content: { data: 'Text.' } }] } }),
  },
  'GET /api/v1/knowledge_sources/:source/ingestions': { table: sources.read, make: make.source },
  'POST /api/v1/knowledge_sources/:source/search': {
    table: sources.read,
    make: make.source,
    send: () => ({ body: { query: 'text' } }),
  },
  'POST /api/v1/agents/:agent/search': {
    table: without(readOwned, 'agent'),
    make: make.agent,
    send: () => ({ body: { query: 'text' } }),
  },
  'GET /api/v1/knowledge_ingestions/:ingestion': { table: sources.read, make: make.ingestion },
  'GET /api/v1/knowledge_documents': { table: everybody },
  'GET /api/v1/knowledge_documents/:document': { table: sources.read, make: make.document },
  'GET /api/v1/knowledge_documents/:document/content': { table: sources.read, make: make.document },
  'PATCH /api/v1/knowledge_documents/:document': {
    table: sources.update,
    make: make.document,
    send: () => ({ body: { content: { data: 'Other text.' } } }),
  },
  'DELETE /api/v1/knowledge_documents/:document': { table: sources.update, make: make.document, consumes: true },
  'POST /api/v1/threads/:thread/messages': {
    table: updateOwned,
    make: make.agentThread,
    send: () => ({ body: { content: 'Hello.' } }),
  },

  'GET /api/v1/kv': { table: everybody },
  'POST /api/v1/kv': {
    table: kv.write,
    send: (target, caller) => ({ body: { key: `key-${++entries}`, value: 'v', ...kvUser(target, caller) } }),
  },
  'GET /api/v1/kv/:key': { table: kv.entry, make: make.entry, send: (...given) => ({ path: kvPath(...given) }) },
  'PUT /api/v1/kv/:key': {
    table: kv.write,
    send: (target, caller) => ({
      path: `/api/v1/kv/key-${++entries}`,
      body: { value: 'v', ...kvUser(target, caller) },
    }),
  },
  'DELETE /api/v1/kv/:key': {
    table: kv.entry,
    make: make.entry,
    send: (...given) => ({ path: kvPath(...given) }),
    consumes: true,
  },
};

/** Routes for developers that need no app, and those for one app of theirs that have no twin under /api/v1. */
const forDevelopers = [
  'POST /protected/api/v1/developer/apps',
  'GET /protected/api/v1/developer/apps',
  'GET /protected/api/v1/developer/apps/:app',
  'PATCH /protected/api/v1/developer/apps/:app',
];
/** Routes that look at the API key alone. */
const forKeys = ['POST /api/v1/auth/login', 'POST /api/v1/auth/refresh', 'POST /api/v1/auth/logout'];
/** Routes that look at no credential, and what they answer when nothing else is sent. */
const forEverybody: Record<string, number> = {
  'GET /healthz': 200,
  'GET /readyz': 200,
  'GET /metrics': 200,
  'GET /openapi.json': 200,
  'PUT /api/v1/files/uploads': 403,
  'POST /api/v1/inbound/:token': 404,
  'GET /api/v1/files/:file/content': 403,
  'GET /api/v1/files/:file/avatar': 404,
  'GET /api/v1/files/:file/org_logo': 404,
  'GET /api/v1/files/:file/share': 404,
};

const developerPrefix = '/protected/api/v1/developer/apps/:app';
const routes = server.server.api.routes.map(({ method, path }) => ({ name: `${method} ${path}`, method, path }));
const twinOf = (name: string) => name.replace(developerPrefix, '/api/v1');
const hasTwin = (name: string) => name.includes(developerPrefix) && !forDevelopers.includes(name);

test('every route has its place in the matrix, and every place its route', () => {
  const placed = new Set([...Object.keys(expected), ...forDevelopers, ...forKeys, ...Object.keys(forEverybody)]);
  const unplaced = routes.map(({ name }) => name).filter((name) => !placed.has(hasTwin(name) ? twinOf(name) : name));
  assert.deepEqual(unplaced, [], 'Add these to `expected` in this file, with who may call them.');
  const known = new Set(routes.map(({ name }) => name));
  assert.deepEqual(
    [...placed].filter((name) => !known.has(name)),
    [],
    'There are no such routes any more.',
  );
});

/** Who is answered like which caller: developers like the key of the scope that they choose. */
type Guise = { name: string; as: CallerName | number; options: ApiOptions };
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

function otherDeveloper(headers: Record<string, string>): ApiOptions {
  return { token: otherApp.developerToken, headers };
}

for (const [part, isIn, guises] of [
  ['under /api/v1', (name: string) => name in expected, guisesHere],
  ['under the developer path', hasTwin, guisesOnDeveloperPath],
] as const)
  test(`each route ${part} opens to whom the matrix says`, async () => {
    const checks: (() => Promise<string | undefined>)[] = [];
    for (const { name, method, path } of routes.filter((route) => isIn(route.name))) {
      const expectation = expected[hasTwin(name) ? twinOf(name) : name];
      if (!expectation) continue;
      for (const [row, { whose, outcomes }] of expectation.table.entries()) {
        const standing = standingTarget(expectation, whose);
        // Whoever is refused whatever they name needs asking once.
        for (const { name: guise, as, options } of guises.filter((each) => row === 0 || typeof each.as !== 'number'))
          checks.push(async () => {
            const outcome = typeof as === 'number' ? as : (outcomes.get(as) ?? 0);
            const fresh = expectation.consumes === true && outcome === 'ok';
            const target = fresh ? await expectation.make?.(whose) : await standing();
            const given = target ?? { id: '', whose };
            // The body and query are those of the key's twin, so that only the credential differs.
            const sent = (await expectation.send?.(given, typeof as === 'number' ? 'key' : as)) ?? {};
            const answer = await request(method, filled(path, given, sent), options, sent);
            const right = outcome === 'ok' ? answer.status >= 200 && answer.status < 300 : answer.status === outcome;
            return right ? undefined : `${name} · ${whose} · ${guise}: ${answer.status}, not ${outcome} ${answer.text}`;
          });
      }
    }
    assert.deepEqual(await runChecks(checks), []);
  });

/** One thing per row that nobody ends. */
function standingTarget({ make: makeOne }: Expectation, whose: Ownership): () => Promise<Target | undefined> {
  let made: Promise<Target> | undefined;
  return async () => {
    made ??= makeOne?.(whose);
    return made;
  };
}

/** The path with the target's ids in it; `send` may have given the twin's path, query included. */
function filled(path: string, target: Target, sent: Sent): string {
  const own = path.startsWith('/protected/') ? developerPrefix.replace(':app', app.app.id) : '/api/v1';
  if (sent.path !== undefined) return sent.path.replace('/api/v1', own);
  const names = [...path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '').filter((name) => name !== 'app');
  const ids = target.parent === undefined ? [target.id] : [target.parent, target.id];
  return names.reduce((text, name, at) => text.replace(`:${name}`, ids[at] ?? ''), path.replace(':app', app.app.id));
}

function request(method: string, path: string, options: ApiOptions, { body, headers }: Sent = {}) {
  const hasBody = method === 'POST' || method === 'PATCH' || method === 'PUT' || body !== undefined;
  return api<ErrorBody>(method, path, {
    ...options,
    ...(hasBody ? { body: body ?? {} } : {}),
    headers: { ...options.headers, ...headers },
  });
}

test('credentials that open nothing are 401 on every route but the public ones, and key routes take a key alone', async () => {
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
  const keyRouteAnswers: Record<string, number> = { 'a publishable key': 422, 'a good key beside a bad token': 422 };
  // A key route looks at the key alone.
  for (const name of [
    "a user's token beside another app's key",
    "a user's token beside a sandbox's key",
    'a secret key beside a developer token',
  ])
    keyRouteAnswers[name] = 422;
  const checks: (() => Promise<string | undefined>)[] = [];
  for (const { name, method, path } of routes.filter(({ name: each }) => !(each in forEverybody)))
    for (const [credential, options] of Object.entries(closed))
      checks.push(async () => {
        const status = forKeys.includes(name) ? (keyRouteAnswers[credential] ?? 401) : 401;
        const target = { id: 'x', parent: 'x', whose: 'mine' } as const;
        const answer = await request(method, filled(path, target, {}).replace('*', 'x'), options);
        if (answer.status === status && (status !== 401 || answer.body.error.type === 'authentication_error')) return;
        return `${name} · ${credential}: ${answer.status}, not ${status} ${answer.text}`;
      });
  assert.deepEqual(await runChecks(checks), []);
});

test('developers alone manage apps, and each their own', async () => {
  for (const name of forDevelopers) {
    const [method = '', path = ''] = name.split(' ');
    const sent = { body: method === 'POST' ? { name: 'App' } : method === 'PATCH' ? {} : undefined };
    const own = await request(method, path.replace(':app', app.app.id), developer, sent);
    assert.equal(own.status, method === 'POST' ? 201 : 200, `${name}: ${own.text}`);
    if (path.includes(':app')) {
      const others = await request(method, path.replace(':app', otherApp.app.id), developer, sent);
      assert.equal(others.status, 404, name);
    }
    for (const caller of callerNames)
      assert.equal((await request(method, path.replace(':app', app.app.id), callers[caller], sent)).status, 403, name);
  }
});

test('public routes answer the same whatever credential comes along', async () => {
  for (const [name, status] of Object.entries(forEverybody)) {
    const [method = '', path = ''] = name.split(' ');
    const at = path.replace(':file', (await make.file('mine')).id).replace(':token', 'x');
    for (const options of [{}, callers.key, { key: 'garbage' }, { token: 'garbage-garbage' }]) {
      const answer = await api(method, at, options);
      assert.equal(answer.status, status, `${name}: ${answer.text}`);
    }
  }
});

test('a list holds what reading one by one shows, to each caller', async () => {
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
    const answer = await api<{ data: Made[]; has_next: boolean }>(
      'GET',
      `/api/v1${path}?page_size=100&page=${page}`,
      options,
    );
    if (answer.status !== 200) return { status: answer.status, ids };
    for (const { id } of answer.body.data) ids.add(id);
    if (!answer.body.has_next) break;
  }
  return { status: 200, ids };
}

test('every refusal above left things as they were: the team still has its members', async () => {
  const members = await api<{ data: { user: Made }[] }>('GET', `/api/v1/teams/${team.id}/members`, {
    key: app.secretKey,
  });
  assert.deepEqual(
    new Set(members.body.data.map(({ user }) => user.id)),
    new Set([people.owner.id, people.teammate.id]),
  );
});
