import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { formatId, newUuid, parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { EventStream } from '../../support/event-stream.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { programOf } from '../../support/programs.ts';
import { startTestServer } from '../../support/server.ts';
import { startWatch } from '../../support/speed.ts';
import { startIssuer } from '../../support/token-issuer.ts';
import { until } from '../../support/until.ts';

/*
 * An open event stream ends with what a new request would need: the credential, its time, its issuer, and the reader's
 * sandbox, org and team. Revoked credentials are in credential-lives.test.ts.
 */

const clock = new ManualClock(new Date('2030-01-01T00:00:00.500Z'));
const server = await startTestServer({ clock, env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const { api, provision, baseUrl } = server;
const audience = 'https://quarry.example';
const issuer = await startIssuer(() => clock.now(), audience);
after(async () => {
  await server.close();
  await issuer.close();
});
const app = await provision.app();
const endsWithinMs = 2_000;

async function trust(owner = app): Promise<string> {
  const body = { issuer: issuer.issuer, audience, create_users: true };
  const made = await api<{ id: string }>('POST', '/api/v1/identity_issuers', { key: owner.secretKey, body });
  assert.equal(made.status, 201, made.text);
  return `/api/v1/identity_issuers/${made.body.id}`;
}

async function open(path: string, headers: Record<string, string>): Promise<EventStream> {
  const stream = await EventStream.open(`${baseUrl}/api/v1/${path}`, headers);
  assert.equal(stream.response.statusCode, 200);
  assert.ok(await stream.next());
  return stream;
}

/** The stream ends in time and sends nothing more. */
async function endsSilently(name: string, stream: EventStream): Promise<void> {
  const watch = startWatch();
  const next = await stream.next();
  watch.within(endsWithinMs, `The end of ${name}`);
  assert.equal(next, undefined, `${name}: the stream sent another event`);
}

/** An ingestion of the team that does not end. */
async function holdIngestion(team: string): Promise<string> {
  const body = { type: 'knowledge/documents', team };
  const source = await api<{ id: string }>('POST', '/api/v1/knowledge_sources', { key: app.secretKey, body });
  const id = newUuid();
  await server.db`
    insert into knowledge_ingestions (app_id, id, source_id, kind, status, lease_holder, lease_until)
    select app_id, ${id}, id, 'push', 'running', gen_random_uuid(), now() + interval '1 hour'
    from knowledge_sources where id = ${parseId('source', source.body.id) ?? ''}`;
  return formatId('ingestion', id);
}

const put = (user: string, value: string) =>
  api('PUT', '/api/v1/kv/watched', { key: app.secretKey, body: { user, value } });

test('streams of an external token end with the token, before another value is sent', async () => {
  const path = await trust();
  const token = await issuer.sign('expiring');
  const headers = { 'x-api-key': app.publishableKey, authorization: `Bearer ${token}` };
  const { body: me } = await api<{ id: string }>('GET', '/api/v1/users/me', { key: app.publishableKey, token });
  const stream = await open('kv_watch', headers);
  clock.advance(700_000);
  assert.equal((await put(me.id, 'after its end')).status, 200);
  await endsSilently('an external token', stream);
  await api('DELETE', path, { key: app.secretKey });
});

test('streams of an external token end with its issuer, also with one that is changed, and with the key that names the app', async () => {
  for (const [name, change] of [
    ['deleted', (path: string) => api('DELETE', path, { key: app.secretKey })],
    [
      'changed',
      (path: string) => api('PATCH', path, { key: app.secretKey, body: { audience: 'https://other.example' } }),
    ],
  ] as const) {
    const path = await trust();
    const token = await issuer.sign(name);
    const stream = await open('kv_watch', { 'x-api-key': app.publishableKey, authorization: `Bearer ${token}` });
    clock.advance(1_000);
    assert.ok((await change(path)).status < 300);
    await endsSilently(name, stream);
    await api('DELETE', path, { key: app.secretKey });
  }
  const path = await trust();
  const made = await api<{ id: string; full_key: string }>('POST', '/api/v1/keys', {
    key: app.secretKey,
    body: { type: 'publishable' },
  });
  const stream = await open('kv_watch', {
    'x-api-key': made.body.full_key,
    authorization: `Bearer ${await issuer.sign('keyed')}`,
  });
  await api('DELETE', `/api/v1/keys/${made.body.id}`, { key: app.secretKey });
  await endsSilently('its key', stream);
  await api('DELETE', path, { key: app.secretKey });
});

test('streams end when an access token or a key expires, and a refreshed one opens another', async () => {
  const user = await provision.user(app);
  const minted = await api<{ access_token: string }>('POST', `/api/v1/users/${user.id}/tokens`, {
    key: app.secretKey,
    body: {},
  });
  const made = await api<{ full_key: string }>('POST', '/api/v1/keys', {
    key: app.secretKey,
    body: { type: 'secret', expires_in_days: 1 },
  });
  const byToken = await open('kv_watch', { authorization: `Bearer ${minted.body.access_token}` });
  const byKey = await open(`kv_watch?user=${user.id}`, { 'x-api-key': made.body.full_key });
  clock.advance(3_601_000);
  await put(user.id, 'an hour later');
  await endsSilently('an access token', byToken);
  assert.equal((await byKey.take()).event, 'put');
  clock.advance(24 * 3_600_000);
  await put(user.id, 'a day later');
  await endsSilently('a key', byKey);
});

test('a stream of a developer in a sandbox ends with the sandbox', async () => {
  const sandbox = await provision.sandbox(app);
  const headers = { authorization: `Bearer ${app.developerToken}`, 'x-app': app.app.id };
  const [inside, outside] = [
    await open('events/stream', { ...headers, 'x-sandbox': sandbox.sandbox.id }),
    await open('events/stream', headers),
  ];
  const gone = await api('DELETE', `/api/v1/sandboxes/${sandbox.sandbox.id}`, {
    token: app.developerToken,
    headers: { 'x-app': app.app.id },
  });
  assert.equal(gone.status, 204, gone.text);
  await endsSilently('the sandbox', inside);
  assert.equal(outside.ended, false);
  outside.close();
});

test('streams of a run and of an ingestion end when the team that shares them is deleted, and with their reader', async () => {
  const client = new AutomationsClient(server, app);
  const workflow = graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' });
  const changes = {
    'the team is deleted': (_user: string, _org: string, team: string) =>
      api('DELETE', `/api/v1/teams/${team}`, { key: app.secretKey }),
    'the reader is deleted': (user: string) => api('DELETE', `/api/v1/users/${user}`, { key: app.secretKey }),
  };
  for (const [name, change] of Object.entries(changes)) {
    const org = await provision.org(app);
    const user = await provision.user(app, { org });
    const team = await provision.team(app, { members: [[user, 'member']] });
    const { id } = await client.createAutomation({ workflow, team: team.id });
    const run = await client.invoke(id);
    await client.waitUntilWaiting(run.id);
    const paths = [`automation_runs/${run.id}`, `knowledge_ingestions/${await holdIngestion(team.id)}`];
    const streams = await Promise.all(
      paths.map((path) => open(`${path}/stream`, { authorization: `Bearer ${user.token}` })),
    );
    const changed = await change(user.id, org.id, team.id);
    assert.equal(changed.status, 204, changed.text);
    for (const stream of streams) await endsSilently(name, stream);
  }
});

test('an open stream ends with each change after which a new request is refused, and with no other', async () => {
  const client = new AutomationsClient(server, app);
  const endless = createServer(() => {}).listen(0, '127.0.0.1');
  await once(endless, 'listening');
  const url = `http://127.0.0.1:${(endless.address() as AddressInfo).port}/`;
  const workflow = graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' });
  const key = app.secretKey;
  const extract = async (
    owner: Record<string, string>,
    by: { key?: string; token?: string } = { key },
  ): Promise<string> => {
    const body = { url, mode: 'link', destination_kind: 'storage', destination_path: 'out', ...owner };
    const made = await api<{ id: string }>('POST', '/api/v1/extractions', { ...by, body });
    assert.equal(made.status, 202, made.text);
    return `extractions/${made.body.id}`;
  };
  const run = async (owner: Record<string, string>): Promise<[run: string, automation: string]> => {
    const { id } = await client.createAutomation({ workflow, ...owner });
    const { id: made } = await client.invoke(id);
    await client.waitUntilWaiting(made);
    return [`automation_runs/${made}`, `automations/${id}`];
  };
  const world = async () => {
    const org = await provision.org(app);
    const user = await provision.user(app, { org, role: 'admin' });
    const team = await provision.team(app, { org, members: [[user, 'admin']] });
    const agent = await provision.agent(app, { org });
    return { org, user, team, agent };
  };
  type World = Awaited<ReturnType<typeof world>>;
  const remove = (path: string) => api('DELETE', `/api/v1/${path}`, { key });
  const patch = (path: string, body: object) => api('PATCH', `/api/v1/${path}`, { key, body });
  const ofAgent = ({ agent }: World) => extract({ agent: agent.id });
  const ofOrg = ({ org }: World) => extract({ org: org.id });
  const ofTeam = async ({ team }: World) => extract({ agent: (await provision.agent(app, { team })).id });
  type Row = [
    name: string,
    resource: (w: World) => Promise<string>,
    change: (w: World, path: string) => Promise<{ status: number; text: string }>,
  ];
  const automation = new Map<string, string>();
  const runOf = (owner: (w: World) => Record<string, string>) => async (w: World) => {
    const [path, parent] = await run(owner(w));
    automation.set(path, parent);
    return path;
  };
  const rows: Row[] = [
    ['the agent is deleted', ofAgent, (w) => remove(`agents/${w.agent.id}`)],
    ['the extraction is deleted', ofOrg, (_w, path) => remove(path)],
    ['the org is deleted', ofOrg, (w) => remove(`orgs/${w.org.id}`)],
    ['the org of the agent is deleted', ofAgent, (w) => remove(`orgs/${w.org.id}`)],
    ['the org of the team is deleted', ofTeam, (w) => remove(`orgs/${w.org.id}`)],
    ['the team is deleted', ofTeam, (w) => remove(`teams/${w.team.id}`)],
    ['the reader leaves the org', ofOrg, (w) => patch(`users/${w.user.id}`, { org: null })],
    ['the reader becomes a viewer', ofOrg, (w) => patch(`users/${w.user.id}`, { org_role: 'viewer' })],
    ['the reader of an agent becomes a viewer', ofAgent, (w) => patch(`users/${w.user.id}`, { org_role: 'viewer' })],
    ['the owner is deleted', ({ user }) => extract({}, { token: user.token }), (w) => remove(`users/${w.user.id}`)],
    ['the automation is deleted', runOf((w) => ({ org: w.org.id })), (_w, path) => remove(automation.get(path) ?? '')],
    ['the org of the run is deleted', runOf((w) => ({ org: w.org.id })), (w) => remove(`orgs/${w.org.id}`)],
    ['the owner of the run is deleted', runOf((w) => ({ user: w.user.id })), (w) => remove(`users/${w.user.id}`)],
    [
      'the reader of the run leaves the org',
      runOf((w) => ({ org: w.org.id })),
      (w) => patch(`users/${w.user.id}`, { org: null }),
    ],
    [
      'the reader of the run becomes a viewer',
      runOf((w) => ({ org: w.org.id })),
      (w) => patch(`users/${w.user.id}`, { org_role: 'viewer' }),
    ],
  ];
  let ended = 0;
  try {
    for (const [name, resource, change] of rows) {
      const made = await world();
      const path = await resource(made);
      const readers = { user: { authorization: `Bearer ${made.user.token}` }, key: { 'x-api-key': key } };
      const streams = await Promise.all(Object.values(readers).map((headers) => open(`${path}/stream`, headers)));
      const changed = await change(made, path);
      assert.ok(changed.status < 300, `${name}: ${changed.status} ${changed.text}`);
      await server.services.streams.endRevoked();
      for (const [index, [reader, headers]] of Object.entries(readers).entries()) {
        const again = await fetch(`${baseUrl}/api/v1/${path}`, { headers });
        const stream = streams[index] as EventStream;
        if (again.status !== 200) {
          ended += 1;
          await endsSilently(`${name}, ${reader}`, stream);
        } else {
          assert.equal(stream.ended, false, `${name}, ${reader}: a new request is ${again.status}`);
          stream.close();
        }
      }
    }
    assert.ok(ended > rows.length, `${ended} streams ended`);
  } finally {
    endless.closeAllConnections();
    endless.close();
  }
});

test('a request that waits for a run ends with its credential, and gets no run that is ready afterwards', async () => {
  const client = new AutomationsClient(server, app);
  const { id } = await client.createAutomation({ workflow: programOf('waited-for') });
  const made = await api<{ id: string; full_key: string }>('POST', '/api/v1/keys', {
    key: app.secretKey,
    body: { type: 'secret', scopes: ['automations'] },
  });
  const { streams } = server.services;
  const body = { automations: [id], code_version: '1', lease_seconds: 60, wait_seconds: 30 };
  const waiting = api('POST', '/api/v1/automation_work/claim', { key: made.body.full_key, body });
  await until(() => streams.waits.list().length === 1);
  assert.equal((await api('DELETE', `/api/v1/keys/${made.body.id}`, { key: app.secretKey })).status, 204);
  // A check that has begun before may be in progress.
  for (let checks = 0; checks < 50 && streams.waits.list().length > 0; checks++) {
    await streams.endRevoked();
    await server.db`select 1`;
  }
  const { id: run } = await client.invoke(id);
  assert.equal((await waiting).status, 204);
  assert.equal((await client.run(run)).status, 'pending');
  assert.equal((await api('POST', '/api/v1/automation_work/claim', { key: app.secretKey, body })).status, 200);
});

/** What a stream needs: a path, and the change after which a new request is refused. */
type Life = { path: string; headers: Record<string, string>; change: () => Promise<{ status: number; text: string }> };
const key = app.secretKey;
const asKey = { 'x-api-key': key };
const asUser = ({ token }: { token: string }) => ({ authorization: `Bearer ${token}` });
const del = (path: string) => api('DELETE', `/api/v1/${path}`, { key });

/** For each operation with an event stream, changes that end it for a reader who keeps their credential. */
const lives: Record<string, Record<string, () => Promise<Life>>> = {
  '/api/v1/extractions/{extraction}/stream': {},
  '/api/v1/automation_runs/{automation_run}/stream': {},
  '/api/v1/automation_runs/{automation_run}/output_stream': {
    'the reader leaves the org': async () => {
      const org = await provision.org(app);
      const user = await provision.user(app, { org });
      const run = await waitingRun({ org: org.id, run_as_user: user.id });
      const change = () => api('PATCH', `/api/v1/users/${user.id}`, { key, body: { org: null } });
      return { path: `automation_runs/${run.id}/output_stream`, headers: asUser(user), change };
    },
    'the automation is deleted': async () => {
      const run = await waitingRun({});
      const change = () => del(`automations/${run.automation}`);
      return { path: `automation_runs/${run.id}/output_stream`, headers: asKey, change };
    },
  },
  '/api/v1/knowledge_ingestions/{ingestion}/stream': {
    'the source is deleted': async () => {
      const { path, source } = await ingestionOf(await provision.team(app));
      return { path, headers: asKey, change: () => del(`knowledge_sources/${source}`) };
    },
    'the reader leaves the team': async () => {
      const user = await provision.user(app);
      const team = await provision.team(app, { members: [[user, 'member']] });
      const { path } = await ingestionOf(team);
      return { path, headers: asUser(user), change: () => del(`teams/${team.id}/members/${user.id}`) };
    },
    'the reader leaves the group that its document is shared with': async () => {
      const { path, user, group } = await grantedIngestion();
      return { path, headers: asUser(user), change: () => del(`groups/${group}/members/${user.id}`) };
    },
    'the group is deleted': async () => {
      const { path, user, group } = await grantedIngestion();
      return { path, headers: asUser(user), change: () => del(`groups/${group}`) };
    },
  },
  '/api/v1/kv_watch': {
    'the user whose entries are watched is deleted': async () => {
      const user = await provision.user(app);
      return { path: `kv_watch?user=${user.id}`, headers: asKey, change: () => del(`users/${user.id}`) };
    },
    'the reader is deleted': async () => {
      const user = await provision.user(app);
      return { path: 'kv_watch', headers: asUser(user), change: () => del(`users/${user.id}`) };
    },
  },
  '/api/v1/events/stream': {
    'the sandbox of the key is deleted': async () => {
      const { sandbox, secretKey } = await provision.sandbox(app);
      return {
        path: 'events/stream',
        headers: { 'x-api-key': secretKey },
        change: () => del(`sandboxes/${sandbox.id}`),
      };
    },
    'the reader is deleted': async () => {
      const user = await provision.user(app);
      return { path: 'events/stream', headers: asUser(user), change: () => del(`users/${user.id}`) };
    },
  },
};

async function waitingRun(owner: Record<string, string>) {
  const client = new AutomationsClient(server, app);
  const workflow = graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' });
  const { id: automation } = await client.createAutomation({ workflow, ...owner });
  const { id } = await client.invoke(automation);
  await client.waitUntilWaiting(id);
  return { id, automation };
}

async function ingestionOf(team: { id: string }) {
  const id = await holdIngestion(team.id);
  const { body } = await api<{ source: string }>('GET', `/api/v1/knowledge_ingestions/${id}`, { key });
  return { path: `knowledge_ingestions/${id}/stream`, id, source: body.source };
}

/** An ingestion of a document that only a group sees, and one of its members. */
async function grantedIngestion() {
  const user = await provision.user(app);
  const team = await provision.team(app, { members: [[user, 'member']] });
  const body = { namespace: 'test', external_id: user.id };
  const { body: group } = await api<{ id: string }>('POST', '/api/v1/groups', { key, body });
  await api('POST', `/api/v1/groups/${group.id}/members`, { key, body: { user: user.id } });
  const knowledge = knowledgeOf(server, { key });
  const source = await knowledge.createSource({ team: team.id });
  const acl = { grants: [{ principal_type: 'group', principal: group.id }] };
  const document = parseId('document', await knowledge.push(source, 'Only for the group.', { acl })) ?? '';
  const { path, id } = await ingestionOf(team);
  await server.db`
    update knowledge_ingestions set acl_ids = array(select acl_id from knowledge_documents where id = ${document})
    where app_id = ${app.app.uuid} and id = ${parseId('ingestion', id) ?? ''}`;
  return { path, user, group: group.id };
}

test('streams of every operation end with each change that hides what they show', async () => {
  for (const [name, life] of Object.values(lives).flatMap((each) => Object.entries(each))) {
    const { path, headers, change } = await life();
    const stream = await open(path, headers);
    const bystander = await open('events/stream', asKey);
    const changed = await change();
    assert.ok(changed.status < 300, `${name}: ${changed.status} ${changed.text}`);
    const again = await fetch(`${baseUrl}/api/v1/${path}`, { method: 'HEAD', headers });
    assert.ok(again.status >= 400, `${path}, ${name}: a new request is ${again.status}`);
    await endsSilently(`${path}, ${name}`, stream);
    assert.equal(bystander.ended, false);
    bystander.close();
  }
});

test('every operation with an event stream is tried here', async () => {
  type Document = { paths: Record<string, { get?: { responses: Record<string, { content?: object }> } }> };
  const { paths } = (await api<Document>('GET', '/openapi.json')).body;
  const streams = Object.keys(paths).filter((path) =>
    Object.keys(paths[path]?.get?.responses['200']?.content ?? {}).includes('text/event-stream'),
  );
  assert.deepEqual(Object.keys(lives).toSorted(), streams.toSorted());
});

test('an upload link of an external token ends with the issuer', async () => {
  const path = await trust();
  const token = await issuer.sign('linking');
  const link = () =>
    api<{ url: string; upload_url?: string }>('POST', '/api/v1/files/upload_urls', {
      ...{ key: app.publishableKey, token, body: { filename: 'a.txt', content_type: 'text/plain' } },
    });
  const made = await link();
  assert.ok(made.status < 300, made.text);
  await api('DELETE', path, { key: app.secretKey });
  const url = made.body.upload_url ?? made.body.url;
  const put = await fetch(url, { method: 'PUT', body: 'late', headers: { 'content-type': 'text/plain' } });
  assert.equal(put.status, 403, await put.text());
});
