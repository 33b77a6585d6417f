import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dropSession, openSession } from '../../../src/cells/move/session.ts';
import { eventBounds, sweepEvents } from '../../../src/events/domain.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { EventStream } from '../../support/event-stream.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { WebhooksClient } from '../../support/webhooks.ts';

let server: TestServer;
const streams: EventStream[] = [];

before(async () => {
  server = await startTestServer();
});
after(async () => {
  for (const stream of streams) stream.close();
  await server.close();
});

const path = '/api/v1/events/stream';

async function open(caller: { secretKey: string } | { token: string }, lastEventId?: number): Promise<EventStream> {
  const stream = await EventStream.open(`${server.baseUrl}${path}`, {
    ...('token' in caller ? { authorization: `Bearer ${caller.token}` } : { 'x-api-key': caller.secretKey }),
    ...(lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) }),
  });
  streams.push(stream);
  return stream;
}

const upload = (app: TestApp, filename: string, more: object = {}) =>
  server.api<{ id: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename, content_type: 'text/plain', data: 'VGV4dC4=', ...more },
  });

test('a stream shows every event after it is ready, in order, and continues where it ended', async () => {
  const app = await server.provision.app();
  const client = new WebhooksClient(server, app.secretKey);
  const first = await open(app);
  assert.equal((await first.take()).event, 'ready');
  const emitted = [await client.emit('a', { n: 1 }), await client.emit('b'), await client.emit('c')];
  const shown = [await first.take(), await first.take(), await first.take()];
  assert.deepEqual(
    shown.map(({ event, data }) => [event, data.id, data.type]),
    emitted.map((id, index) => ['event', id, 'abc'[index]]),
  );
  assert.deepEqual(shown[0]?.data.data, { n: 1 });
  assert.deepEqual(
    shown.map(({ id, data }) => id - data.sequence),
    [0, 0, 0],
  );
  first.close();
  const missed = await client.emit('d');
  const again = await open(app, shown[1]?.id);
  assert.deepEqual([(await again.take()).event, (await again.take()).data.id], ['ready', emitted[2]]);
  assert.equal((await again.take()).data.id, missed);
});

test('nothing is missed by a stream that opens while changes are being written', async () => {
  const app = await server.provision.app();
  const isReady = Promise.withResolvers<void>();
  const filesBefore = 60;
  let names = 0;
  const write = async () => {
    let left = 20;
    let isOver = false;
    void isReady.promise.then(() => {
      isOver = true;
    });
    while (left > 0) {
      // The list below shows 100 files.
      if (names === filesBefore) await isReady.promise;
      await upload(app, `${names++}.txt`);
      if (isOver) left -= 1;
    }
  };
  const writers = [write(), write(), write()];
  const stream = await open(app);
  await stream.take();
  const before = await server.api<{ data: { filename: string }[] }>('GET', '/api/v1/files?page_size=100', {
    key: app.secretKey,
  });
  isReady.resolve();
  await Promise.all(writers);
  const seen = new Set(before.body.data.map(({ filename }) => filename));
  // All are on this page. `total_entries` is counted later, and files are added in between.
  assert.ok(seen.size < 100);
  while (seen.size < names) seen.add((await stream.take()).data.data.filename);
});

test('a change in progress when the stream opens is shown, or the stream waits for it', async () => {
  const app = await server.provision.app();
  const appId = parseId('app', app.app.id) ?? '';
  const writer = await server.db.reserve();
  await writer`begin`;
  await writer`insert into files (app_id, id, sandbox_id, filename, content_type, size, checksum, blob_key)
    select app_id, gen_random_uuid(), id, 'open.txt', 'text/plain', 0, 'none', 'none'
    from sandboxes where app_id = ${appId}`;
  let isReady = false;
  const opening = open(app).then(async (stream) => {
    await stream.take();
    isReady = true;
  });
  const following = () => server.db`select 1 from event_logs where app_id = ${appId}`;
  await until(async () => (await following()).length > 0);
  await server.api('GET', '/api/v1/files', { key: app.secretKey });
  assert.equal(isReady, false);
  await writer`commit`;
  writer.release();
  await opening;
});

test('no stream waits for the copy of an app that is being moved into its database', async () => {
  const app = await server.provision.app();
  const mover = await openSession(server.services.directTarget, 'quarry-move-1');
  try {
    await mover.query('begin');
    await mover.query('select pg_current_xact_id()');
    const stream = await open(app);
    assert.equal(stream.response.statusCode, 200);
    assert.equal((await stream.take()).event, 'ready');
  } finally {
    dropSession(mover);
  }
});

