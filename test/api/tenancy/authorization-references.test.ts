import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import { unending, without } from '../../support/authorization/expectations.ts';
import { createFixtures } from '../../support/authorization/fixtures.ts';
import { type Row, readMatrix, runChecks } from '../../support/authorization/matrix.ts';
import { kindsNamedBy, operations, type Reference, withReference } from '../../support/authorization/references.ts';
import { managed, orgs, readOwned, sources, teams, users } from '../../support/authorization/tables.ts';
import { type CallerName, callerNames, createTenants, type Ownership } from '../../support/authorization/tenants.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/*
 * What a body or a filter names: each member of each operation of openapi.json that holds an id × every kind of caller ×
 * whose the thing is. One law holds for all of them: what the caller does not see is answered, byte for byte, like what
 * nobody has; what they see is not. Of a list, a filter shows nothing that the caller does not list without it. So no table of outcomes has to be kept, and a new member is held to it by being
 * there. A member that test/support/authorization/references.ts does not know fails the first test.
 */

const server = await startTestServer({ env: { QUARRY_DB_POOL: '10' } });
after(() => server.close());
const { api } = server;
const town = await createTenants(server);
const { make } = createFixtures(server, town);
const { callers, people } = town;

const operationsHere = operations.filter(({ name }) => !name.includes('/developer/apps/:app/'));

test('every string of a body or a query is classified by what it names', () => {
  const unknown = operations.flatMap(({ name, members }) =>
    [...members].filter((member) => kindsNamedBy(name, member) === undefined).map((member) => `${name} ${member}`),
  );
  assert.deepEqual(unknown, [], 'Add these to test/support/authorization/references.ts, with the kind that they name.');
});

/** Who sees things of each kind: `ok` in these tables. */
const seen: Record<Reference, Row[]> = {
  agent: without(readOwned, 'agent'),
  file: readOwned,
  installation: managed,
  org: orgs.read,
  sandbox: readMatrix(`
              users key  sandboxKey otherKey
    sandbox   403   ok   ok         404
  `),
  source: sources.read,
  team: teams.read,
  thread: readOwned,
  user: users.read,
};

const targets = new Map<string, Promise<string>>();
function targetOf(kind: Reference, whose: Ownership): Promise<string> {
  const name = `${kind}/${whose}`;
  let made = targets.get(name);
  made ??= make[kind](whose).then(({ id, parent }) => (kind === 'team' ? (parent ?? '') : id));
  targets.set(name, made);
  return made;
}

type Base = { path?: string; body?: Record<string, unknown>; raw?: { body: string; headers: Record<string, string> } };

/** Something of the caller's own, made once. Undefined where they may not make it. */
const own = new Map<string, Promise<string | undefined>>();
function ownReference(caller: CallerName, path: string, body: object): Promise<string | undefined> {
  const name = `${caller} ${path} ${JSON.stringify(body)}`;
  let made = own.get(name);
  made ??= api<{ id: string }>('POST', `/api/v1${path}`, { ...callers[caller], body }).then((answer) =>
    answer.status === 201 ? answer.body.id : undefined,
  );
  own.set(name, made);
  return made;
}

const text = { filename: 'a.txt', content_type: 'text/plain', data: 'VGV4dC4=' };
const isKey = (caller: CallerName) => /key$/i.test(caller);
let names = 0;

/** The path with a thing of the caller's own in it. */
async function inPath(path: string, thing: Promise<string | undefined>, body?: object): Promise<Base | undefined> {
  const id = await thing;
  return id === undefined ? undefined : { path: path.replace(/:\w+/, id), ...(body && { body: { ...body } }) };
}
/** What grants apply to, unless the request names a file. */
const contentFor = (member: string) =>
  member.startsWith('body.acl') ? { content: { data: 'Text.' }, on_active: 'queue' } : undefined;
const oneContent = { content: { data: 'Text.' } };
const batchOfOne = { items: [oneContent], on_active: 'queue' };
const ownGroup = (caller: CallerName) =>
  ownReference(caller, '/groups', { namespace: 'test', external_id: `group ${++names}` });
const ownFile = (caller: CallerName) => ownReference(caller, '/files', text);
/** Another one each time: users who meet in a team see each other from then on. */
const ownTeam = (caller: CallerName) => ownReference(caller, '/teams', { name: `Team ${++names}` });
/** The user that a caller is, or for a key one of its app or sandbox. */
const userOf = (caller: CallerName) =>
  (caller in people ? people[caller as keyof typeof people] : people[userOfKey[caller] ?? 'owner']).id;
