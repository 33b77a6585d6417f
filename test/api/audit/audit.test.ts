import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sweepAudit } from '../../../src/audit/sweep.ts';
import { createLedger } from '../../../src/ledger/seal.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { type ApiOptions, type ErrorBody, startTestServer } from '../../support/server.ts';

type Entry = {
  id: string;
  at: string;
  actor: { kind: string; id: string };
  credential: string;
  action: string;
  method: string;
  route: string;
  resource?: string;
  status: number | null;
  request_id: string;
  address?: string;
};
type Use = { credential: string; kind: string; day: string; first_at: string; requests: number; refused: number };
type List<T> = { data: T[]; total_entries: number };

const server = await startTestServer({ logLevel: 'fatal' });
after(() => server.close());
const { api, provision, db, services } = server;

const auditOf = async (app: Pick<TestApp, 'secretKey'>, query = '') =>
  (await api<List<Entry>>('GET', `/api/v1/audit?page_size=100&${query}`, { key: app.secretKey })).body;
const usesOf = async (app: Pick<TestApp, 'secretKey'>, query = '') =>
  (await api<List<Use>>('GET', `/api/v1/credential_uses?${query}`, { key: app.secretKey })).body.data;

test('a change is logged with its actor, action, outcome, time and address', async () => {
  const app = await provision.app();
  const options = { key: app.secretKey, headers: { 'x-request-id': 'request-1' } };
  const made = await api<{ id: string }>('POST', '/api/v1/orgs', { ...options, body: { name: 'Org' } });
  const { data, total_entries } = await auditOf(app);
  assert.equal(total_entries, 1);
  const [{ id, at, actor, address, ...entry } = {} as Entry] = data;
  assert.match(id, /^aud_/);
  assert.ok(Date.now() - Date.parse(at) < 60_000);
  assert.match(actor.id, /^dak_/);
  assert.equal(actor.kind, 'secret_key');
  assert.equal(address, '127.0.0.1');
  assert.deepEqual(entry, {
    credential: 'secret_key',
    action: 'createOrg',
    method: 'POST',
    route: '/api/v1/orgs',
    resource: made.body.id,
    status: 201,
    request_id: 'request-1',
  });
});

test('refused changes are logged as refused, reads and searches are not logged', async () => {
  const app = await provision.app();
  const nobody = `org_${'0'.repeat(22)}`;
  await api('DELETE', `/api/v1/orgs/${nobody}`, { key: app.secretKey });
  await api('GET', '/api/v1/orgs', { key: app.secretKey });
  await api('POST', `/api/v1/agents/agt_${'0'.repeat(22)}/search`, { key: app.secretKey, body: { query: 'text' } });
  const { data } = await auditOf(app);
  assert.deepEqual(
    data.map(({ action, resource, status }) => [action, resource, status]),
    [['deleteOrg', nobody, 404]],
  );
});

test('keys, tokens, members, access lists and shares are each recorded, for every kind of caller', async () => {
  const app = await provision.app();
  const developer = { token: app.developerToken };
  const base = `/protected/api/v1/developer/apps/${app.app.id}`;
  const org = await provision.org(app);
  const [owner, member] = [await provision.user(app, { org }), await provision.user(app, { org })];
  const key = await api<{ id: string; full_key: string }>('POST', `${base}/keys`, {
    ...developer,
    body: { type: 'secret' },
  });
  await api('DELETE', `${base}/keys/${key.body.id}`, developer);
  const token = await api<{ id: string; token: string }>('POST', `/api/v1/users/${owner.id}/tokens`, {
    token: owner.token,
    body: {},
  });
  const asOwner: ApiOptions = { token: token.body.token };
  const team = await api<{ id: string }>('POST', '/api/v1/teams', { ...asOwner, body: { name: 'Team', org: org.id } });
  await api('POST', `/api/v1/teams/${team.body.id}/members`, { ...asOwner, body: { user: member.id } });
  const file = await api<{ id: string }>('POST', '/api/v1/files', {
    ...asOwner,
    body: { filename: 'a.png', content_type: 'image/png', data: 'aGVsbG8=' },
  });
  const grant = { principal_type: 'user', principal: member.id, actions: ['read'] };
  await api('PATCH', `/api/v1/files/${file.body.id}`, { ...asOwner, body: { share: true, acl: { add: [grant] } } });

  const { data } = await auditOf(app);
  const told = data.map(({ action, actor, credential, status }) => [action, actor.kind, credential, status]).reverse();
  assert.deepEqual(told.slice(0, 5), [
    ['createKey', 'developer', 'developer_token', 201],
    ['deleteKey', 'developer', 'developer_token', 204],
    ['createUserToken', 'user', 'user', 201],
    ['createTeam', 'user', 'personal_token', 201],
    ['addTeamMember', 'user', 'personal_token', 201],
  ]);
  assert.deepEqual(told.slice(5), [
    ['createFile', 'user', 'personal_token', 201],
    ['updateFile', 'user', 'personal_token', 200],
  ]);
  const text = JSON.stringify(data);
  for (const secret of [key.body.full_key, token.body.token, 'aGVsbG8=']) assert.ok(!text.includes(secret));
});

