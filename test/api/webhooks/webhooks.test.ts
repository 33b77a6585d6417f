import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';
import { isSigned, WebhookReceiver } from '../../support/webhook-receiver.ts';
import { type TestDelivery, type TestWebhook, WebhooksClient } from '../../support/webhooks.ts';

let server: TestServer;
let app: TestApp;
let client: WebhooksClient;
let receiver: WebhookReceiver;

before(async () => {
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
  app = await server.provision.app();
  client = new WebhooksClient(server, app.secretKey);
  receiver = await WebhookReceiver.start();
});
after(async () => {
  await server.close();
  await receiver.close();
});

const textFile = { filename: 'a.txt', content_type: 'text/plain', data: 'VGV4dC4=' };

test('an event arrives with a signature that the official library verifies', async () => {
  const webhook = await client.create(`${receiver.origin}/signed`, ['file.created']);
  const file = await client.api<{ id: string }>('POST', '/files', textFile);
  const [message] = await receiver.waitFor('/signed', 1);
  assert.ok(message);
  assert.match(webhook.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.ok(isSigned(message, webhook.secret));
  assert.ok(!isSigned({ ...message, body: message.body.replace('a.txt', 'b.txt') }, webhook.secret));
  assert.equal(message.headers['content-type'], 'application/json');
  assert.equal(message.headers['webhook-id'], message.event.id);
  assert.equal(message.event.type, 'file.created');
  assert.deepEqual(message.event.data, { file: file.body.id, filename: 'a.txt', content_type: 'text/plain', size: 5 });
  const delivery = await client.waitForDelivery(webhook.id, ({ state }) => state === 'delivered');
  const { event, type, sequence, attempts } = delivery;
  assert.deepEqual(
    { event, type, sequence, attempts },
    { event: message.event.id, type: 'file.created', sequence: message.event.sequence, attempts: 1 },
  );
  await client.api('DELETE', `/webhooks/${webhook.id}`);
});

test('a webhook with a name that nothing has emitted is created with a warning and the nearest known name', async () => {
  await client.emit('order.refunded');
  type Warned = TestWebhook & { warnings?: { field: string; message: string }[] };
  const body = {
    url: `${receiver.origin}/unknown`,
    events: ['file.create', 'order.refunded', 'order.refundet', '*', 'x'],
  };
  const made = await client.api<Warned>('POST', '/webhooks', body);
  assert.equal(made.status, 201);
  assert.deepEqual(made.body.warnings, [
    { field: 'events.0', message: 'Nothing has emitted an event "file.create" so far. Did you mean "file.created"?' },
    {
      field: 'events.2',
      message: 'Nothing has emitted an event "order.refundet" so far. Did you mean "order.refunded"?',
    },
    { field: 'events.4', message: 'Nothing has emitted an event "x" so far.' },
  ]);
  const path = `/webhooks/${made.body.id}`;
  assert.equal((await client.api<Warned>('GET', path)).body.warnings, undefined);
  assert.equal((await client.api<Warned>('PATCH', path, { events: ['file.created'] })).body.warnings, undefined);
  assert.equal((await client.api<Warned>('PATCH', path, { events: ['none'] })).body.warnings?.length, 1);
  const elsewhere = await server.provision.app();
  const other = await new WebhooksClient(server, elsewhere.secretKey).api<Warned>('POST', '/webhooks', {
    ...body,
    events: ['order.refunded'],
  });
  assert.equal(other.body.warnings?.length, 1, 'events of another app are not known');
  const refused = await client.api<ErrorBody>('POST', '/webhooks', { url: 'http://10.0.0.1/', events: ['*'] });
  assert.match(refused.body.error.message, /must name a host on the public internet\. .*QUARRY_FETCH_ALLOW/);
  await client.api('DELETE', path);
});

test('a webhook receives the events that it names, each with the next number of its app', async () => {
  const some = await client.create(`${receiver.origin}/some`, ['order.paid']);
  const all = await client.create(`${receiver.origin}/all`, ['*']);
  await client.emit('order.opened');
  const paid = await client.emit('order.paid', { total: 7 });
  await client.emit('order.closed');
  const [one] = await receiver.waitFor('/some', 1);
  const three = await receiver.waitFor('/all', 3);
  assert.deepEqual([one?.event.id, one?.event.data], [paid, { total: 7 }]);
  const sequences = three.map(({ event }) => event.sequence).sort((a, b) => a - b);
  const [first = 0] = sequences;
  assert.deepEqual(sequences, [first, first + 1, first + 2]);
  const bySequence = new Map(three.map(({ event }) => [event.sequence, event.type]));
  assert.deepEqual(
    sequences.map((sequence) => bySequence.get(sequence)),
    ['order.opened', 'order.paid', 'order.closed'],
  );
  for (const { id } of [some, all]) await client.api('DELETE', `/webhooks/${id}`);
});

test('events of files, sources, ingestions, extractions and runs are delivered', async () => {
  const webhook = await client.create(`${receiver.origin}/kinds`, ['*']);
  const { body: file } = await client.api<{ id: string }>('POST', '/files', textFile);
  await client.api('PATCH', `/files/${file.id}`, { filename: 'b.txt' });
  await client.api('POST', '/extractions', { file: file.id, destination_kind: 'storage' });
  const user = await server.provision.user(app);
  const { body: source } = await client.api<{ id: string }>('POST', '/knowledge_sources', {
    type: 'knowledge/documents',
    user: user.id,
  });
  await client.api('POST', `/knowledge_sources/${source.id}/ingest`, { content: { data: 'Text.' } });
  const { body: automation } = await client.api<{ id: string }>('POST', '/automations', {
    name: 'Done',
    type: 'invoked',
    workflow: { kind: 'WorkflowGraph', version: 1, start_node: 'd', nodes: [{ id: 'd', kind: 'complete' }] },
  });
  await client.api('POST', `/automations/${automation.id}/activate`);
  await client.api('POST', `/automations/${automation.id}/invoke`, { payload: {} });
  const wanted = [
    'automation_run.completed',
    'extraction.completed',
    'file.created',
    'file.updated',
    'ingestion.succeeded',
    'knowledge_source.created',
  ];
  // More than these: an extraction writes a file.
  const missing = new Set(wanted);
  for (let count = 1; missing.size > 0; count += 1) {
    for (const { event } of await receiver.waitFor('/kinds', count)) missing.delete(event.type);
  }
  await client.api('DELETE', `/webhooks/${webhook.id}`);
});

test('the secret is shown once', async () => {
  const { id, secret } = await client.create(`${receiver.origin}/shown`, ['a']);
  for (const path of [`/webhooks/${id}`, '/webhooks', `/webhooks/${id}/deliveries`])
    assert.ok(!(await client.api('GET', path)).text.includes(secret.slice(6)), path);
  const changed = await client.api<TestWebhook>('PATCH', `/webhooks/${id}`, { description: 'Orders', events: ['b'] });
  assert.deepEqual([changed.status, changed.body.secret, changed.body.events], [200, undefined, ['b']]);
  const paths = [`/webhooks/${id}/rotate_secret`, '/webhooks'];
  for (const path of paths) {
    const refused = await server.api<ErrorBody>('POST', `/api/v1${path}`, {
      key: app.secretKey,
      body: path === '/webhooks' ? { url: receiver.origin, events: ['a'] } : {},
      headers: { 'idempotency-key': 'once' },
    });
    assert.deepEqual([refused.status, refused.body.error.fields[0]?.field], [422, 'idempotency-key']);
  }
  assert.equal((await client.api('DELETE', `/webhooks/${id}`)).status, 204);
  assert.equal((await client.api('GET', `/webhooks/${id}`)).status, 404);
});

test('bad input is 422 and names the field', async () => {
  const good = { url: `${receiver.origin}/bad`, events: ['a'] };
  const { id } = await client.create(good.url, good.events);
  const checks: [string, string, object, string][] = [
    ['POST', '/webhooks', { events: ['a'] }, 'url'],
    ['POST', '/webhooks', { ...good, url: 'ftp://example.com' }, 'url'],
    ['POST', '/webhooks', { ...good, url: 'http://169.254.169.254/latest' }, 'url'],
    ['POST', '/webhooks', { ...good, url: 'https://name:word@example.com' }, 'url'],
    ['POST', '/webhooks', { ...good, events: [] }, 'events'],
    ['POST', '/webhooks', { ...good, events: ['a', 'a'] }, 'events'],
    ['POST', '/webhooks', { ...good, events: [''] }, 'events.0'],
    ['POST', '/webhooks', { ...good, secret: 'whsec_mine' }, 'secret'],
    ['PATCH', `/webhooks/${id}`, { url: 'http://10.0.0.1/' }, 'url'],
    ['POST', `/webhooks/${id}/rotate_secret`, { overlap_seconds: 604_801 }, 'overlap_seconds'],
    ['GET', `/webhooks/${id}/deliveries?state=lost`, {}, 'state'],
  ];
  for (const [method, path, body, field] of checks) {
    const refused = await client.api<ErrorBody>(method, path, method === 'GET' ? undefined : body);
    assert.deepEqual([refused.status, refused.body.error?.fields[0]?.field], [422, field], refused.text);
  }
  await client.api('DELETE', `/webhooks/${id}`);
});

test('an app has at most 50 webhooks, and its sandboxes have their own', async () => {
  const crowded = await server.provision.app();
  const key = new WebhooksClient(server, crowded.secretKey);
  for (let made = 0; made < 50; made += 1) await key.create(`${receiver.origin}/many`, ['a']);
  const refused = await key.api<ErrorBody>('POST', '/webhooks', { url: receiver.origin, events: ['a'] });
  assert.deepEqual([refused.status, refused.body.error.code], [422, 'quota_exceeded']);
  assert.deepEqual(refused.body.error.details, { quota: 'webhooks', limit: 50, used: 50, requested: 1 });
  const sandbox = await server.provision.sandbox(crowded);
  await new WebhooksClient(server, sandbox.secretKey).create(`${receiver.origin}/many`, ['a']);
});

test('production and sandboxes receive their own events, each with numbers from 1', async () => {
  const production = await server.provision.app();
  const sandbox = await server.provision.sandbox(production);
  const outside = new WebhooksClient(server, production.secretKey);
  const inside = new WebhooksClient(server, sandbox.secretKey);
  await outside.create(`${receiver.origin}/production`, ['*']);
  await inside.create(`${receiver.origin}/sandbox`, ['*']);
  await outside.emit('here');
  await inside.emit('there');
  const [here] = await receiver.waitFor('/production', 1);
  const [there] = await receiver.waitFor('/sandbox', 1);
  assert.deepEqual([here?.event.type, here?.event.sequence], ['here', 1]);
  assert.deepEqual([there?.event.type, there?.event.sequence], ['there', 1]);
});

test('a test event is sent only to its webhook', async () => {
  const tested = await client.create(`${receiver.origin}/tested`, ['never']);
  const other = await client.create(`${receiver.origin}/untested`, ['*']);
  const made = await client.api<TestDelivery>('POST', `/webhooks/${tested.id}/test`);
  assert.deepEqual([made.status, made.body.type, made.body.state], [201, 'webhook.test', 'pending']);
  const [message] = await receiver.waitFor('/tested', 1);
  assert.deepEqual(message?.event.data, { webhook: tested.id });
  assert.deepEqual(await client.deliveries(other.id), []);
  for (const { id } of [tested, other]) await client.api('DELETE', `/webhooks/${id}`);
});

test('a paused webhook receives the events of the pause when it is resumed', async () => {
  const { id } = await client.create(`${receiver.origin}/paused`, ['paused.*', 'later']);
  const paused = await client.api<TestWebhook>('POST', `/webhooks/${id}/pause`);
  assert.deepEqual([paused.body.status, paused.body.paused_reason], ['paused', 'It was paused by request.']);
  await client.emit('later');
  const pending = await client.waitForDelivery(id, ({ state }) => state === 'pending');
  await client.deliverDue();
  for (const path of ['test', `deliveries/${pending.id}/redeliver`])
    assert.equal((await client.api('POST', `/webhooks/${id}/${path}`)).status, 409);
  const resumed = await client.api<TestWebhook>('POST', `/webhooks/${id}/resume`);
  assert.deepEqual([resumed.body.status, resumed.body.paused_reason], ['active', undefined]);
  const [message] = await receiver.waitFor('/paused', 1);
  assert.equal(message?.event.id, pending.event);
  await client.waitForDelivery(id, ({ state, attempts }) => state === 'delivered' && attempts === 1);
  await client.api('DELETE', `/webhooks/${id}`);
});

test('a delivery can be repeated by hand, with the same id and body', async () => {
  const { id } = await client.create(`${receiver.origin}/again`, ['again']);
  await client.emit('again', { text: 'ä\u2028' });
  const { id: delivery } = await client.waitForDelivery(id, ({ state }) => state === 'delivered');
  const repeated = await client.api<TestDelivery>('POST', `/webhooks/${id}/deliveries/${delivery}/redeliver`);
  assert.deepEqual([repeated.status, repeated.body.state], [200, 'pending']);
  const [first, second] = await receiver.waitFor('/again', 2);
  assert.deepEqual([second?.body, second?.headers['webhook-id']], [first?.body, first?.headers['webhook-id']]);
  assert.deepEqual(first?.event.data, { text: 'ä\u2028' });
  const ended = await client.waitForDelivery(id, ({ state }) => state === 'delivered');
  assert.deepEqual([ended.attempts, ended.log.length], [2, 2]);
  assert.equal((await client.deliveries(id, '&state=delivered&type=again')).length, 1);
  assert.equal((await client.deliveries(id, '&type=other')).length, 0);
  const unknown = `whd_${'0'.repeat(22)}`;
  assert.equal((await client.api('POST', `/webhooks/${id}/deliveries/${unknown}/redeliver`)).status, 404);
  await client.api('DELETE', `/webhooks/${id}`);
});

test('nothing is written for webhooks while there are none', async () => {
  const quiet = await server.provision.app();
  await server.api('POST', '/api/v1/files', { key: quiet.secretKey, body: textFile });
  const rows = await server.db`select 1 from events where app_id = ${parseId('app', quiet.app.id) ?? ''}`;
  assert.equal(rows.length, 0);
});