const userOfKey: Record<string, keyof typeof people> = { otherKey: 'stranger', sandboxKey: 'sandboxed' };
const ownSource = (caller: CallerName, type = 'knowledge/documents', metadata = {}) =>
  ownReference(caller, '/knowledge_sources', { type, user: userOf(caller), metadata });

/** A document of the caller's own that is there to change. */
async function ownDocument(caller: CallerName): Promise<string | undefined> {
  const source = await ownSource(caller, 'knowledge/documents', { for: 'documents' });
  const ingestion = await ownReference(caller, `/knowledge_sources/${source}/ingest`, { content: { data: 'Text.' } });
  const path = `/api/v1/knowledge_ingestions/${ingestion}`;
  let document: string | undefined;
  await until(async () => {
    const { body, text: said } = await api<{ status: string; metadata: { document: string } }>(
      'GET',
      path,
      callers[caller],
    );
    assert.ok(['pending', 'running', 'succeeded'].includes(body.status), `${caller} ${path}: ${said}`);
    if (body.status === 'succeeded') document = body.metadata.document;
    return document !== undefined;
  });
  return document;
}

async function ownAutomation(caller: CallerName): Promise<string | undefined> {
  const scope = caller === 'otherKey' || caller === 'stranger' ? 'otherKey' : 'key';
  const as = caller === 'sandboxKey' || caller === 'sandboxed' ? 'sandboxKey' : scope;
  const id = await ownReference(as, '/automations', { name: 'Automation', type: 'invoked' });
  await api('POST', `/api/v1/automations/${id}/activate`, callers[as]);
  return id;
}

const newIssuer = () => ({ issuer: `https://issuer-${++names}.test`, audience: 'quarry' });

