import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Transaction } from '../../../src/db/database.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import type { TestResource } from '../../support/provisioner.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/*
 * What happens to a request whose owner is deleted in the same moment: each test holds the deletion open in a
 * transaction of its own, sends the request, waits until it hangs on a lock, and commits.
 */
const server = await startTestServer();
const app = await server.provision.app();
const member = await server.provision.user(app);
after(() => server.close());

type Case = {
  what: string;
  /** What is deleted while the request runs. */
  table: string;
  gone: () => Promise<TestResource>;
  request: (gone: TestResource) => [method: string, path: string, body: unknown];
  expected: { status: number; field?: string };
};

async function createAgent(): Promise<TestResource> {
  const { body } = await server.api<{ id: string }>('POST', '/api/v1/agents', {
    key: app.secretKey,
    body: { name: 'a' },
  });
  return { id: body.id, uuid: await uuidOf('agents') };
}

async function createTeam(): Promise<TestResource> {
  const { body } = await server.api<{ id: string }>('POST', '/api/v1/teams', {
    key: app.secretKey,
    body: { name: 't' },
  });
  return { id: body.id, uuid: await uuidOf('teams') };
}

async function uuidOf(table: string): Promise<string> {
  const [row] = await server.db<{ id: string }[]>`
    select id from ${server.db(table)} where app_id = ${app.app.uuid} order by created_at desc, id desc limit 1`;
  if (!row) throw new Error(`There is no row in ${table}.`);
  return row.id;
}

async function createSource(owner: Record<string, string>): Promise<TestResource> {
  const body = { type: 'knowledge/documents', ...owner };
  const made = await server.api<{ id: string }>('POST', '/api/v1/knowledge_sources', { key: app.secretKey, body });
  assert.equal(made.status, 201, made.text);
  return { id: made.body.id, uuid: await uuidOf('knowledge_sources') };
}

async function createAutomation(): Promise<TestResource> {
  const automations = new AutomationsClient(server, app);
  const { id } = await automations.createAutomation({ workflow: graphOf({ id: 'a', kind: 'trigger' }) });
  return { id, uuid: await uuidOf('automations') };
}

/** A document, by the source that is deleted. */
async function createDocument(): Promise<TestResource> {
  const source = await makeOrgSource();
  const id = await knowledgeOf(server, { key: app.secretKey }).push(source.id, 'Text');
  return { id, uuid: source.uuid };
}

