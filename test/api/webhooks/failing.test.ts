import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import { eventBounds, sweepEvents } from '../../../src/events/domain.ts';
import { usualTimeouts } from '../../../src/lib/timeouts.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { isSigned, WebhookReceiver } from '../../support/webhook-receiver.ts';
import { type TestDelivery, type TestWebhook, WebhooksClient } from '../../support/webhooks.ts';

/* One place for jobs, and receivers that fail in every way. */

const clock = new ManualClock();
const timeouts = { ...usualTimeouts };
let server: TestServer;
let app: TestApp;
let client: WebhooksClient;
let receiver: WebhookReceiver;
const silentOnes: ServerResponse[] = [];
/** How the paths of the receiver behave; others return 200. */
const behaviours: Record<string, (response: ServerResponse) => unknown> = {
  '/redirects': (response) => response.writeHead(307, { location: '/elsewhere' }).end(),
  '/gone': (response) => response.writeHead(410).end(),
  '/endless': (response) => {
    const piece = Buffer.alloc(256 * 1024, 'more');
    const more = (): void => {
      while (!response.destroyed && response.write(piece));
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  },
  '/huge': (response) => response.writeHead(200, { 'content-length': String(2 ** 50) }).write('much'),
  '/secretive': (response) => response.writeHead(500).end('a-word-of-the-receiver'),
  '/cut': (response) => response.destroy(),
  '/silent': (response) => silentOnes.push(response),
};

before(async () => {
  const env = { QUARRY_FETCH_ALLOW: '127.0.0.1', QUARRY_JOB_WORKERS: '1' };
  server = await startTestServer({ env, clock, timeouts });
  app = await server.provision.app();
  client = new WebhooksClient(server, app.secretKey);
  receiver = await WebhookReceiver.start();
  receiver.respond = (response, { path }) => (behaviours[path] ?? (() => response.end()))(response);
});
after(async () => {
  await server.close();
  await receiver.close();
});

const hourMs = 60 * 60 * 1_000;
const hasFailed = ({ log }: TestDelivery) => log.length > 0;

test('silent receivers delay no other webhook, and time out', async () => {
  timeouts.deliveryMs = 900_000;
  const silent = await client.create(`${receiver.origin}/silent`, ['silence']);
  const other = await server.provision.app();
  const neighbour = new WebhooksClient(server, other.secretKey);
  await neighbour.create(`${receiver.origin}/neighbour`, ['*']);
  await client.create(`${receiver.origin}/beside`, ['silence']);
  for (let sent = 0; sent < 12; sent += 1) await client.emit('silence');
  await receiver.waitFor('/silent', 8);
  await neighbour.emit('loud');
  await receiver.waitFor('/neighbour', 1);
  await receiver.waitFor('/beside', 12);
  const inTime = await client.deliveries(silent.id);
  assert.ok(
    inTime.every(({ log }) => log.length === 0),
    'all of this happens while the silent ones are awaited',
  );
  timeouts.deliveryMs = 1_000;
  for (const response of silentOnes.splice(0)) response.destroy();
  await receiver.waitFor('/silent', 12);
  await client.waitForDelivery(silent.id, ({ log }) => log[0]?.error?.code === 'timeout');
  timeouts.deliveryMs = usualTimeouts.deliveryMs;
  const ended = (await client.deliveries(silent.id)).filter(hasFailed);
  assert.ok(ended.length > 0);
  await client.api('DELETE', `/webhooks/${silent.id}`);
});

test('a failed delivery is retried later and does not delay the next one', async () => {
  const { id, secret } = await client.create(`${receiver.origin}/flaky`, ['first', 'second']);
  behaviours['/flaky'] = (response) => response.writeHead(503).end();
  const first = await client.emit('first');
  const failed = await client.waitForDelivery(id, hasFailed);
  assert.deepEqual([failed.state, failed.log[0]?.status, failed.log[0]?.error?.code], ['pending', 503, 'refused']);
  const waitMs = Date.parse(failed.next_attempt_at ?? '') - clock.now().getTime();
  assert.ok(waitMs >= 5_000 && waitMs <= 5_500, `${waitMs} ms`);
  delete behaviours['/flaky'];
  await client.emit('second');
  await client.waitForDelivery(id, ({ type, state }) => type === 'second' && state === 'delivered');
  assert.equal((await client.get(id)).failing_since, undefined);
  clock.advance(5_500);
  await client.deliverDue();
  const messages = (await receiver.waitFor('/flaky', 3)).filter(({ event }) => event.id === first);
  assert.equal(messages.length, 2);
  assert.equal(messages[1]?.body, messages[0]?.body);
  assert.ok(messages.every((message) => isSigned(message, secret)));
  await client.api('DELETE', `/webhooks/${id}`);
});

test('after ten attempts in three days, the delivery has failed and its webhook is paused', async () => {
  const { id } = await client.create(`${receiver.origin}/failing`, ['hope']);
  behaviours['/failing'] = (response) => response.writeHead(500).end();
  const startMs = clock.now().getTime();
  await client.emit('hope');
  let last: TestDelivery | undefined;
  for (let attempts = 1; attempts <= 10; attempts += 1) {
    last = await client.waitForDelivery(id, ({ log }) => log.length === attempts);
    if (last.next_attempt_at === undefined) break;
    assert.equal((await client.get(id)).status, 'active');
    clock.advance(Date.parse(last.next_attempt_at) - clock.now().getTime());
    await client.deliverDue();
  }
  const hours = (clock.now().getTime() - startMs) / hourMs;
  assert.ok(hours >= 72 && hours <= 79.2, `${hours} h`);
  assert.deepEqual([last?.state, last?.attempts, last?.next_attempt_at], ['failed', 10, undefined]);
  let webhook = await client.get(id);
  await until(async () => {
    webhook = await client.get(id);
    return webhook.status !== 'active';
  });
  assert.equal(webhook.paused_reason, `No delivery has succeeded since ${new Date(startMs).toISOString()}.`);

  delete behaviours['/failing'];
  const resumed = await client.api<TestWebhook>('POST', `/webhooks/${id}/resume`);
  assert.deepEqual([resumed.body.status, resumed.body.failing_since], ['active', undefined]);
  await client.api('POST', `/webhooks/${id}/deliveries/${last?.id}/redeliver`);
  const repeated = await client.waitForDelivery(id, ({ state }) => state === 'delivered');
  assert.deepEqual([repeated.attempts, repeated.log.length], [11, 11]);
  await client.api('DELETE', `/webhooks/${id}`);
});

test('a redirect is not followed', async () => {
  const { id } = await client.create(`${receiver.origin}/redirects`, ['redirected']);
  await client.emit('redirected');
  const { log } = await client.waitForDelivery(id, hasFailed);
  assert.deepEqual([log[0]?.status, log[0]?.error?.code], [307, 'redirected']);
  assert.ok(receiver.messages.every(({ path }) => path !== '/elsewhere'));
  await client.api('DELETE', `/webhooks/${id}`);
});

test('bodies that never end or claim to be huge are not read', async () => {
  for (const path of ['/endless', '/huge']) {
    const { id } = await client.create(`${receiver.origin}${path}`, ['hostile']);
    await client.emit('hostile');
    const { state, log } = await client.waitForDelivery(id, hasFailed);
    assert.deepEqual([state, log[0]?.status], ['delivered', 200]);
    await client.api('DELETE', `/webhooks/${id}`);
  }
});

test('the response of a receiver is not stored', async () => {
  const { id } = await client.create(`${receiver.origin}/secretive`, ['told']);
  await client.emit('told');
  await client.waitForDelivery(id, hasFailed);
  const kept = await server.db`select d::text from webhook_deliveries d`;
  assert.ok(kept.length > 0 && !JSON.stringify(kept).includes('a-word-of-the-receiver'));
  await client.api('DELETE', `/webhooks/${id}`);
});

test('a broken and a refused connection are failures that name their cause', async () => {
  for (const [url, code] of [
    [`${receiver.origin}/cut`, 'bad_response'],
    ['http://127.0.0.1:2/', 'connect_failed'],
    ['http://nowhere.invalid/', 'dns_failed'],
  ] as const) {
    const { id } = await client.create(url, ['broken']);
    await client.emit('broken');
    const { log } = await client.waitForDelivery(id, hasFailed);
    assert.deepEqual([log[0]?.status, log[0]?.error?.code], [undefined, code]);
    await client.api('DELETE', `/webhooks/${id}`);
  }
});

test('a receiver that is gone pauses its webhook', async () => {
  const { id } = await client.create(`${receiver.origin}/gone`, ['leave']);
  await client.emit('leave');
  let webhook = await client.get(id);
  await until(async () => {
    webhook = await client.get(id);
    return webhook.status !== 'active';
  });
  assert.equal(webhook.paused_reason, 'The receiver returned 410 Gone.');
  await client.api('DELETE', `/webhooks/${id}`);
});

test('during the overlap of a rotation deliveries carry both signatures', async () => {
  clock.advance(Date.now() - clock.now().getTime());
  const { id, secret: old } = await client.create(`${receiver.origin}/rotated`, ['turn']);
  const rotated = await client.api<TestWebhook>('POST', `/webhooks/${id}/rotate_secret`, { overlap_seconds: 60 });
  const { secret: current = '', previous_secret_until: until = '' } = rotated.body;
  assert.equal(Date.parse(until), clock.now().getTime() + 60_000);
  await client.emit('turn');
  const [both] = await receiver.waitFor('/rotated', 1);
  assert.ok(both && isSigned(both, old) && isSigned(both, current));
  clock.advance(60_000);
  await client.emit('turn');
  const [, one] = await receiver.waitFor('/rotated', 2);
  assert.ok(one && !isSigned(one, old) && isSigned(one, current));
  await client.api('DELETE', `/webhooks/${id}`);
});

test('deliveries stay when the first stream of an app begins, which cannot continue from before', async () => {
  const other = await server.provision.app();
  const own = new WebhooksClient(server, other.secretKey);
  const { id } = await own.create(`${receiver.origin}/cut`, ['waiting']);
  await own.emit('waiting');
  await own.waitForDelivery(id, hasFailed);
  await server.api('HEAD', '/api/v1/events/stream', { key: other.secretKey });
  await until(async () => {
    const [{ released } = { released: 0 }] = await server.db<{ released: number }[]>`
      select count(*) as released from event_logs where kept_after > 0`;
    return released > 0;
  });
  await sweepEvents({ db: server.services.db, clock });
  assert.deepEqual(
    (await own.deliveries(id)).map(({ state }) => state),
    ['pending'],
  );
});

test('deliveries are kept for seven days', async () => {
  const { id } = await client.create(`${receiver.origin}/kept`, ['kept']);
  await client.emit('kept');
  await client.waitForDelivery(id, ({ state }) => state === 'delivered');
  // Written by the database's clock.
  const ageMs = eventBounds.keptDays * 24 * hourMs;
  const at = (ms: number) => ({ db: server.services.db, clock: new ManualClock(new Date(Date.now() + ms)) });
  await sweepEvents(at(ageMs - hourMs));
  assert.equal((await client.deliveries(id)).length, 1);
  await sweepEvents(at(ageMs + hourMs));
  assert.equal((await client.deliveries(id)).length, 0);
  const [left] = await server.db<
    { events: number }[]
  >`select count(*) as events from events where position is not null`;
  assert.equal(left?.events, 0);
});