test('a change of rights is logged before it begins: an interrupted one has no outcome', async () => {
  const app = await provision.app();
  const key = await api<{ id: string }>('POST', '/api/v1/keys', { key: app.secretKey, body: { type: 'secret' } });
  const answered = await db.begin(async (tx) => {
    await tx`select 1 from api_keys where app_id = ${app.app.uuid} for update`;
    const revoking = api('DELETE', `/api/v1/keys/${key.body.id}`, { key: app.secretKey });
    // The deletion waits for us; its entry is there all the same.
    let entry: { status: number | null } | undefined;
    while (entry === undefined)
      [entry] = await db<{ status: number | null }[]>`
        select status from audit_entries where app_id = ${app.app.uuid} and action = 'deleteKey'`;
    assert.equal(entry.status, null);
    return revoking.then.bind(revoking);
  });
  await new Promise<unknown>((resolve) => answered(resolve));
  const { data } = await auditOf(app, 'action=deleteKey');
  assert.deepEqual([data[0]?.status, data[0]?.resource], [204, key.body.id]);
});

test('a change that cannot be logged does not happen', async () => {
  const app = await provision.app();
  await db`alter table audit_entries rename to audit_entries_away`;
  try {
    const refused = await api('POST', '/api/v1/orgs', { key: app.secretKey, body: { name: 'Org' } });
    assert.equal(refused.status, 500);
  } finally {
    await db`alter table audit_entries_away rename to audit_entries`;
  }
  assert.equal((await db`select 1 from orgs where app_id = ${app.app.uuid}`).length, 0);
});

test('the creation of an app is its first entry', async () => {
  const app = await provision.app();
  const made = await api<{ id: string }>('POST', '/protected/api/v1/developer/apps', {
    token: app.developerToken,
    body: { name: 'App' },
  });
  const answer = await api<List<Entry>>('GET', `/protected/api/v1/developer/apps/${made.body.id}/audit`, {
    token: app.developerToken,
  });
  assert.deepEqual(
    answer.body.data.map(({ action, actor, resource }) => [action, actor.kind, resource]),
    [['createApp', 'developer', made.body.id]],
  );
});

test('the list is filtered by actor, action, resource and time, and paged', async () => {
  const app = await provision.app();
  const user = await provision.user(app);
  for (let i = 0; i < 3; i++)
    await api('POST', '/api/v1/agents', { token: user.token, body: { name: 'Agent', user: user.id } });
  const org = await api<{ id: string }>('POST', '/api/v1/orgs', { key: app.secretKey, body: { name: 'Org' } });
  const all = (await auditOf(app)).data;
  assert.equal(all.length, 4);
  assert.equal((await auditOf(app, `actor=${user.id}`)).total_entries, 3);
  assert.equal((await auditOf(app, 'action=createOrg')).total_entries, 1);
  assert.equal((await auditOf(app, `resource=${org.body.id}`)).total_entries, 1);
  const time = encodeURIComponent(all[1]?.at ?? '');
  const [since, until] = [await auditOf(app, `since=${time}`), await auditOf(app, `until=${time}`)];
  assert.equal(since.total_entries + until.total_entries, 4);
  assert.ok(since.data.some(({ id }) => id === all[0]?.id) && until.data.every(({ id }) => id !== all[0]?.id));
  const paged = await api<List<Entry>>('GET', '/api/v1/audit?page=2&page_size=3', { key: app.secretKey });
  assert.deepEqual([paged.body.data[0]?.id, paged.body.total_entries], [all[3]?.id, 4]);
  for (const [query, field] of [
    ['actor=nobody', 'actor'],
    ['since=yesterday', 'since'],
    ['until=2026', 'until'],
  ]) {
    const wrong = await api<ErrorBody>('GET', `/api/v1/audit?${query}`, { key: app.secretKey });
    assert.deepEqual([wrong.status, wrong.body.error.fields[0]?.field], [422, field]);
  }
});