const makeOrgSource = async () => createSource({ org: (await makeOrg()).id });
const makeUser = () => server.provision.user(app);
const makeSandbox = async () => (await server.provision.sandbox(app)).sandbox;
const makeOrg = () => server.provision.org(app);
const cases: Case[] = [
  {
    ...{ what: 'a replacement of a document', table: 'knowledge_sources', gone: createDocument },
    expected: { status: 404 },
    request: ({ id }) => ['PATCH', `/knowledge_documents/${id}`, { content: { data: 'Other' } }],
  },
  {
    ...{ what: 'a source', table: 'users', gone: makeUser, expected: { status: 422, field: 'user' } },
    request: ({ id }) => ['POST', '/knowledge_sources', { type: 'knowledge/documents', user: id }],
  },
  {
    ...{ what: 'a user', table: 'orgs', gone: makeOrg, expected: { status: 422, field: 'org' } },
    request: ({ id, uuid }) => ['POST', '/users', { email: `${uuid}@example.test`, org: id }],
  },
  {
    ...{ what: 'a team', table: 'orgs', gone: makeOrg, expected: { status: 422, field: 'org' } },
    request: ({ id }) => ['POST', '/teams', { name: 't', org: id }],
  },
  {
    ...{ what: 'an agent', table: 'teams', gone: createTeam, expected: { status: 422, field: 'team' } },
    request: ({ id }) => ['POST', '/agents', { name: 'a', team: id }],
  },
  {
    ...{ what: 'a thread', table: 'agents', gone: createAgent, expected: { status: 422, field: 'agent' } },
    request: ({ id }) => ['POST', '/threads', { title: 't', agent: id }],
  },
  {
    ...{ what: 'an installation', table: 'agents', gone: createAgent, expected: { status: 404 } },
    request: ({ id }) => ['POST', `/agents/${id}/installations`, { kind: 'web/site' }],
  },
  {
    ...{ what: 'an automation', table: 'users', gone: makeUser, expected: { status: 422, field: 'user' } },
    request: ({ id }) => [
      'POST',
      '/automations',
      { name: 'a', type: 'invoked', user: id, workflow: graphOf({ id: 'a', kind: 'trigger' }) },
    ],
  },
  {
    ...{ what: 'an invocation', table: 'automations', gone: createAutomation, expected: { status: 404 } },
    request: ({ id }) => ['POST', `/automations/${id}/invoke`, { payload: {} }],
  },
  {
    ...{ what: 'a member, when the team goes', table: 'teams', gone: createTeam, expected: { status: 404 } },
    request: ({ id }) => ['POST', `/teams/${id}/members`, { user: member.id }],
  },
  {
    ...{ what: 'a key', table: 'sandboxes', gone: makeSandbox, expected: { status: 422, field: 'sandbox' } },
    request: ({ id }) => ['POST', '/keys', { type: 'secret', sandbox: id }],
  },
  {
    ...{ what: 'a personal token', table: 'users', gone: makeUser, expected: { status: 404 } },
    request: ({ id }) => ['POST', `/users/${id}/tokens`, { name: 't' }],
  },
  {
    ...{ what: 'an ingestion', table: 'knowledge_sources', gone: makeOrgSource, expected: { status: 404 } },
    request: ({ id }) => ['POST', `/knowledge_sources/${id}/ingest`, { content: { data: 'Otters.' } }],
  },
  {
    ...{ what: 'a file', table: 'users', gone: makeUser, expected: { status: 422, field: 'user' } },
    request: ({ id }) => ['POST', '/files', { filename: 'a', content_type: 'text/plain', data: '', user: id }],
  },
];
for (const { what, table, gone, request, expected } of cases)
  test(`creating ${what} while its owner is deleted is ${expected.status}`, async () => {
    const owner = await gone();
    const [method, path, body] = request(owner);
    let answer: ReturnType<typeof send> | undefined;
    const send = () =>
      server.api<{ error: { fields: { field: string }[] } }>(method, `/api/v1${path}`, { key: app.secretKey, body });
    await server.db.begin(async (tx) => {
      await tx`delete from ${tx(table)} where app_id = ${app.app.uuid} and id = ${owner.uuid}`;
      answer = send();
      await waitForLock(tx, answer);
    });
    const { status, body: error, text } = await (answer as ReturnType<typeof send>);
    assert.equal(status, expected.status, text);
    if (expected.field !== undefined)
      assert.deepEqual(
        error.error.fields.map(({ field }) => field),
        [expected.field],
      );
  });

for (const [type, table] of [
  ['personal', 'personal_tokens'],
  ['session', 'refresh_tokens'],
] as const)
  test(`a ${type} token for a user who was deleted after the request had found them is 404`, async () => {
    const user = await makeUser();
    let answer: Promise<{ status: number; text: string }> | undefined;
    await server.db.begin(async (tx) => {
      await tx`lock table ${tx(table)} in access exclusive mode`;
      answer = server.api('POST', `/api/v1/users/${user.id}/tokens`, { key: app.secretKey, body: { type } });
      await waitForLock(tx, answer);
      await tx`delete from users where app_id = ${app.app.uuid} and id = ${user.uuid}`;
    });
    const response = await answer;
    assert.equal(response?.status, 404, response?.text);
  });

