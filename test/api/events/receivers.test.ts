import assert from 'node:assert/strict';
import { glob, readFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { EventStream } from '../../support/event-stream.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { WebhookReceiver } from '../../support/webhook-receiver.ts';
import { WebhooksClient } from '../../support/webhooks.ts';

/*
 * Who receives events: streams, webhooks, and automations by their owner and by whom their runs act as. Each learns of
 * a resource only what the same caller could read about it.
 */

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const hooks = await WebhookReceiver.start();
const streams: EventStream[] = [];
after(async () => {
  for (const stream of streams) stream.close();
  await server.close();
  await hooks.close();
});
const app = await server.provision.app();
const org = await server.provision.org(app);
const [reader, insider] = [
  await server.provision.user(app, { org, role: 'member' }),
  await server.provision.user(app, { org, role: 'member' }),
];
const agent = await server.provision.agent(app, { org });
const automations = new AutomationsClient(server, app);
const webhooks = new WebhooksClient(server, app.secretKey);
const knowledge = knowledgeOf(server, { key: app.secretKey });
const forInsider = { acl: { grants: [{ principal_type: 'user', principal: insider.id }] } };

type Receiver = { name: string; seesAll: boolean; has(id: string): Promise<boolean> };

async function follow(name: string, headers: Record<string, string>, seesAll: boolean): Promise<Receiver> {
  const stream = await EventStream.open(`${server.baseUrl}/api/v1/events/stream`, headers);
  streams.push(stream);
  assert.equal((await stream.take()).event, 'ready');
  const seen: string[] = [];
  void (async () => {
    for (let event = await stream.next(); event; event = await stream.next()) seen.push(JSON.stringify(event.data));
  })();
  return { name, seesAll, has: async (id) => seen.some((text) => text.includes(id)) };
}

async function listen(name: string, body: object, trigger: string, seesAll: boolean): Promise<Receiver> {
  const workflow = graphOf({ id: 'start', kind: 'trigger' });
  const { id } = await automations.createAutomation({ type: 'trigger', trigger, workflow, ...body });
  const has = async (wanted: string) => {
    const runs = await server.api<{ data: { id: string }[] }>(
      'GET',
      `/api/v1/automation_runs?automation=${id}&limit=100`,
      {
        key: app.secretKey,
      },
    );
    const all = await Promise.all(runs.body.data.map((run) => automations.run(run.id)));
    return all.some(({ payload }) => JSON.stringify(payload).includes(wanted));
  };
  return { name, seesAll, has };
}

async function allReceivers(trigger: string): Promise<Receiver[]> {
  const hook = `/${trigger}`;
  await webhooks.create(`${hooks.origin}${hook}`, ['*']);
  return [
    await follow('the stream of a key', { 'x-api-key': app.secretKey }, true),
    await follow('the stream of a reader', { authorization: `Bearer ${reader.token}` }, false),
    await follow('the stream of an insider', { authorization: `Bearer ${insider.token}` }, true),
    await listen('an automation of the app', {}, trigger, true),
    await listen('an automation that acts as a reader', { run_as_user: reader.id }, trigger, false),
    await listen('an automation that acts as an insider', { run_as_user: insider.id }, trigger, true),
    await listen('an automation that acts as an agent', { run_as_agent: agent.id }, trigger, false),
    await listen('an automation of the organisation', { org: org.id }, trigger, false),
    await listen('one of it that acts as an insider', { org: org.id, run_as_user: insider.id }, trigger, false),
    {
      name: 'a webhook',
      seesAll: true,
      has: async (id) => hooks.messages.some(({ path, body }) => path === hook && body.includes(id)),
    },
  ];
}

test('no receiver learns of an ingestion with documents that are hidden from it', async () => {
  const source = await knowledge.createSource({ org: org.id });
  const receivers = await allReceivers('ingestion.succeeded');
  const ingest = async (more: object) => (await knowledge.ingest(source, { content: { data: 'Heron.' }, ...more })).id;
  const hidden = await ingest(forInsider);
  const open = await ingest({});
  for (const { name, seesAll, has } of receivers) {
    await until(() => has(open));
    if (seesAll) await until(() => has(hidden));
    assert.equal(await has(hidden), seesAll, name);
  }
});

test('no receiver learns of a resource that its requests cannot read', async () => {
  const receivers = await allReceivers('knowledge_source.created');
  const mine = await knowledge.createSource({ user: insider.id });
  const ours = await knowledge.createSource({ org: org.id });
  for (const { name, seesAll, has } of receivers) {
    await until(() => has(ours));
    // An organisation's automation also receives the events of its users.
    const expected = seesAll || / organisation|of it /.test(name);
    if (expected) await until(() => has(mine));
    assert.equal(await has(mine), expected, name);
  }
});

test('a restriction also hides the events that were logged before it', async () => {
  const { body: all } = await automations.call<{ data: { id: string }[] }>('GET', '/automations?page_size=100');
  // Their runs would repeat what the event said to the readers of the run.
  for (const { id } of all.data) await automations.call('DELETE', `/automations/${id}`);
  const source = await knowledge.createSource({ org: org.id });
  const first = await follow('before', { authorization: `Bearer ${reader.token}` }, false);
  const { id, metadata } = await knowledge.ingest(source, { content: { data: 'Bittern.' } });
  await until(() => first.has(id));
  const [logged] = await server.db<{ position: number }[]>`
    select position from events where name = 'ingestion.succeeded' and payload ->> 'ingestion' = ${id}`;
  const replay = () =>
    follow(
      'again',
      { authorization: `Bearer ${reader.token}`, 'last-event-id': String((logged?.position ?? 0) - 1) },
      false,
    );
  const before = await replay();
  await until(() => before.has(id));
  const document = String(metadata.document);
  assert.equal((await knowledge.send('PATCH', `/knowledge_documents/${document}/acl`, forInsider.acl)).status, 200);
  const marker = await server.api<{ id: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'marker.txt', content_type: 'text/plain', data: '', org: org.id },
  });
  const after = await replay();
  await until(() => after.has(marker.body.id));
  assert.equal(await after.has(id), false);
});

