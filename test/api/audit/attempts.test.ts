import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { FailureCounter } from '../../../src/audit/failures.ts';
import type { AuditEntry } from '../../../src/audit/store.ts';
import { hashPassword } from '../../../src/users/passwords.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* What nobody can keep out of the audit log, and nobody can flood it with. */

type Entry = {
  actor: { kind: string; id: string };
  credential: string;
  action: string;
  resource?: string;
  status: number;
  address?: string;
  attempts?: number;
};
type Use = { credential: string; kind: string; requests: number; refused: number };

/** All attempts are within a minute. */
const clock = new ManualClock();
const server = await startTestServer({ clock, env: { QUARRY_TRUST_PROXY: '127.0.0.1' }, logLevel: 'fatal' });
after(() => server.close());
const { api, provision, db } = server;
const password = 'correct horse battery';
const passwordHash = await hashPassword(password);

async function userWithPassword(app: TestApp) {
  const user = await provision.user(app);
  await db`update users set password_hash = ${passwordHash} where app_id = ${app.app.uuid} and id = ${user.uuid}`;
  return user;
}

const auditOf = async (app: TestApp, query = '') =>
  (await api<{ data: Entry[] }>('GET', `/api/v1/audit?page_size=100&${query}`, { key: app.secretKey })).body.data;
const usesOf = async (app: TestApp) =>
  (await api<{ data: Use[] }>('GET', '/api/v1/credential_uses', { key: app.secretKey })).body.data;
const rowsOf = async (app: TestApp) => {
  const [row] = await db<{ rows: number }[]>`
    select count(*)::integer as rows from audit_entries where app_id = ${app.app.uuid}`;
  return row?.rows ?? 0;
};

test('a token is counted by its kind, however the header is written', async () => {
  const spellings = ['Bearer ', 'Bearer  ', 'bearer   ', 'BEARER ', ' Bearer  '];
  const app = await provision.app();
  const user = await provision.user(app);
  const personal = await api<{ id: string; token: string }>('POST', `/api/v1/users/${user.id}/tokens`, {
    token: user.token,
    body: {},
  });
  for (const spelling of spellings) {
    const developer = { authorization: `${spelling}${app.developerToken}`, 'x-app': app.app.id };
    assert.equal((await api('POST', '/api/v1/orgs', { headers: developer, body: { name: 'Org' } })).status, 201);
    const own = { authorization: `${spelling}${personal.body.token}` };
    assert.equal((await api('POST', '/api/v1/teams', { headers: own, body: { name: 'Team' } })).status, 201);
  }
  const uses = await usesOf(app);
  const requestsOf = (kind: string) => uses.filter((use) => use.kind === kind).map(({ requests }) => requests);
  assert.deepEqual(requestsOf('developer_token'), [spellings.length]);
  assert.deepEqual(requestsOf('personal_token'), [spellings.length]);
  const credentialsOf = async (action: string) =>
    new Set((await auditOf(app, `action=${action}`)).map(({ credential }) => credential));
  assert.deepEqual(await credentialsOf('createOrg'), new Set(['developer_token']));
  assert.deepEqual(await credentialsOf('createTeam'), new Set(['personal_token']));
});

test('console sign-in and sign-out are logged, for a developer in each of their apps', async () => {
  const app = await provision.app();
  const user = await userWithPassword(app);
  const second = await api<{ id: string }>('POST', '/protected/api/v1/developer/apps', {
    token: app.developerToken,
    body: { name: 'Second' },
  });
  const ways = [
    { publishable_key: app.publishableKey, email: user.email, password },
    { developer_token: app.developerToken },
  ];
  for (const body of ways) {
    const opened = await api<{ csrf_token: string }>('POST', '/console/session', { body });
    assert.equal(opened.status, 201, opened.text);
    const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
    const headers = { cookie, 'x-quarry-csrf': opened.body.csrf_token };
    assert.equal((await api('DELETE', '/console/session', { headers })).status, 204);
  }
  // With cells, the process of the directory writes what concerns several apps.
  await until(async () => (await auditOf(app)).length >= 4);
  const told = (await auditOf(app)).reverse().map(({ action, actor, credential }) => [action, actor.kind, credential]);
  assert.deepEqual(told, [
    ['openConsoleSession', 'publishable_key', 'publishable_key'],
    ['closeConsoleSession', 'user', 'session'],
    ['openConsoleSession', 'developer', 'developer_token'],
    ['closeConsoleSession', 'developer', 'session'],
  ]);
  const [signedIn] = (await auditOf(app)).reverse();
  assert.equal(signedIn?.resource, user.id);
  const elsewhere = await api<{ data: Entry[] }>(
    'GET',
    `/protected/api/v1/developer/apps/${second.body.id}/audit?action=openConsoleSession`,
    { token: app.developerToken },
  );
  assert.equal(elsewhere.body.data.length, 1);
});

test('requests of a console session are counted for the user or the token behind it', async () => {
  const app = await provision.app();
  const user = await userWithPassword(app);
  for (const body of [
    { publishable_key: app.publishableKey, email: user.email, password },
    { developer_token: app.developerToken },
  ]) {
    const opened = await api<{ csrf_token: string }>('POST', '/console/session', { body });
    const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
    const headers = { cookie, 'x-quarry-csrf': opened.body.csrf_token, 'x-app': app.app.id };
    assert.equal((await api('GET', '/api/v1/files', { headers })).status, 200);
  }
  const uses = await usesOf(app);
  assert.equal(uses.find(({ kind }) => kind === 'user')?.credential, user.id);
  assert.equal(uses.find(({ kind }) => kind === 'developer_token')?.requests, 1);
});

