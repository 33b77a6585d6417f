import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { addDeveloper, createApp } from '../../support/cells/tenants.ts';
import { startTwoCells } from '../../support/cells.ts';
import { responses, startSite } from '../../support/fixture-site.ts';
import { until } from '../../support/until.ts';

const site = await startSite({ '/slow': responses.silent });
after(() => site.close());

test('a stopping server handles requests whose cell it is still looking up', async () => {
  const server = await startTwoCells();
  after(() => server.close());
  const token = await addDeveloper(server);
  const apps = [await createApp(server, token, 'One'), await createApp(server, token, 'Two')];
  // Another process, which has not met the apps.
  const stopping = await startTwoCells({}, server);
  const looked = () => server.first.db`select from pg_locks l join pg_stat_activity a using (pid)
    where not l.granted and l.relation = 'cell_apps'::regclass and a.datname = current_database()`;
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const lock = server.first.db.begin(async (tx) => {
    await tx`lock table cell_apps in access exclusive mode`;
    locked.resolve();
    await held;
  });
  await locked.promise;
  const requests = apps.map(({ secret }) => stopping.api('GET', '/api/v1/users', { key: secret }));
  await until(async () => (await looked()).length === apps.length);
  const closed = stopping.close();
  release();
  for (const request of requests) {
    const { status, text } = await request;
    assert.equal(status, 200, text);
  }
  await Promise.all([closed, lock]);
});

test('a stopping server returns partial results to tools that wait in a cell', async () => {
  const server = await startTwoCells({ QUARRY_FETCH_ALLOW: '127.0.0.1' });
  const token = await addDeveloper(server);
  const apps = [await createApp(server, token, 'One'), await createApp(server, token, 'Two')];
  const app = apps.find(({ cell }) => cell === 'eu2');
  assert.ok(app, 'no app is in eu2');
  const client = new Client({ name: 'test', version: '1' });
  const requestInit = { headers: { 'x-api-key': app.secret } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.baseUrl}/mcp`), { requestInit }));
  const told = Promise.withResolvers<void>();
  const waiting = client.callTool(
    { name: 'extract_url', arguments: { url: `${site.origin}/slow`, wait_seconds: 300 } },
    { onprogress: () => told.resolve() },
  );
  await told.promise;
  const closed = server.close();
  const { structuredContent } = await waiting;
  assert.equal((structuredContent as { state: string }).state, 'running');
  await client.close();
  await closed;
});