test('events about an approval reach the users who may answer it, and no other reader of its automation', async () => {
  const [theirs, others] = [
    await follow('insider', { authorization: `Bearer ${insider.token}` }, true),
    await follow('reader', { authorization: `Bearer ${reader.token}` }, false),
  ];
  const workflow = graphOf({ id: 'ask', kind: 'approve', question: 'The secret plan?', users: [insider.id] });
  const { id } = await automations.createAutomation({ org: org.id, workflow });
  const run = await automations.invoke(id);
  await until(() => theirs.has('The secret plan?'));
  const { body } = await automations.call<{ data: { id: string }[] }>('GET', `/approvals?run=${run.id}`);
  const approval = body.data[0]?.id ?? '';
  const done = await server.api('POST', `/api/v1/approvals/${approval}/answer`, {
    token: insider.token,
    body: { data: { ok: true } },
  });
  assert.equal(done.status, 200, done.text);
  await automations.waitForEnd(run.id);
  await until(() => theirs.has('approval.answered'));
  await until(() => others.has(run.id));
  assert.equal(await others.has('"approval.'), false);
});

test('these are all places that read events', async () => {
  const found = [];
  for await (const path of glob('src/**/*.ts'))
    if (/\b(?:from|join)\s+events\b/.test(await readFile(path, 'utf8'))) found.push(path);
  // A new reader of events must receive only what `eventVisible` allows, and belongs into the tests above.
  assert.deepEqual(found.sort(), [
    'src/automations/triggers/store.ts', // Automations, by listReceivers.
    'src/erasures/receivers.ts', // Names of webhooks that got events of a subject, for operators.
    'src/erasures/workflow.ts', // Deletes the events of a subject.
    'src/events/store.ts', // Streams, and maySee.
    'src/knowledge/documents/erase.ts', // Deletes the events of a document.
    'src/monitoring/store.ts', // Jobs, which operators list.
    'src/webhooks/delivery-store.ts', // Webhooks, which belong to the app.
    'src/webhooks/store.ts', // Names of events, for operators.
  ]);
});
