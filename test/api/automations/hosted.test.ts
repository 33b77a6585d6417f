import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { serve } from '../../../clients/typescript/src/serve.ts';
import { type Run, workflow } from '../../../clients/typescript/src/workflows.ts';
import { addJob } from '../../../src/jobs/queue.ts';
import { AutomationsClient } from '../../support/automations.ts';
import { FunctionHost } from '../../support/function-host.ts';
import { completed, ProgramWorker, programOf, started } from '../../support/programs.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { WebhookReceiver } from '../../support/webhook-receiver.ts';
import { type TestDelivery, type TestWebhook, WebhooksClient } from '../../support/webhooks.ts';

/* Functions that a webhook wakes when a run of a workflow in code has work. */

let server: TestServer;
let app: TestApp;
let client: AutomationsClient;
let webhooks: WebhooksClient;
let receiver: WebhookReceiver;
let offsetMs = 0;
const hosts: FunctionHost[] = [];

before(async () => {
  const clock = { now: () => new Date(Date.now() + offsetMs) };
  server = await startTestServer({ clock, env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
  app = await server.provision.app();
  client = new AutomationsClient(server, app);
  webhooks = new WebhooksClient(server, app.secretKey);
  receiver = await WebhookReceiver.start();
});
after(async () => {
  await server.close();
  await receiver.close();
  for (const host of hosts) await host.close();
});

type Hosting = TestWebhook & { secret: string; automations?: string[] };
type Offer = { run: string; automation: string; claim: string; lease_until: string; url: string };
let names = 0;

async function program(more: Record<string, unknown> = {}): Promise<{ id: string; name: string }> {
  const name = `hosted-${++names}`;
  const { id } = await client.createAutomation({ lookup_key: name, workflow: programOf(name), ...more });
  return { id, name };
}

async function hook(url: string, automations: string[]): Promise<Hosting> {
  const made = await webhooks.api<Hosting>('POST', '/webhooks', { url, automations });
  assert.equal(made.status, 201, made.text);
  return made.body;
}

/** Deploys the code of a workflow as a function. */
async function deploy(
  body: (run: Run, input: never) => Promise<unknown>,
  { code = '1', more = {} }: { code?: string; more?: Record<string, unknown> } = {},
) {
  const { id, name } = await program(more);
  const flow = workflow(name, {}, body as never);
  const host = await FunctionHost.start(async () => new Response('Not deployed', { status: 503 }));
  hosts.push(host);
  const webhook = await hook(host.url, [name]);
  const deployed = (as: typeof flow, codeVersion: string) => {
    host.handler = serve([as], { secret: ['whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', webhook.secret], codeVersion });
  };
  deployed(flow, code);
  return { id, name, host, webhook, deployed };
}

/** A webhook whose receiver only takes messages. */
async function listen(path: string, more: Record<string, unknown> = {}) {
  const { id, name } = await program(more);
  const webhook = await hook(`${receiver.origin}${path}`, [id]);
  const offers = async (count: number) =>
    (await receiver.waitFor(path, count)).map(({ event }) => event.data as unknown as Offer);
  return { id, name, webhook, offers };
}

/** Uses a claim as the only credential. */
function claimed<T = Record<string, unknown>>(token: string, path: string, body: unknown) {
  return server.api<T & ErrorBody>('POST', `/api/v1/claimed_run/${path}`, {
    headers: { authorization: `Bearer ${token}` },
    body,
  });
}

/** Moves the clock, and wakes functions that have done nothing. */
async function pass(seconds: number): Promise<void> {
  offsetMs += seconds * 1_000;
  await server.server.work.ticker.tick();
  await addJob(server.db, 'wake_idle_programs', {});
}

test('a function is woken for each part of a run, and continues it with the claim alone', async () => {
  const done: string[] = [];
  const heard = await webhooks.create(`${receiver.origin}/all`, ['*']);
  const { id, host, webhook } = await deploy(async (run, input: { net: number }) => {
    const tax = await run.step('tax', ({ commandId }) => {
      done.push(commandId.slice(0, 4));
      return input.net * 0.2;
    });
    const more = await run.signal<number>('more');
    return run.step('add', () => input.net + tax + more);
  });
  const { id: run } = await client.invoke(id, { payload: { net: 100 } });
  await client.waitUntil(run, (now) => (now as { waiting_for?: { kind: string } }).waiting_for?.kind === 'signal');
  assert.equal(host.calls, 1);
  await client.call('POST', `/automation_runs/${run}/signal`, { name: 'more', payload: 1 });
  const ended = await client.waitForEnd(run);
  assert.deepEqual([ended.status, ended.result], ['completed', 121]);
  assert.deepEqual(done, ['cmd_'], 'the first step was executed once');
  await until(async () => (await webhooks.deliveries(webhook.id)).every(({ state }) => state === 'delivered'));
  const deliveries = await webhooks.deliveries(webhook.id);
  assert.deepEqual(
    deliveries.map(({ type, attempts }) => [type, attempts]),
    [
      ['automation_run.ready', 1],
      ['automation_run.ready', 1],
    ],
  );
  const journal = await client.journal(run);
  const step = journal.find(({ type }) => type === 'node_completed');
  assert.equal(step?.record.environment?.code_version, '1');
  const [others] = await receiver.waitFor('/all', 1);
  assert.equal(others?.event.type, 'automation_run.completed', 'nobody else hears of the claim');
  await webhooks.api('DELETE', `/webhooks/${heard.id}`);
});

test('with `waitUntil`, a function responds before its work is done, and reports what fails', async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const { id, name, host, webhook } = await deploy(async () => undefined);
  const flow = workflow(name, {}, async (run) => {
    await run.step('long', () => gate);
    return run.step('last', () => 'done');
  });
  const errors: unknown[] = [];
  const statuses: number[] = [];
  const work: Promise<unknown>[] = [];
  const waitUntil = (more: Promise<unknown>) => void work.push(more);
  const deployAs = (more: object) => {
    const handle = serve([flow], { secret: webhook.secret, onError: (error) => errors.push(error), ...more });
    host.handler = async (request) => {
      const response = await handle(request, { waitUntil });
      statuses.push(response.status);
      return response;
    };
  };
  deployAs({});
  const { id: run } = await client.invoke(id);
  await until(async () => (await webhooks.deliveries(webhook.id))[0]?.state === 'delivered');
  await client.waitUntil(run, (_run, { data }) => data.some(({ node_id: node }) => node === 'long'));
  assert.deepEqual([statuses, (await client.run(run)).status], [[202], 'running']);
  open();
  assert.equal((await client.waitForEnd(run)).result, 'done');
  await Promise.all(work);
  assert.deepEqual(errors, []);

  deployAs({ fetch: () => Promise.reject(new Error('No network.')) });
  await client.invoke(id);
  await until(async () => statuses.length === 2 && errors.length > 0);
  await Promise.all(work);
  assert.equal(statuses[1], 202);
  await webhooks.api('DELETE', `/webhooks/${webhook.id}`);
});

test('a claim is a credential for its run alone, until it ends', async () => {
  const { id, offers } = await listen('/claim');
  await client.invoke(id);
  const [offer] = await offers(1);
  assert.ok(offer);
  assert.equal(offer.url, `${server.baseUrl}/api/v1/claimed_run`);
  assert.match(offer.claim, /^rct_/);
  const read = await claimed<{ run: string; sequence: number; journal: unknown[] }>(offer.claim, 'journal', {
    code_version: '7',
  });
  assert.deepEqual([read.status, read.body.run, read.body.sequence, read.body.journal.length], [200, offer.run, 1, 1]);
  const headers = { authorization: `Bearer ${offer.claim}` };
  for (const [method, path] of [
    ['GET', `/api/v1/automation_runs/${offer.run}`],
    ['POST', `/api/v1/automation_runs/${offer.run}/entries`],
    ['POST', `/api/v1/automation_runs/${offer.run}/cancel`],
    ['POST', '/api/v1/automation_work/claim'],
    ['GET', `/api/v1/automations/${id}`],
    ['GET', '/api/v1/files'],
    ['GET', '/api/v1/app'],
    ['POST', '/mcp'],
  ] as const) {
    const refused = await server.api(method, path, { headers, ...(method === 'POST' ? { body: {} } : {}) });
    assert.ok([401, 404].includes(refused.status), `${method} ${path}: ${refused.status}`);
  }
  const batch = { after_sequence: 1, entries: [started('a')] };
  const forged = `${offer.claim.slice(0, -4)}AAAA`;
  for (const token of [forged, 'rct_', app.secretKey, offer.claim.slice(4)])
    for (const [path, body] of [
      ['entries', batch],
      ['journal', {}],
    ] as const)
      assert.equal((await claimed(token, path, body)).status, 401, token);
  const bare = await server.api<ErrorBody>('POST', '/api/v1/claimed_run/entries', { body: batch });
  assert.deepEqual([bare.status, bare.body.error.code], [401, 'unauthenticated']);
  const wrong = await claimed(offer.claim, 'entries', { ...batch, claim: offer.claim });
  assert.equal(wrong.status, 422, 'the claim is not a member of the body');
  const end = { after_sequence: 1, entries: [{ type: 'run_completed', payload: 5 }] };
  assert.equal((await claimed(offer.claim, 'entries', end)).status, 200);
  assert.equal((await claimed(offer.claim, 'entries', end)).status, 200, 'the same batch again');
  assert.equal((await claimed(offer.claim, 'journal', {})).body.error.code, 'claim_lost');
  const ended = await client.run(offer.run);
  assert.deepEqual([ended.status, ended.result], ['completed', 5]);
});

test('a claim ends when its webhook is deleted, or no longer names the automation', async () => {
  const other = await program();
  for (const [path, end] of [
    ['/deleted', (id: string) => webhooks.api('DELETE', `/webhooks/${id}`)],
    ['/renamed', (id: string) => webhooks.api('PATCH', `/webhooks/${id}`, { automations: [other.id] })],
  ] as const) {
    const { id, webhook, offers } = await listen(path);
    const { id: run } = await client.invoke(id);
    const [offer] = await offers(1);
    const claim = offer?.claim ?? '';
    const batch = { after_sequence: 1, entries: [started('a')] };
    assert.equal((await claimed(claim, 'entries', batch)).status, 200);
    assert.ok((await end(webhook.id)).status < 300);
    for (const [part, body] of [
      ['entries', { after_sequence: 2, entries: [completed('a', 1)] }],
      ['entries', { after_sequence: 2, entries: [] }],
      ['journal', {}],
    ] as const) {
      const refused = await claimed(claim, part, body);
      assert.deepEqual([refused.status, refused.body.error?.code], [409, 'claim_lost'], `${path} ${part}`);
    }
    assert.equal((await client.journal(run)).length, 2, 'nothing was written');
    if (path === '/renamed') await webhooks.api('DELETE', `/webhooks/${webhook.id}`);
  }
});

test('a function that does nothing is woken again with another claim, after growing pauses, and the webhook shows it', async () => {
  const { id, offers, webhook } = await listen('/idle');
  await client.invoke(id);
  const [first] = await offers(1);
  assert.ok(first);
  await until(async () => (await webhooks.deliveries(webhook.id))[0]?.state === 'delivered');
  assert.equal((await webhooks.get(webhook.id)).failing_since, undefined);
  await pass(31);
  assert.equal(
    (await claimed(first.claim, 'entries', { after_sequence: 1, entries: [] })).body.error.code,
    'claim_lost',
  );
  const [, second] = await offers(2);
  assert.ok(second);
  assert.notEqual(second.claim, first.claim);
  const of = async () => {
    const found = await webhooks.deliveries(webhook.id);
    return found.find(({ event }) => event === receiver.messages.find(({ path }) => path === '/idle')?.event.id);
  };
  const failed = (await of()) as TestDelivery;
  assert.deepEqual([failed.state, failed.log.at(-1)?.error?.code], ['failed', 'no_progress']);
  assert.notEqual((await webhooks.get(webhook.id)).failing_since, undefined);
  // The next pause is five seconds longer than the claim.
  await pass(32);
  await until(async () => (await openJobs('wake%')) === 0);
  assert.equal((await offers(2)).length, 2);
  await pass(4);
  const [, , third] = await offers(3);
  assert.ok(third);
  const batch = { after_sequence: 1, entries: [started('a')] };
  assert.equal((await claimed(second.claim, 'entries', batch)).body.error.code, 'claim_lost');
  assert.equal((await claimed(third.claim, 'entries', batch)).status, 200);
  assert.equal((await webhooks.get(webhook.id)).failing_since, undefined, 'writing ends the failures');
  await webhooks.api('DELETE', `/webhooks/${webhook.id}`);
});

async function openJobs(task: string): Promise<number> {
  await turn();
  const [row] = await server.db<[{ count: number }]>`
    select count(*)::integer as count from jobs where task like ${task} and attempts < max_attempts
      and coalesce(key, '') not like 'recurring/%'`;
  return row.count;
}

test('a webhook whose function refuses is paused, says why, and wakes its runs when it is resumed', async () => {
  const { id, webhook, offers } = await listen('/gone');
  receiver.respond = (response, { path }) => {
    response.statusCode = path === '/gone' ? 410 : 200;
    response.end();
  };
  await client.invoke(id);
  await offers(1);
  await until(async () => (await webhooks.get(webhook.id)).status === 'paused');
  assert.equal((await webhooks.get(webhook.id)).paused_reason, 'The receiver returned 410 Gone.');
  const [delivery] = await webhooks.deliveries(webhook.id);
  assert.deepEqual([delivery?.log[0]?.status, delivery?.log[0]?.error?.code], [410, 'refused']);
  await pass(31);
  receiver.respond = (response) => response.end();
  await webhooks.api('POST', `/webhooks/${webhook.id}/resume`);
  const [, again] = await offers(2);
  assert.equal((await claimed(again?.claim ?? '', 'journal', {})).status, 200);
  const redelivered = await webhooks.api<ErrorBody>(
    'POST',
    `/webhooks/${webhook.id}/deliveries/${delivery?.id}/redeliver`,
  );
  assert.deepEqual([redelivered.status, redelivered.body.error.code], [409, 'conflict']);
  await webhooks.api('DELETE', `/webhooks/${webhook.id}`);
});

test('code that does not fit waits for another version, and resuming the webhook tries it', async () => {
  const { id, name, webhook, deployed } = await deploy(async (run) => {
    await run.signal('go');
    return run.step('old', () => 'old');
  });
  const { id: run } = await client.invoke(id);
  type Waiting = { waiting_for?: { kind: string; workflow_changed?: unknown } };
  await client.waitUntil(run, (now) => (now as Waiting).waiting_for?.kind === 'signal');
  deployed(
    workflow(name, {}, (at) => at.step('go', () => 'other')),
    '2',
  );
  await client.call('POST', `/automation_runs/${run}/signal`, { name: 'go', payload: 1 });
  const waiting = (await client.waitUntil(run, (now) => (now as Waiting).waiting_for?.kind === 'worker')) as Waiting;
  assert.notEqual(waiting.waiting_for?.workflow_changed, undefined);
  deployed(
    workflow(name, {}, async (at) => {
      await at.signal('go');
      return at.step('old', () => 'new');
    }),
    '3',
  );
  await webhooks.api('POST', `/webhooks/${webhook.id}/resume`);
  assert.equal((await client.waitForEnd(run)).result, 'new');
});

test('a function that dies within a step loses the run to the next one, which gets the same command', async () => {
  const { id, offers, webhook } = await listen('/dies');
  const { id: run } = await client.invoke(id);
  const [first] = await offers(1);
  const batch = { after_sequence: 1, entries: [started('work')] };
  const begun = await claimed<{ command_ids: { work: string } }>(first?.claim ?? '', 'entries', batch);
  await pass(31);
  const [, second] = await offers(2);
  assert.equal((await webhooks.get(webhook.id)).failing_since, undefined, 'it had written something');
  type Page = { sequence: number; journal: { type: string; command_id?: string }[] };
  const page = (await claimed<Page>(second?.claim ?? '', 'journal', {})).body;
  assert.deepEqual(
    page.journal.map(({ type, command_id: command }) => [type, command]),
    [
      ['run_started', undefined],
      ['node_started', begun.body.command_ids.work],
    ],
  );
  const end = { after_sequence: 2, entries: [completed('work', 1), { type: 'run_completed', payload: 1 }] };
  assert.equal((await claimed(first?.claim ?? '', 'entries', end)).body.error.code, 'claim_lost');
  assert.equal((await claimed(second?.claim ?? '', 'entries', end)).status, 200);
  assert.equal((await client.run(run)).result, 1);
});

test('only as many functions are woken as the automation lets runs be active', async () => {
  const { id, offers } = await listen('/limited', { max_concurrent_runs: 1 });
  for (let n = 0; n < 3; n++) await client.invoke(id);
  for (let n = 1; n <= 3; n++) {
    const offer = (await offers(n)).at(-1);
    await until(async () => (await openJobs('wake%')) === 0);
    assert.equal((await offers(n)).length, n, 'the others wait for their turn');
    const end = { after_sequence: 1, entries: [{ type: 'run_completed' }] };
    assert.equal((await claimed(offer?.claim ?? '', 'entries', end)).status, 200);
  }
});

test('a webhook names events or automations with a program, and keeps to one of them', async () => {
  const { id, name } = await program();
  const graph = await client.createAutomation({});
  const url = `${receiver.origin}/bad`;
  const other = await server.provision.app();
  const foreign = await new AutomationsClient(server, other).createAutomation({ workflow: programOf('x') });
  for (const [body, field] of [
    [{ url }, 'events'],
    [{ url, events: ['*'], automations: [id] }, 'events'],
    [{ url, automations: [] }, 'automations'],
    [{ url, automations: [name, graph.id] }, 'automations.1'],
    [{ url, automations: [foreign.id] }, 'automations.0'],
    [{ url, automations: ['none'] }, 'automations.0'],
    [{ url: 'http://10.0.0.1/', automations: [id] }, 'url'],
  ] as const) {
    const refused = await webhooks.api<ErrorBody>('POST', '/webhooks', body);
    assert.equal(refused.status, 422, JSON.stringify(body));
    assert.equal(refused.body.error.fields?.[0]?.field, field);
  }
  const made = await hook(url, [name]);
  assert.deepEqual([made.events, made.automations], [[], [id]]);
  const plain = await webhooks.create(url, ['never']);
  assert.equal('automations' in plain, false);
  const change = (hooked: string, body: unknown) =>
    webhooks.api<Hosting & ErrorBody>('PATCH', `/webhooks/${hooked}`, body);
  assert.equal((await change(made.id, { events: ['*'] })).body.error.fields?.[0]?.field, 'events');
  assert.equal((await change(plain.id, { automations: [id] })).body.error.fields?.[0]?.field, 'automations');
  const second = await program();
  assert.deepEqual((await change(made.id, { automations: [id, second.id] })).body.automations, [id, second.id]);
  // A worker may execute the runs, too: whoever claims a run has it.
  await webhooks.api('POST', `/webhooks/${made.id}/pause`);
  await client.invoke(second.id);
  assert.equal((await new ProgramWorker(client).take(second.id)).claimed.sequence, 1);
  for (const one of [made, plain]) await webhooks.api('DELETE', `/webhooks/${one.id}`);
});

test('a function takes only messages that its webhook signed', async () => {
  const handle = serve([], { secret: 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' });
  const send = (init: RequestInit) => handle(new Request('http://function.example/', init));
  assert.equal((await send({ method: 'GET' })).status, 405);
  assert.equal((await send({ method: 'POST', body: '{}' })).status, 401);
});

// The last test of this file: functions refuse messages of a clock so far ahead.
test('a webhook without progress for three days is paused, and resuming it wakes its runs immediately', async () => {
  const { id, offers, webhook } = await listen('/stuck');
  await client.invoke(id);
  await offers(1);
  await pass(31);
  await offers(2);
  const { failing_since: since, status } = await webhooks.get(webhook.id);
  assert.ok(since !== undefined);
  assert.equal(status, 'active');
  await pass(3 * 24 * 3_600);
  await until(async () => (await webhooks.get(webhook.id)).status === 'paused');
  assert.equal((await webhooks.get(webhook.id)).paused_reason, `No run was continued since ${since}.`);
  await pass(7_200);
  await until(async () => (await openJobs('wake%')) === 0);
  assert.equal((await offers(2)).length, 2, 'a paused webhook wakes nothing');
  const resumed = await webhooks.api<TestWebhook>('POST', `/webhooks/${webhook.id}/resume`);
  assert.deepEqual([resumed.body.status, resumed.body.failing_since], ['active', undefined]);
  const [, , third] = await offers(3);
  const end = { after_sequence: 1, entries: [{ type: 'run_completed', payload: 'at last' }] };
  assert.equal((await claimed(third?.claim ?? '', 'entries', end)).status, 200);
  assert.equal((await client.run(third?.run ?? '')).result, 'at last');
});