test('users see the events of resources that are visible to them, and no longer once they lose their rights', async () => {
  const app = await server.provision.app();
  const org = await server.provision.org(app);
  const member = await server.provision.user(app, { org, role: 'member' });
  const stranger = await server.provision.user(app);
  const client = new WebhooksClient(server, app.secretKey);
  const [all, own, none] = [await open(app), await open(member), await open(stranger)];
  for (const stream of [all, own, none]) assert.equal((await stream.take()).event, 'ready');

  await client.emit('of.the.app');
  await upload(app, 'mine.txt', { user: member.id });
  await upload(app, 'ours.txt', { org: org.id });
  await upload(app, 'apps.txt');
  const shared = await upload(app, 'shared.txt', {
    user: member.id,
    acl: { grants: [{ principal_type: 'user', principal: stranger.id, actions: ['read'] }] },
  });
  assert.equal(shared.status, 201, shared.text);
  const filenames = async (stream: EventStream, count: number) => {
    const found: (string | undefined)[] = [];
    for (let taken = 0; taken < count; taken += 1) found.push((await stream.take()).data.data.filename);
    return found;
  };
  assert.deepEqual(await filenames(all, 5), [undefined, 'mine.txt', 'ours.txt', 'apps.txt', 'shared.txt']);
  assert.deepEqual(await filenames(own, 3), ['mine.txt', 'ours.txt', 'shared.txt']);
  assert.deepEqual(await filenames(none, 1), ['shared.txt']);

  await client.api('PATCH', `/users/${member.id}`, { org: null });
  await upload(app, 'secret.txt', { org: org.id });
  await upload(app, 'last.txt', { user: member.id });
  assert.deepEqual(await filenames(own, 1), ['last.txt']);
});

test('production and sandboxes do not see each other', async () => {
  const app = await server.provision.app();
  const sandbox = await server.provision.sandbox(app);
  const [outside, inside] = [await open(app), await open(sandbox)];
  await outside.take();
  await inside.take();
  await new WebhooksClient(server, app.secretKey).emit('outside');
  await new WebhooksClient(server, sandbox.secretKey).emit('inside');
  assert.equal((await outside.take()).data.type, 'outside');
  assert.equal((await inside.take()).data.type, 'inside');
});

test('a Last-Event-ID that is not an id of the stream is answered with reset, and the stream continues', async () => {
  const app = await server.provision.app();
  const client = new WebhooksClient(server, app.secretKey);
  const user = await server.provision.user(app);
  for (const id of ['nonsense', '-1', '1.5', '9007199254740993', '99999', 'a, b']) {
    const headers = { 'x-api-key': app.secretKey, 'last-event-id': id };
    const events = await EventStream.open(`${server.baseUrl}/api/v1/events/stream`, headers);
    assert.equal((await events.take()).event, 'ready', id);
    const reset = await events.take();
    assert.deepEqual([reset.event, typeof reset.data.position], ['reset', 'number'], id);
    await client.emit('after');
    assert.equal((await events.take()).data.type, 'after');
    events.close();
    const watch = await EventStream.open(`${server.baseUrl}/api/v1/kv_watch?user=${user.id}`, headers);
    assert.equal((await watch.take()).event, 'ready', id);
    assert.equal((await watch.take()).event, 'reset', id);
    watch.close();
  }
});

test('a stream that requests deleted events gets a reset', async () => {
  const app = await server.provision.app();
  const client = new WebhooksClient(server, app.secretKey);
  const stream = await open(app);
  const { id: start } = await stream.take();
  await client.emit('old');
  await stream.take();
  const later = new Date(Date.now() + (eventBounds.keptDays * 24 + 1) * 3_600_000);
  // Its automations have been looked for too.
  const isDispatched = () =>
    server.db`select 1 from events where name = 'old' and dispatched_at is not null and position is not null`;
  await until(async () => (await isDispatched()).length > 0);
  await sweepEvents({ db: server.services.db, clock: new ManualClock(later) });
  const again = await open(app, start);
  assert.equal((await again.take()).event, 'ready');
  const reset = await again.take();
  assert.deepEqual([reset.event, reset.id], ['reset', start + 1]);
  await client.emit('new');
  assert.equal((await again.take()).data.type, 'new');
});