/** A request of each operation that is good but for what the member names. */
const bases: Record<string, (caller: CallerName, member: string) => Promise<Base | undefined> | Base> = {
  'POST /api/v1/agents': () => ({ body: { name: 'Agent' } }),
  'POST /api/v1/automations': () => ({ body: { name: 'Automation', type: 'invoked' } }),
  'PATCH /api/v1/automations/:automation': (caller) => inPath('/automations/:id', ownAutomation(caller)),
  'POST /api/v1/automations/:automation/invoke': (caller) => inPath('/automations/:id/invoke', ownAutomation(caller)),
  'POST /api/v1/extractions': async (caller, member) => ({
    body: { destination_kind: 'storage', ...(member === 'body.file' ? {} : { file: await ownFile(caller) }) },
  }),
  'POST /api/v1/files': () => ({ body: text }),
  'PATCH /api/v1/files/:file': (caller) => inPath('/files/:id', ownFile(caller)),
  'POST /api/v1/files/uploads': () => ({
    raw: { body: 'bytes', headers: { 'x-filename': 'a.txt', 'content-type': 'text/plain' } },
  }),
  'POST /api/v1/files/upload_urls': () => ({ body: { filename: 'a.txt', content_type: 'text/plain' } }),
  'POST /api/v1/identity_issuers': () => ({ body: newIssuer() }),
  'PATCH /api/v1/identity_issuers/:identity_issuer': (caller) =>
    inPath('/identity_issuers/:id', ownReference(caller, '/identity_issuers', newIssuer())),
  'POST /api/v1/installations': () => ({ body: { kind: 'webhook/inbound' } }),
  'POST /api/v1/keys': () => ({ body: { type: 'publishable' } }),
  'POST /api/v1/knowledge_sources': (caller, member) => ({
    body: {
      type: member.includes('payload') ? 'file/document' : 'knowledge/documents',
      ...(/payload|parent|thread/.test(member) ? { user: userOf(caller) } : {}),
    },
  }),
  'PATCH /api/v1/knowledge_sources/:source': (caller) =>
    inPath('/knowledge_sources/:id', ownSource(caller, 'file/document')),
  'POST /api/v1/knowledge_sources/:source/ingest': (caller, member) =>
    inPath('/knowledge_sources/:id/ingest', ownSource(caller), contentFor(member)),
  'POST /api/v1/knowledge_sources/:source/ingest/batch': (caller, member) =>
    inPath('/knowledge_sources/:id/ingest/batch', ownSource(caller), contentFor(member) && batchOfOne),
  'PUT /api/v1/knowledge_syncs/:sync/batches/:number': async (caller) => {
    const source = await ownSource(caller, 'knowledge/documents', { for: 'syncs' });
    const sync = await ownReference(caller, `/knowledge_sources/${source}/syncs`, { mode: 'full' });
    return sync === undefined ? undefined : { path: `/knowledge_syncs/${sync}/batches/1`, body: { fence: 1 } };
  },
  'POST /api/v1/answers': () => ({ body: { query: 'words of a question' } }),
  'POST /api/v1/citations/verify': () => ({ body: { quotes: ['words of a quote'] } }),
  'POST /api/v1/knowledge_search': () => ({ body: { query: 'text' } }),
  'PATCH /api/v1/knowledge_documents/:document': (caller, member) =>
    inPath('/knowledge_documents/:id', ownDocument(caller), member.startsWith('body.acl') ? oneContent : undefined),
  'POST /api/v1/groups/:group/members': (caller) => inPath('/groups/:id/members', ownGroup(caller)),
  'PUT /api/v1/groups/:group/members': (caller) => inPath('/groups/:id/members', ownGroup(caller)),
  'PATCH /api/v1/knowledge_documents/:document/acl': (caller) =>
    inPath('/knowledge_documents/:id/acl', ownDocument(caller)),
  'POST /api/v1/kv_increment': () => ({ body: { key: `count-${++names}` } }),
  'POST /api/v1/kv_batch': () => ({ body: { operations: [{ op: 'get', key: 'k' }] } }),
  'POST /api/v1/kv': () => ({ body: { key: `key-${++names}`, value: 'v' } }),
  'PUT /api/v1/kv/:key': () => ({ path: `/kv/key-${++names}`, body: { value: 'v' } }),
  'GET /api/v1/kv/:key': () => ({ path: '/kv/key-0' }),
  'DELETE /api/v1/kv/:key': () => ({ path: '/kv/key-0' }),
  'POST /api/v1/teams': () => ({ body: { name: 'Team' } }),
  'POST /api/v1/teams/:team/members': (caller) => inPath('/teams/:id/members', ownTeam(caller)),
  'DELETE /api/v1/teams/:team/members': (caller) => inPath('/teams/:id/members', ownTeam(caller)),
  'POST /api/v1/threads': () => ({ body: { title: 'Thread' } }),
  'POST /api/v1/users': () => ({ body: { email: `reference-${++names}@example.test` } }),
  'PATCH /api/v1/users/:user': (caller) =>
    inPath('/users/:id', ownReference(caller, '/users', { email: `${caller}-${++names}@example.test` })),
  'POST /v1/vector_stores': () => ({ body: {} }),
  'POST /v1/vector_stores/:source/files': (caller) => inPath('/v1/vector_stores/:id/files', ownSource(caller)),
  'POST /v1/vector_stores/:source/file_batches': (caller) =>
    inPath('/v1/vector_stores/:id/file_batches', ownSource(caller)),
  'GET /api/v1/config/:path': () => ({ path: '/config/shelf/a.md' }),
  'PUT /api/v1/config/:path': () => ({ path: '/config/shelf/a.md', body: { content: 'Text.' } }),
  'DELETE /api/v1/config/:path': () => ({ path: '/config/shelf/a.md' }),
};

/** Where seeing a thing makes no difference: nobody is a member, nothing is granted, no entry is there. */
const alike = new Set([
  'DELETE /api/v1/teams/:team/members body.user',
  'DELETE /api/v1/teams/:team/members body.agent',
  'PATCH /api/v1/files/:file body.acl.remove.principal',
  'PATCH /api/v1/knowledge_documents/:document/acl body.remove.principal',
  'POST /api/v1/files body.acl.remove.principal',
  'GET /api/v1/kv/:key query.user',
  'DELETE /api/v1/kv/:key query.user',
  'DELETE /api/v1/kv/:key body.user',
]);

/** What the response says, without the ids that it names. */
async function sendReference(operation: string, caller: CallerName, member: string, kind: Reference, id: string) {
  const [method = '', path = ''] = operation.split(' ');
  const base = method === 'GET' && !(operation in bases) ? {} : await bases[operation]?.(caller, member);
  if (base === undefined) return undefined;
  const sent = withReference({ ...(base.body === undefined ? {} : { body: base.body }) }, member, kind, id);
  const query = sent.query === undefined ? '' : `?${new URLSearchParams(sent.query)}`;
  const at = base.path === undefined || base.path.startsWith('/v1/') ? (base.path ?? path) : `/api/v1${base.path}`;
  const verb = unending.has(operation) ? 'HEAD' : method;
  const answer = await api<{ error?: { fields: { field: string }[] }; data?: unknown[] }>(verb, `${at}${query}`, {
    ...callers[caller],
    ...(base.raw ?? (sent.body === undefined ? {} : { body: sent.body })),
    headers: { ...callers[caller].headers, ...base.raw?.headers },
  });
  return { status: answer.status, said: answer.text.replaceAll(id, 'ID'), body: answer.body };
}

