import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { formatId, newUuid, parseId } from '../../../src/lib/ids.ts';
import { digest, generateCredential } from '../../../src/tenancy/secrets.ts';
import { startTwoCells } from '../../support/cells.ts';
import { takeAway } from '../../support/database.ts';
import { EventStream } from '../../support/event-stream.ts';
import { sendRaw } from '../../support/raw-request.ts';
import type { ErrorBody } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTwoCells({ QUARRY_CORS_ORIGINS: '*' });
after(() => server.close());
const { api, first, second } = server;

const developerId = newUuid();
const token = generateCredential('dvt');
await first.db`insert into developers (id, name) values (${developerId}, 'Ada')`;
await first.db`insert into developer_tokens (digest, id, developer_id) values (${digest(token)}, ${newUuid()}, ${developerId})`;

type App = { id: string; uuid: string; secret: string; publishable: string; cell: string };
const developerApps = '/protected/api/v1/developer/apps';

async function createApp(name: string): Promise<App> {
  const created = await api<{ id: string }>('POST', developerApps, { token, body: { name } });
  assert.equal(created.status, 201, created.text);
  const { id } = created.body;
  const uuid = parseId('app', id) ?? '';
  const [place] = await first.db<{ cell: string }[]>`select cell from cell_apps where app_id = ${uuid}`;
  const key = async (type: string) => {
    const path = `${developerApps}/${id}/keys`;
    const { body } = await api<{ full_key: string }>('POST', path, { token, body: { type } });
    return body.full_key;
  };
  return { id, uuid, cell: place?.cell ?? '', secret: await key('secret'), publishable: await key('publishable') };
}

const apps = [await createApp('One'), await createApp('Two')];
const inCell = (cell: string): App => {
  const app = apps.find((each) => each.cell === cell);
  assert.ok(app, `no app is in ${cell}`);
  return app;
};
const [here, away] = [inCell('eu1'), inCell('eu2')];

async function createUser({ secret, publishable }: App, email: string) {
  const user = { email, password: randomBytes(12).toString('hex') };
  const created = await api<{ id: string }>('POST', '/api/v1/users', { key: secret, body: user });
  assert.equal(created.status, 201, created.text);
  const signedIn = await api<{ access_token: string; refresh_token: string }>('POST', '/api/v1/auth/login', {
    ...{ key: publishable, body: user },
  });
  assert.equal(signedIn.status, 200, signedIn.text);
  return { ...user, id: created.body.id, token: signedIn.body.access_token };
}

test('new apps go to the cell with the least use, and every row of an app is in its cell', async () => {
  assert.deepEqual(new Set(apps.map(({ cell }) => cell)), new Set(['eu1', 'eu2']));
  for (const { uuid, cell } of apps)
    for (const [name, { db }] of [
      ['eu1', first],
      ['eu2', second],
    ] as const) {
      const rows = await db`select from api_keys where app_id = ${uuid}`;
      assert.equal(rows.length, name === cell ? 2 : 0);
    }
});

test('a list of apps spans the cells, and shows a new name', async () => {
  const renamed = await api('PATCH', `${developerApps}/${away.id}`, { token, body: { name: 'Renamed' } });
  assert.equal(renamed.body.name, 'Renamed');
  const { body } = await api<{ data: { id: string; name: string }[] }>('GET', developerApps, { token });
  const named = new Map(body.data.map(({ id, name }) => [id, name]));
  assert.equal(named.get(away.id), 'Renamed');
  assert.ok(named.has(here.id));
  const scoped = await api('GET', '/api/v1/users', { token, headers: { 'x-app': away.id } });
  assert.equal(scoped.status, 200);
  const missing = await api('GET', `${developerApps}/dap_${'0'.repeat(22)}`, { token });
  assert.equal(missing.status, 404);
});