test('each app and each sandbox sees its own entries', async () => {
  const [app, other] = [await provision.app(), await provision.app()];
  const sandbox = await provision.sandbox(app);
  for (const key of [app.secretKey, other.secretKey, sandbox.secretKey])
    await api('POST', '/api/v1/orgs', { key, body: { name: 'Org' } });
  const lists = await Promise.all([app, other, sandbox].map((scope) => auditOf(scope)));
  assert.deepEqual(
    lists.map(({ total_entries }) => total_entries),
    [1, 1, 1],
  );
  assert.equal(new Set(lists.map(({ data }) => data[0]?.id)).size, 3);
});

test('changes of key-value entries are logged only if the settings require it', async () => {
  const app = await provision.app();
  const user = await provision.user(app);
  const put = (through: typeof server) =>
    through.api('PUT', '/api/v1/kv/secret-looking-key', { token: user.token, body: { value: 'v' } });
  assert.equal((await put(server)).status, 200);
  assert.equal((await auditOf(app)).total_entries, 0);
  const everything = await startTestServer({ env: { QUARRY_AUDIT: 'all' }, beside: server });
  const nothing = await startTestServer({ env: { QUARRY_AUDIT: 'off' }, beside: server });
  try {
    await put(everything);
    await put(nothing);
    await nothing.api('POST', '/api/v1/orgs', { key: app.secretKey, body: { name: 'Org' } });
  } finally {
    await everything.close();
    await nothing.close();
  }
  // Stopping wrote what waited.
  const { data } = await auditOf(app);
  assert.deepEqual(
    data.map(({ action, status }) => [action, status]),
    [['putKvEntry', 200]],
  );
  assert.ok(!JSON.stringify(data).includes('secret-looking-key'));
});

test('a credential sent by mistake in a path is not logged', async () => {
  const app = await provision.app();
  await api('DELETE', `/api/v1/keys/${app.secretKey}`, { key: app.secretKey });
  const { data } = await auditOf(app);
  assert.deepEqual([data[0]?.action, data[0]?.status, data[0]?.resource], ['deleteKey', 404, undefined]);
});

test('uses are counted by credential and day, refusals and failed sign-ins among them', async () => {
  const app = await provision.app();
  const user = await provision.user(app);
  const token = await api<{ id: string; token: string }>('POST', `/api/v1/users/${user.id}/tokens`, {
    token: user.token,
    body: {},
  });
  await api('GET', '/api/v1/orgs', { token: token.body.token });
  assert.equal((await api('GET', '/api/v1/keys', { token: token.body.token })).status, 403);
  const login = { email: 'nobody@example.test', password: 'wrong-password' };
  assert.equal((await api('POST', '/api/v1/auth/login', { key: app.publishableKey, body: login })).status, 401);
  await api('GET', '/api/v1/orgs', { token: app.developerToken, headers: { 'x-app': app.app.id } });

  const uses = await usesOf(app);
  const of = (kind: string) => uses.find((use) => use.kind === kind);
  assert.deepEqual([of('user')?.credential, of('user')?.requests, of('user')?.refused], [user.id, 1, 0]);
  const personal = of('personal_token');
  assert.deepEqual([personal?.credential, personal?.requests, personal?.refused], [token.body.id, 2, 1]);
  assert.deepEqual([of('publishable_key')?.requests, of('publishable_key')?.refused], [1, 1]);
  assert.equal(of('developer_token')?.requests, 1);
  assert.equal((await usesOf(app, `credential=${token.body.id}`)).length, 1);

  const keys = await api<List<{ type: string; last_used_at?: string }>>('GET', '/api/v1/keys', { key: app.secretKey });
  assert.ok(keys.body.data.find(({ type }) => type === 'publishable')?.last_used_at);
  const listed = await api<List<{ last_used_at?: string }>>('GET', `/api/v1/users/${user.id}/tokens`, {
    key: app.secretKey,
  });
  assert.ok(listed.body.data[0]?.last_used_at);
});

test('entries older than the configured age are deleted', async () => {
  const app = await provision.app();
  await api('POST', '/api/v1/orgs', { key: app.secretKey, body: { name: 'Org' } });
  await auditOf(app);
  const clock = new ManualClock();
  assert.equal(services.config.auditDays, 90);
  clock.advance(89 * 24 * 3_600_000);
  const ledger = createLedger({ db, secrets: services.secrets, clock });
  await sweepAudit({ db, clock, ledger, daysKept: 90 });
  assert.equal((await auditOf(app)).total_entries, 1);
  clock.advance(2 * 24 * 3_600_000);
  assert.ok((await sweepAudit({ db, clock, ledger, daysKept: 90 })) >= 2);
  assert.equal((await auditOf(app)).total_entries, 0);
});