test('an upload by a link is logged as its creator’s, a post to an inbound URL as its source’s', async () => {
  const app = await provision.app();
  const user = await provision.user(app);
  const link = await api<{ url: string; file: string }>('POST', '/api/v1/files/upload_urls', {
    token: user.token,
    body: { filename: 'a.txt', content_type: 'text/plain' },
  });
  assert.equal((await fetch(link.body.url, { method: 'PUT', body: 'text' })).status, 201);
  const agent = await provision.agent(app);
  await api('POST', '/api/v1/installations', {
    key: app.secretKey,
    body: { agent: agent.id, kind: 'webhook/inbound' },
  });
  const sources = await api<{ data: { id: string }[] }>('GET', '/api/v1/knowledge_sources', { key: app.secretKey });
  const source = sources.body.data[0]?.id ?? '';
  const inbound = await api<{ url: string }>('GET', `/api/v1/knowledge_sources/${source}/inbound_url`, {
    key: app.secretKey,
  });
  const posted = await fetch(inbound.body.url, {
    method: 'POST',
    body: 'text',
    headers: { 'content-type': 'text/plain' },
  });
  assert.equal(posted.status, 202);
  const { ingestion } = (await posted.json()) as { ingestion: string };
  const [upload] = await auditOf(app, 'action=uploadFileByUrl');
  assert.deepEqual(
    [upload?.actor, upload?.credential, upload?.resource, upload?.status],
    [{ kind: 'user', id: user.id }, 'upload_link', link.body.file, 201],
  );
  const [post] = await auditOf(app, `actor=${source}`);
  assert.deepEqual(
    [post?.actor, post?.credential, post?.resource, post?.status, post?.action],
    [{ kind: 'inbound_url', id: source }, 'inbound_url', ingestion, 202, 'postInbound'],
  );
});

test('failed attempts are counted in one entry, not written one by one: sign-outs, refreshes, sign-ins', async () => {
  const app = await provision.app();
  const junk = (path: string, count: number) =>
    Promise.all(
      Array.from({ length: count }, (_one, index) =>
        api('POST', `/api/v1/auth/${path}`, {
          key: app.publishableKey,
          body:
            path === 'login'
              ? { email: `n${index}@example.test`, password: 'wrong' }
              : { refresh_token: `rt_junk_${index}` },
          headers: { 'x-forwarded-for': `203.0.113.${index % 3}` },
        }),
      ),
    );
  await junk('logout', 320);
  await junk('refresh', 60);
  await junk('login', 12);
  await junk('logout', 10);
  const data = await auditOf(app);
  const attempts = (action: string) => data.filter((entry) => entry.action === action);
  const sum = (action: string) => attempts(action).reduce((all, entry) => all + (entry.attempts ?? 0), 0);
  assert.deepEqual([sum('logout'), sum('refreshSession'), sum('login')], [330, 60, 12]);
  for (const action of ['logout', 'refreshSession', 'login']) {
    assert.equal(attempts(action).length, 3, action);
    assert.deepEqual(new Set(attempts(action).map(({ address }) => address)).size, 3);
  }
  assert.equal(await rowsOf(app), 9);
  assert.ok(attempts('login').every(({ status, actor }) => status === 401 && actor.kind === 'publishable_key'));
  // The entries continue to count after they were written.
  await junk('logout', 3);
  await auditOf(app);
  assert.equal(await rowsOf(app), 9);
});

test('failures from many addresses do not fill a table', async () => {
  const app = await provision.app();
  for (let network = 0; network < 10; network++)
    await Promise.all(
      Array.from({ length: 20 }, (_one, index) =>
        api('POST', '/api/v1/auth/logout', {
          key: app.publishableKey,
          body: { refresh_token: 'rt_junk' },
          headers: { 'x-forwarded-for': `198.51.${network}.${index}` },
        }),
      ),
    );
  const data = await auditOf(app);
  assert.equal(data.length, 21);
  assert.equal(
    data.reduce((all, entry) => all + (entry.attempts ?? 0), 0),
    200,
  );
  assert.equal(data.find(({ address }) => address === undefined)?.attempts, 180);
});

test('a real sign-out is logged with the user of the session', async () => {
  const app = await provision.app();
  const user = await provision.user(app);
  const minted = await api<{ refresh_token: string }>('POST', `/api/v1/users/${user.id}/tokens`, {
    key: app.secretKey,
    body: {},
  });
  await api('POST', '/api/v1/auth/logout', {
    key: app.publishableKey,
    body: { refresh_token: minted.body.refresh_token },
  });
  const [entry] = await auditOf(app, 'action=logout');
  assert.deepEqual([entry?.status, entry?.attempts, entry?.resource], [204, undefined, user.id]);
});

test('the counter of failures drops entries that are a minute old and written', () => {
  const counter = new FailureCounter();
  const entry = (seconds: number, address: string): AuditEntry => ({
    appId: 'a',
    id: '',
    sandboxId: 's',
    at: new Date(seconds * 1_000),
    actorKind: 'publishable_key',
    actorId: 'k',
    credential: 'publishable_key',
    action: 'login',
    method: 'POST',
    route: '/',
    resource: null,
    status: 401,
    requestId: 'r',
    address,
    attempts: null,
  });
  for (let address = 0; address < 30; address++) counter.count(entry(0, String(address)));
  assert.equal(counter.takeUnsaved().length, 21);
  assert.equal(counter.takeUnsaved().length, 0);
  counter.count(entry(30, '1'));
  assert.deepEqual(
    counter.takeUnsaved().map(({ attempts }) => attempts),
    [2],
  );
  counter.count(entry(61, 'new'));
  const [fresh] = counter.takeUnsaved();
  assert.deepEqual([fresh?.address, fresh?.attempts], ['new', 1]);
});