type Listed = { id?: string; user?: string; key?: string };
const lists = new Map<string, Promise<Set<string>>>();
const nameOf = ({ id, user, key }: Listed) => id ?? `${user}/${key}`;

/** Whether the caller lists all of these without a filter. */
async function listsAll(operation: string, caller: CallerName, listed: unknown[]): Promise<boolean> {
  const path = operation.slice('GET '.length);
  let all = lists.get(`${path} ${caller}`);
  all ??= listIds(path, caller);
  lists.set(`${path} ${caller}`, all);
  const ids = await all;
  return (listed as Listed[]).every((each) => ids.has(nameOf(each)));
}

async function listIds(path: string, caller: CallerName): Promise<Set<string>> {
  const ids = new Set<string>();
  for (let page = 1; page <= 100; page++) {
    const { body } = await api<{ data: Listed[]; has_next: boolean }>(
      'GET',
      `${path}?page_size=100&page=${page}`,
      callers[caller],
    );
    for (const each of body.data) ids.add(nameOf(each));
    if (!body.has_next) break;
  }
  return ids;
}

type Naming = { operation: string; member: string; kind: Reference };
const namings: Naming[] = operationsHere.flatMap(({ name: operation, members }) =>
  [...members].flatMap((member) =>
    (kindsNamedBy(operation, member) ?? []).map((kind) => ({ operation, member, kind })),
  ),
);

test('every operation that names a resource in its body has a sample request', () => {
  const untried = namings.filter(({ operation }) => !operation.startsWith('GET ') && !(operation in bases));
  assert.deepEqual([...new Set(untried.map(({ operation }) => operation))], [], 'Add a request to `bases` above.');
  assert.ok(namings.length > 60, `${namings.length}`);
});

/** Before any list is read to compare with. */
async function createTargets(): Promise<void> {
  for (const [kind, rows] of Object.entries(seen))
    await Promise.all(rows.map(({ whose }) => targetOf(kind as Reference, whose)));
}

for (const [part, isIn, triedMin] of [
  ['a body', (naming: Naming) => naming.member.startsWith('body.'), 1_000],
  ['a filter', (naming: Naming) => naming.member.startsWith('query.'), 500],
] as const)
  test(`what ${part} names and the caller does not see gets the response of a missing one`, async () => {
    await createTargets();
    let tried = 0;
    const checks = namings.filter(isIn).flatMap(({ operation, member, kind }) =>
      callerNames.map((caller) => async () => {
        const missing = await sendReference(operation, caller, member, kind, formatId(kind, newUuid()));
        if (missing === undefined) return undefined;
        const name = `${operation} · ${member} (${kind}) · ${caller}`;
        const problems: string[] = [];
        const ignored = member.endsWith('.user') && operation.includes('/kv') && !isKey(caller);
        const removes = alike.has(`${operation} ${member}`);
        if (missing.status < 300 && !operation.startsWith('GET ') && !ignored && !removes)
          problems.push(`${name}: what nobody has is taken: ${missing.status}`);
        if (operation.startsWith('GET ') && missing.status === 200 && !ignored && (missing.body?.data?.length ?? 0) > 0)
          problems.push(`${name}: the filter is not looked at`);
        // A caller who is refused for every resource is tried once.
        for (const { whose, outcomes } of seen[kind].slice(0, missing.status === 403 ? 1 : undefined)) {
          const answer = await sendReference(operation, caller, member, kind, await targetOf(kind, whose));
          if (answer === undefined) continue;
          tried += 1;
          const sees = outcomes.get(caller) === 'ok';
          const same = answer.status === missing.status && answer.said === missing.said;
          const listed = operation.startsWith('GET ') && answer.status === 200 && answer.body?.data !== undefined;
          if (!sees && !same && !ignored && !(listed && (await listsAll(operation, caller, answer.body.data ?? []))))
            problems.push(`${name} · ${whose}: ${answer.status} ${answer.said}, not ${missing.status} ${missing.said}`);
          const differs = missing.status === 422 || missing.status === 404;
          if (sees && same && differs && !removes) problems.push(`${name} · ${whose}: seen, and answered as missing`);
        }
        return problems.length === 0 ? undefined : problems.join('\n');
      }),
    );
    const problems = await runChecks(checks);
    assert.deepEqual(problems, []);
    assert.ok(tried > triedMin, `${tried}`);
  });
