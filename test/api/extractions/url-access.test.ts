import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EventStream } from '../../support/event-stream.ts';
import { extractUrl, type TestExtraction, waitForExtraction } from '../../support/extractions.ts';
import { type FixtureSite, htmlPage, responses, startSite } from '../../support/fixture-site.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let world: TestTenants;
let site: FixtureSite;

before(async () => {
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8', QUARRY_STREAM_SECONDS: '60' } });
  world = await server.provision.world();
  site = await startSite({
    '/': htmlPage('Home', ['/a', '/b']),
    '/a': htmlPage('A'),
    '/b': htmlPage('B'),
    '/silent': responses.silent,
  });
});
after(async () => {
  await server.close();
  await site.close();
});

function create(credential: { key?: string; token?: string }, body: Record<string, unknown> = {}) {
  return server.api<TestExtraction & ErrorBody>('POST', '/api/v1/extractions', {
    ...credential,
    body: { destination_kind: 'storage', url: `${site.origin}/`, mode: 'link', ...body },
  });
}

test('a job is visible to its owner and to servers of its app, and 404 for all other callers', async () => {
  const created = await create({ token: world.member.token });
  assert.equal(created.status, 202);
  await waitForExtraction(server.baseUrl, world.app.secretKey, created.body.id);
  const path = `/api/v1/extractions/${created.body.id}`;
  assert.equal((await server.api('GET', path, { token: world.member.token })).status, 200);
  assert.equal((await server.api('GET', path, {})).status, 401);
  for (const credential of [
    { token: world.otherUser.token },
    { token: world.stranger.token },
    { key: world.otherApp.secretKey },
  ])
    for (const [method, at] of [
      ['GET', path],
      ['DELETE', path],
      ['GET', `${path}/stream`],
    ] as const)
      assert.equal((await server.api(method, at, credential)).status, 404, `${method} ${at}`);
  assert.equal((await server.api('GET', '/api/v1/extractions/ext_nonsense', { key: world.app.secretKey })).status, 404);
});

test('the list contains what the caller can see, newest first, without outputs', async () => {
  const app = await server.provision.app();
  const first = await extractUrl(server, app.secretKey, { url: `${site.origin}/`, mode: 'site' });
  const second = await extractUrl(server, app.secretKey, { url: `${site.origin}/missing`, mode: 'link' });
  type List = { data: TestExtraction[]; total_entries: number; has_next: boolean };
  const all = await server.api<List>('GET', '/api/v1/extractions?page_size=1', { key: app.secretKey });
  assert.equal(all.status, 200);
  assert.deepEqual([all.body.total_entries, all.body.has_next, all.body.data[0]?.id], [2, true, second.id]);
  const done = await server.api<List>('GET', '/api/v1/extractions?state=done&kind=site', { key: app.secretKey });
  assert.deepEqual(
    done.body.data.map((each) => [each.id, each.output_count, each.progress.done]),
    [[first.id, 3, 3]],
  );
  assert.equal(done.body.data[0]?.byte_count, first.byte_count);
  assert.equal(done.body.data[0]?.outputs, undefined);
  assert.equal(
    (await server.api<List>('GET', '/api/v1/extractions', { token: world.loner.token })).body.total_entries,
    0,
  );
  assert.equal((await server.api('GET', '/api/v1/extractions?state=odd', { key: app.secretKey })).status, 422);
  assert.equal((await server.api('GET', '/api/v1/extractions')).status, 401);
});

test('DELETE cancels and removes a running job, and its stream ends', async () => {
  const created = await create({ key: world.app.secretKey }, { url: `${site.origin}/silent` });
  const path = `/api/v1/extractions/${created.body.id}`;
  await site.waitForRequest('/silent');
  const stream = await EventStream.open(`${server.baseUrl}${path}/stream`, { 'x-api-key': world.app.secretKey });
  assert.equal(stream.response.headers['content-type'], 'text/event-stream; charset=utf-8');
  const { id, event, data } = await stream.take();
  assert.deepEqual(
    { id, event, extraction: data.id },
    { id: 2, event: 'extraction_update', extraction: created.body.id },
  );
  const removed = await server.api('DELETE', path, { key: world.app.secretKey });
  assert.equal(removed.status, 204);
  while ((await stream.next()) !== undefined);
  assert.equal((await server.api('GET', path, { key: world.app.secretKey })).status, 404);
  assert.equal((await server.api('DELETE', path, { key: world.app.secretKey })).status, 404);
  const [left] = await server.db`select count(*)::integer as count from crawls where finished_at is null`;
  assert.equal(left?.count, 0);
});

test('a removed job leaves the files that it wrote', async () => {
  const done = await extractUrl(server, world.app.secretKey, { url: `${site.origin}/a`, mode: 'link' });
  await server.api('DELETE', `/api/v1/extractions/${done.id}`, { key: world.app.secretKey });
  assert.equal((await fetch(done.outputs[0]?.file?.url ?? '')).status, 200);
});

test('the stream shows every step up to the end, and an ended job immediately', async () => {
  const done = await extractUrl(server, world.app.secretKey, { url: `${site.origin}/`, mode: 'site' });
  const stream = await fetch(`${server.baseUrl}/api/v1/extractions/${done.id}/stream`, {
    headers: { 'x-api-key': world.app.secretKey },
  });
  const events = (await stream.text()).split('\n\n').filter((event) => event.startsWith('id:'));
  assert.equal(events.length, 1);
  const data = JSON.parse(events[0]?.split('data: ')[1] ?? '') as TestExtraction;
  assert.deepEqual([data.state, data.progress.done, data.output_count], ['done', 3, 3]);
});

test('extractions for an agent belong to it', async () => {
  const agent = await server.provision.agent(world.app, { user: world.member });
  const created = await create({ token: world.member.token }, { agent: agent.id });
  assert.equal(created.status, 202);
  const done = await waitForExtraction(server.baseUrl, world.app.secretKey, created.body.id);
  assert.equal(done.agent, agent.id);
  assert.equal(done.outputs[0]?.file?.agent, agent.id);
  assert.equal((await create({ token: world.otherUser.token }, { agent: agent.id })).status, 422);
});