test('keys, users, sessions and personal tokens work in their cell only', async () => {
  for (const app of [here, away]) {
    const other = app === here ? away : here;
    const user = await createUser(app, `ada@${app.cell}.example.com`);
    assert.equal((await api('GET', `/api/v1/users/${user.id}`, { key: app.secret })).status, 200);
    assert.equal((await api('GET', `/api/v1/users/${user.id}`, { key: other.secret })).status, 404);
    assert.equal((await api('GET', `/api/v1/users/${user.id}`, { token: user.token })).status, 200);
    const mixed = await api('GET', `/api/v1/users/${user.id}`, { key: other.secret, token: user.token });
    assert.equal(mixed.status, 401);
    const personal = await api<{ token: string }>('POST', `/api/v1/users/${user.id}/tokens`, {
      ...{ token: user.token, body: { name: 'ci' } },
    });
    assert.equal(personal.status, 201, personal.text);
    const used = await api('GET', `/api/v1/users/${user.id}`, { token: personal.body.token });
    assert.equal(used.status, 200, used.text);
    // The key is in the body, so only the routes can read it.
    const { email, password } = user;
    const session = await api('POST', '/console/session', {
      body: { publishable_key: app.publishable, email, password },
    });
    assert.equal(session.status, 201, session.text);
    const [cookie = ''] = (session.headers.get('set-cookie') ?? '').split(';', 1);
    const opened = await api<{ app: { id: string } }>('GET', '/console/session', { headers: { cookie } });
    assert.equal(opened.body.app.id, app.id);
  }
  assert.equal((await api('GET', '/api/v1/users', { key: `sk_${'x'.repeat(43)}` })).status, 401);
  assert.equal((await api('GET', '/api/v1/users')).status, 401);
});