/** Waits until the request waits for a lock that the caller's transaction holds, or has ended without. */
async function waitForLock(tx: Transaction, request: Promise<unknown>): Promise<void> {
  const pid = await pidOf(tx);
  let isOver = false;
  void request.finally(() => {
    isOver = true;
  });
  const look = () => server.db`select 1 from pg_stat_activity where ${pid} = any(pg_blocking_pids(pid))`;
  await until(async () => isOver || (await look()).count > 0);
}

async function pidOf(tx: Transaction): Promise<number> {
  const [row] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return row?.pid ?? 0;
}

test('a file that is deleted during a large PATCH of it stays deleted', async () => {
  const key = app.secretKey;
  const person = await server.provision.user(app);
  const grants = Array.from({ length: 500 }, () => ({
    ...{ principal_type: 'user', principal: person.id, actions: ['read'] },
  }));
  const body = { provider_metadata: { note: 'x'.repeat(200_000) }, acl: { grants } };
  const create = async () => {
    const data = { filename: 'a.txt', content_type: 'text/plain', data: 'VGV4dC4=' };
    return (await server.api<{ id: string }>('POST', '/api/v1/files', { key, body: data })).body.id;
  };
  for (let round = 0; round < 10; round++) {
    const path = `/api/v1/files/${await create()}`;
    const [changed, deleted] = await Promise.all([
      server.api('PATCH', path, { key, body }),
      server.api('DELETE', path, { key }),
    ]);
    assert.ok([200, 404].includes(changed.status), changed.text);
    assert.equal(deleted.status, 204);
    assert.equal((await server.api('GET', path, { key })).status, 404);
  }
  const id = await create();
  let changed: ReturnType<typeof server.api> | undefined;
  await server.db.begin(async (tx) => {
    await tx`delete from files where app_id = ${app.app.uuid} and id = ${parseId('file', id) ?? ''}`;
    changed = server.api('PATCH', `/api/v1/files/${id}`, { key, body });
    await waitForLock(tx, changed);
  });
  assert.equal((await changed)?.status, 404);
  assert.equal((await server.api('GET', `/api/v1/files/${id}`, { key })).status, 404);
});

test('a source or its owner is deleted while contents are pushed, without a deadlock', async () => {
  // Longer than the test may take: a deadlock would show as its timeout.
  const name = (await server.db<{ name: string }[]>`select current_database() as name`)[0]?.name ?? '';
  await server.db`alter database ${server.db(name)} set deadlock_timeout = '10min'`;
  await server.db`select pg_terminate_backend(pid, 10000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and application_name = 'quarry'`;
  const call = (method: string, path: string, body?: unknown) =>
    server.api(method, `/api/v1${path}`, { key: app.secretKey, ...(body === undefined ? {} : { body }) });
  // While the server responds to this, it learns that its connections are closed.
  await server.api('GET', '/healthz');
  const owners: [string, () => Promise<TestResource>][] = [
    ['user', makeUser],
    ['team', createTeam],
    ['agent', createAgent],
    ['org', makeOrg],
  ];
  for (let round = 0; round < 40; round++) {
    const [kind, make] = owners[round % owners.length] as (typeof owners)[number];
    const owner = await make();
    const source = await createSource({ [kind]: owner.id });
    const file = await call('POST', '/files', {
      ...{ filename: 'a.txt', content_type: 'text/plain', data: 'T3R0ZXJzLg==', [kind]: owner.id },
    });
    const { id: fileId } = file.body as { id: string };
    const push = (body: object) =>
      call('POST', `/knowledge_sources/${source.id}/ingest`, { on_active: 'queue', ...body });
    const pushes = [
      push({ content: { data: 'Otters swim.' } }),
      push({ file: fileId }),
      push({ content: { data: 'x' } }),
    ];
    await Promise.race(pushes);
    const deletes = [
      call('DELETE', round % 2 === 0 ? `/knowledge_sources/${source.id}` : `/${kind}s/${owner.id}`),
      ...pushes,
    ];
    for (const { status, text } of await Promise.all(deletes)) assert.ok(status < 500, text);
  }
});