test('signed, permanent and upload URLs of a file, inbound URLs and MCP lead to the cell', async () => {
  for (const { secret: key, id: app } of [here, away]) {
    const data = Buffer.from('a,b\n1,2\n').toString('base64');
    const file = await api<{ id: string; url: string }>('POST', '/api/v1/files', {
      key,
      body: { filename: 'a.csv', content_type: 'text/csv', data },
    });
    assert.equal(file.status, 201, file.text);
    const pathOf = (url: string) => url.slice(new URL(url).origin.length);
    assert.equal((await api('GET', pathOf(file.body.url))).text, 'a,b\n1,2\n');
    for (const spelling of ['/%61pi/v1/files/', 'http://elsewhere.test/api/v1/fil%65s/']) {
      const request = `GET ${spelling}${file.body.id} HTTP/1.1\r\nhost: a\r\nx-api-key: ${key}\r\nconnection: close\r\n\r\n`;
      assert.match(await sendRaw(server.baseUrl, request), /^HTTP\/1\.1 200 /, spelling);
    }
    const link = await api<{ url: string }>('POST', '/api/v1/files/upload_urls', {
      key,
      body: { filename: 'b.txt', content_type: 'text/plain' },
    });
    assert.equal(link.status, 201, link.text);
    const uploaded = await api<{ id: string }>('PUT', pathOf(link.body.url), {
      ...{ body: 'b', headers: { 'content-type': 'text/plain' } },
    });
    assert.equal(uploaded.status, 201, uploaded.text);
    assert.equal((await api('GET', `/api/v1/files/${uploaded.body.id}`, { key })).status, 200);

    const listed = await api<{ result: { tools: unknown[] } }>('POST', '/mcp', {
      key,
      headers: { accept: 'application/json, text/event-stream' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
    });
    assert.equal(listed.status, 200, listed.text);
    const stores = await api('GET', '/v1/vector_stores', { headers: { authorization: `Bearer ${key}` } });
    assert.equal(stores.status, 200, `${app} ${stores.text}`);
  }
});

test('a post to an inbound URL becomes a document by a job of its cell, and a stream shows changes', async () => {
  for (const { secret: key } of [here, away]) {
    const agent = await api<{ id: string }>('POST', '/api/v1/agents', { key, body: { name: 'Reader' } });
    const installed = await api<{ inbound_url: string }>('POST', '/api/v1/installations', {
      key,
      body: { agent: agent.body.id, kind: 'webhook/inbound' },
    });
    assert.equal(installed.status, 201, installed.text);
    const posted = await api<{ ingestion: string }>('POST', new URL(installed.body.inbound_url).pathname, {
      body: 'Refunds take five days.',
      headers: { 'content-type': 'text/plain' },
    });
    assert.equal(posted.status, 202, posted.text);
    await until(async () => {
      const { body } = await api('GET', `/api/v1/knowledge_ingestions/${posted.body.ingestion}`, { key });
      return body.status === 'succeeded';
    });
    const user = await api<{ id: string }>('POST', '/api/v1/users', { key, body: { email: 'watch@example.com' } });
    const path = `/api/v1/kv_watch?user=${user.body.id}`;
    const stream = await EventStream.open(`${server.baseUrl}${path}`, { 'x-api-key': key });
    assert.equal((await stream.take()).event, 'ready');
    const put = await api('PUT', '/api/v1/kv/theme', { key, body: { value: 'dark', user: user.body.id } });
    assert.ok(put.status < 300, put.text);
    assert.equal((await stream.take()).data.key, 'theme');
    stream.close();
  }
});

test('metrics have the label of the cell, and those of the process appear once', async () => {
  const { text } = await api('GET', '/metrics');
  assert.match(text, /quarry_database_up\{cell="eu1"\} 1/);
  assert.match(text, /quarry_database_up\{cell="eu2"\} 1/);
  assert.match(text, /quarry_cell_up\{cell="eu2"\} 1/);
  assert.equal(text.match(/^quarry_parser_waiting /gm)?.length, 1);
});

test('a cell that is taken away gives its apps 503 with Retry-After and others nothing, and comes back', async () => {
  const path = '/api/v1/users';
  const giveBack = await takeAway(second);
  try {
    await until(async () => {
      const refused = await api<ErrorBody>('GET', path, { key: away.secret });
      return refused.status === 503 && /does not respond/.test(refused.body.error.message);
    });
    const refused = await api<ErrorBody>('GET', path, { key: away.secret, headers: { origin: 'https://a.example' } });
    assert.equal(refused.body.error.code, 'unavailable');
    assert.ok(Number(refused.headers.get('retry-after')) > 0);
    assert.equal(refused.headers.get('access-control-allow-origin'), '*');
    for (let count = 0; count < 20; count++) assert.equal((await api('GET', path, { key: here.secret })).status, 200);
    const listed = await api<{ data: unknown[] }>('GET', developerApps, { token });
    assert.equal(listed.body.data.length, 2);
    const created = await api<{ id: string }>('POST', developerApps, { token, body: { name: 'Meanwhile' } });
    assert.equal(created.status, 201, created.text);
    assert.equal((await api('GET', '/readyz')).status, 200);
    // It may be a key of the cell that is down.
    assert.equal((await api('GET', path, { key: `sk_${'y'.repeat(43)}` })).status, 503);
    assert.match((await api('GET', '/metrics')).text, /quarry_cell_up\{cell="eu2"\} 0/);
  } finally {
    await giveBack();
  }
  await until(async () => (await api('GET', path, { key: away.secret })).status === 200);
});

test('a cell whose schema a newer release has cut is 503 while it lasts, and other cells notice nothing', async () => {
  const path = '/api/v1/users';
  const { db } = second;
  const [fact] = await db<{ value: string }[]>`select value from server_facts where name = 'serves_from'`;
  await db.begin(async (tx) => {
    await tx`insert into schema_migrations (version, name, checksum) values (9999, '9999_contract.sql', 'x')`;
    await tx`insert into server_facts (name, value) values ('serves_from', '9999')
      on conflict (name) do update set value = excluded.value`;
  });
  await until(async () => {
    const { status, body } = await api<ErrorBody>('GET', path, { key: away.secret });
    return status === 503 && /is not set up correctly/.test(body.error.message);
  });
  assert.equal((await api('GET', path, { key: here.secret })).status, 200);
  await db`delete from schema_migrations where version = 9999`;
  await db`update server_facts set value = ${fact?.value ?? '0'} where name = 'serves_from'`;
  await until(async () => (await api('GET', path, { key: away.secret })).status === 200);
});

test('an app in a cell that this process does not serve is 503 with the reason', async () => {
  const app = newUuid();
  await first.db`insert into cell_apps (app_id, cell, developer_id, name, created_at, updated_at)
    values (${app}, 'us1', ${developerId}, 'Elsewhere', now(), now())`;
  const refused = await api<ErrorBody>('GET', `${developerApps}/${formatId('app', app)}`, { token });
  assert.equal(refused.status, 503);
  assert.match(refused.body.error.message, /does not serve the cell/);
});

test('what a developer does is logged where each of their apps is: its creation, and each sign-in to the console', async () => {
  const opened = await api<{ csrf_token: string }>('POST', '/console/session', { body: { developer_token: token } });
  assert.equal(opened.status, 201, opened.text);
  for (const { id } of [here, away])
    await until(async () => {
      const { body } = await api<{ data: { action: string }[] }>('GET', `${developerApps}/${id}/audit`, { token });
      const actions = body.data.map(({ action }) => action);
      return actions.includes('createApp') && actions.includes('openConsoleSession');
    });
});
