import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { parseAllowList } from '../../../src/content/fetch/allow-list.ts';
import { createSystemResolver } from '../../../src/content/fetch/resolver.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { type CallOrigin, originOfApp } from '../../../src/llm/origin.ts';
import { createLlm } from '../../../src/llm/service.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { startLanguageModel } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { isSigned, WebhookReceiver } from '../../support/webhook-receiver.ts';
import { WebhooksClient } from '../../support/webhooks.ts';

/* Budgets for language models, and usage. */

const model = await startLanguageModel();
const server = await startTestServer({
  env: { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'house', QUARRY_FETCH_ALLOW: '127.0.0.1' },
  logLevel: 'fatal',
});
after(async () => {
  await server.close();
  await model.close();
});
const { api, services } = server;
beforeEach(() => {
  model.requests.length = 0;
  model.script = () => ({ text: 'Hello.', usage: [60, 40] });
});

type Budget = { id: string };
type Uses = { data: { subject_id: string | null; tokens: number; cost: number; resets_at: string | null }[] };
type App = Awaited<ReturnType<typeof server.provision.app>>;

async function createBudget({ secretKey: key }: App, body: object): Promise<Budget> {
  const made = await api<Budget>('POST', '/api/v1/model_budgets', { key, body });
  assert.equal(made.status, 201, made.text);
  return made.body;
}
async function usesOf({ secretKey: key }: App, { id }: Budget) {
  return (await api<Uses>('GET', `/api/v1/model_budgets/${id}/uses`, { key })).body.data;
}
async function createPriced({ secretKey: key }: App, name = 'priced'): Promise<string> {
  const prices = { input: 1_000_000, output: 10_000_000 };
  const body = { name, provider: 'openai', model: 'm', url: model.url, prices };
  assert.equal((await api('POST', '/api/v1/models', { key, body })).status, 201);
  return name;
}
const generate = (app: App, more: Record<string, unknown> = {}) =>
  new AutomationsClient(server, app).runGraph(
    graphOf({ id: 'g', kind: 'generate', messages: [{ role: 'user', content: 'Hi.' }], tokens: 100, ...more }),
    {},
  );

/** The language model as a domain calls it, for what no route can do concurrently. */
const llm = createLlm({
  ...{ db: services.db, secrets: services.secrets, clock: services.clock, log: services.log },
  config: services.config,
  slots: services.process.llmSlots,
  vectorSlots: services.process.vectorSlots,
  settlements: services.settlements,
  resolve: createSystemResolver(),
  allow: parseAllowList(['127.0.0.1']),
  checkSchema: async () => [],
  observe: () => {},
  emitReached: async () => {},
});
const unlimited = { reserve: async () => ({ settle: async () => {} }) };
const ask = (origin: CallOrigin, name?: string) =>
  llm.generate(
    { messages: [{ role: 'user', content: 'Hi.' }], tokens: 100, ...(name === undefined ? {} : { model: name }) },
    { lane: origin.appId, budget: unlimited, origin, signal: AbortSignal.timeout(60_000) },
  );
const uuidOf = (app: App) => parseId('app', app.app.id) ?? '';

test('a call is reserved and settled, and beyond the budget it is 429 with the time when that resets', async () => {
  const app = await server.provision.app();
  const budget = await createBudget(app, { subject: 'app', period: 'day', tokens: 250 });
  assert.equal((await generate(app)).status, 'completed');
  const [use] = await usesOf(app, budget);
  assert.deepEqual([use?.tokens, use?.subject_id], [100, null]);
  assert.match(use?.resets_at ?? '', /T00:00:00.000Z$/);
  assert.equal((await generate(app)).status, 'completed');
  const refused = await generate(app);
  assert.deepEqual(
    [refused.status, refused.error?.code, model.requests.length],
    ['failed', 'token_budget_exceeded', 2],
  );
  assert.match(refused.error?.message ?? '', /resets at \d{4}-/);
  await assert.rejects(ask(originOfApp(uuidOf(app))), ({ status, headers }: { status: number; headers: object }) => {
    assert.equal(status, 429);
    return 'retry-after' in headers;
  });
  assert.equal((await usesOf(app, budget))[0]?.tokens, 200, 'A refused call leaves nothing reserved.');
});

test('a budget that is deleted while a call reserves does not fail the call', async () => {
  const app = await server.provision.app();
  const budget = await createBudget(app, { subject: 'app', period: 'day', tokens: 250 });
  assert.equal((await generate(app)).status, 'completed');
  const waiting = async () =>
    (
      await server.db`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
          and query like '%insert into model_budget_uses%'`
    ).count;
  let call: ReturnType<typeof ask> | undefined;
  await server.db.begin(async (tx) => {
    await tx`delete from model_budgets where id = ${parseId('modelBudget', budget.id) ?? ''}`;
    call = ask(originOfApp(uuidOf(app)));
    await until(async () => (await waiting()) > 0);
  });
  assert.ok(await call);
  assert.equal(model.requests.length, 2);
});

test('64 concurrent callers together never exceed a budget, and use all of it', async () => {
  const app = await server.provision.app();
  // One call reserves 118 tokens and uses 100.
  const budget = await createBudget(app, { subject: 'app', period: 'month', tokens: 2_000 });
  let most = 0;
  let active = 0;
  model.script = () => ({
    respond(response) {
      active += 1;
      most = Math.max(most, active);
      setTimeout(() => {
        active -= 1;
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(
          `data: ${JSON.stringify({ choices: [{ delta: { content: 'Hi' }, finish_reason: 'stop' }], usage: { prompt_tokens: 60, completion_tokens: 40 } })}\n\ndata: [DONE]\n\n`,
        );
      }, 20);
    },
  });
  const outcomes = await Promise.allSettled(Array.from({ length: 64 }, () => ask(originOfApp(uuidOf(app)))));
  const done = outcomes.filter(({ status }) => status === 'fulfilled').length;
  const [use] = await usesOf(app, budget);
  assert.equal(use?.tokens, done * 100);
  assert.ok(done >= 16 && done <= 20, `${done} calls were made`);
  assert.ok(most > 1, 'The calls were concurrent.');
});

test('what a killed process has reserved still counts', async () => {
  const app = await server.provision.app();
  const budget = await createBudget(app, { subject: 'app', period: 'day', tokens: 200 });
  model.script = () => ({ respond: () => {} });
  const controller = new AbortController();
  const hanging = llm.generate(
    { messages: [{ role: 'user', content: 'Hi.' }], tokens: 100 },
    { lane: uuidOf(app), budget: unlimited, origin: originOfApp(uuidOf(app)), signal: controller.signal },
  );
  while (model.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
  // Nothing of a killed process runs any more, so what the database has at this moment stays.
  assert.equal((await usesOf(app, budget))[0]?.tokens, 118);
  await assert.rejects(ask(originOfApp(uuidOf(app))), { code: 'token_budget_exceeded' });
  controller.abort();
  await assert.rejects(hanging);
});

test('money is counted in millionths at the price of the call, and a model without a price is refused', async () => {
  const app = await server.provision.app();
  const name = await createPriced(app);
  const budget = await createBudget(app, { subject: 'app', period: 'day', cost: 1_500 });
  const unpriced = await generate(app);
  assert.deepEqual([unpriced.status, unpriced.error?.code, model.requests.length], ['failed', 'invalid_parameters', 0]);
  assert.equal((await generate(app, { model: name })).status, 'completed');
  // 60 tokens at 1 and 40 at 10 millionths.
  assert.equal((await usesOf(app, budget))[0]?.cost, 460);
  const listed = await api<{ data: { id: string }[] }>('GET', '/api/v1/models', { key: app.secretKey });
  await api('PATCH', `/api/v1/models/${listed.body.data[0]?.id}`, {
    key: app.secretKey,
    body: { prices: { input: 1, output: 1 } },
  });
  const calls = await api<{ data: { cost: number; prices: object }[] }>('GET', '/api/v1/model_calls', {
    key: app.secretKey,
  });
  assert.deepEqual(
    [calls.body.data[0]?.cost, calls.body.data[0]?.prices],
    [460, { input: 1_000_000, output: 10_000_000 }],
  );
});

test('under a budget in money an alias skips models without a price', async () => {
  const app = await server.provision.app();
  const name = await createPriced(app);
  const post = (path: string, body: object) => api('POST', path, { key: app.secretKey, body });
  assert.equal(
    (await post('/api/v1/models', { name: 'free', provider: 'openai', model: 'f', url: model.url })).status,
    201,
  );
  assert.equal((await post('/api/v1/model_aliases', { name: 'best', models: ['free', name] })).status, 201);
  await createBudget(app, { subject: 'app', period: 'day', cost: 1_000_000 });
  const run = await generate(app, { model: 'best' });
  assert.equal((run.result as { model_name: string }).model_name, name, JSON.stringify(run.error));
});

test('each user, agent, automation and run has its own share of a budget without an id', async () => {
  const app = await server.provision.app();
  const base = originOfApp(uuidOf(app));
  const [one, other] = ['00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002'];
  const members = { user: 'userId', agent: 'agentId', automation: 'automationId', run: 'runId' } as const;
  for (const [subject, member] of Object.entries(members)) {
    const budget = await createBudget(app, { subject, period: 'total', tokens: 130 });
    await ask({ ...base, [member]: one });
    await assert.rejects(ask({ ...base, [member]: one }), { code: 'token_budget_exceeded' }, subject);
    await ask({ ...base, [member]: other });
    await ask(base);
    assert.deepEqual(
      (await usesOf(app, budget)).map(({ tokens, resets_at }) => [tokens, resets_at]),
      [
        [100, null],
        [100, null],
      ],
    );
  }
});

test('a budget of the app counts its sandboxes, one of a sandbox only that one, and a sandbox sets neither', async () => {
  const app = await server.provision.app();
  const sandbox = await server.provision.sandbox(app);
  const all = await createBudget(app, { subject: 'app', period: 'day', tokens: 10_000 });
  const each = await createBudget(app, { subject: 'sandbox', period: 'day', tokens: 130 });
  const origin = { ...originOfApp(uuidOf(app)), sandboxId: parseId('sandbox', sandbox.sandbox.id) ?? '' };
  await ask(origin);
  await assert.rejects(ask(origin), { code: 'token_budget_exceeded' });
  await ask(originOfApp(uuidOf(app)));
  assert.equal((await usesOf(app, all))[0]?.tokens, 200);
  assert.deepEqual(
    (await usesOf(app, each)).map(({ subject_id, tokens }) => [subject_id, tokens]),
    [[sandbox.sandbox.id, 100]],
  );
  const body = { subject: 'app', period: 'day', tokens: 1 };
  assert.equal((await api('POST', '/api/v1/model_budgets', { key: sandbox.secretKey, body })).status, 422);
});

test('a soft limit and a hard one each emit one event in a period', async () => {
  const app = await server.provision.app();
  const key = app.secretKey;
  const heard = { name: 'Heard', type: 'trigger', trigger: 'model_budget.reached' };
  const made = await api<{ id: string }>('POST', '/api/v1/automations', {
    key,
    body: { ...heard, workflow: graphOf({ id: 'end', kind: 'complete', result: '{{$.payload}}' }) },
  });
  assert.equal(made.status, 201, made.text);
  assert.equal((await api('POST', `/api/v1/automations/${made.body.id}/activate`, { key, body: {} })).status, 200);
  await createBudget(app, { subject: 'app', period: 'day', tokens: 250, soft_tokens: 90 });
  for (const status of ['completed', 'completed', 'failed', 'failed'])
    assert.equal((await generate(app)).status, status);
  const events = await services.db<{ payload: { level: string; tokens: number } }[]>`
    select payload from events where app_id = ${uuidOf(app)} and name = 'model_budget.reached' order by id`;
  assert.deepEqual(
    events.map(({ payload }) => [payload.level, payload.tokens]),
    [
      ['soft', 100],
      ['hard', 200],
    ],
  );
});

test('a webhook hears that a budget reached its soft limit, with the time when it resets', async () => {
  const app = await server.provision.app();
  const receiver = await WebhookReceiver.start();
  try {
    const budget = await createBudget(app, { subject: 'app', period: 'day', tokens: 1_000, soft_tokens: 50 });
    const webhooks = new WebhooksClient(server, app.secretKey);
    const { secret } = await webhooks.create(`${receiver.origin}/budgets`, ['model_budget.reached']);
    assert.equal((await generate(app)).status, 'completed');
    const [message] = await receiver.waitFor('/budgets', 1);
    assert.ok(message && isSigned(message, secret));
    const { resets_at, ...data } = message.event.data;
    assert.deepEqual(data, {
      ...{ budget: budget.id, level: 'soft', subject: 'app', subject_id: null, period: 'day' },
      ...{ tokens: 100, cost: 0 },
    });
    assert.equal(resets_at, (await usesOf(app, budget))[0]?.resets_at);
  } finally {
    await receiver.close();
  }
});

test('the budget of the next day is whole', async () => {
  const app = await server.provision.app();
  await createBudget(app, { subject: 'app', period: 'day', tokens: 130 });
  await ask(originOfApp(uuidOf(app)));
  await assert.rejects(ask(originOfApp(uuidOf(app))), { code: 'token_budget_exceeded' });
  await services.db`update model_budget_uses set period_start = period_start - 1 where app_id = ${uuidOf(app)}`;
  await ask(originOfApp(uuidOf(app)));
});

test('a budget names a limit and an id of the right kind, and another app does not see it', async () => {
  const app = await server.provision.app();
  const post = (body: object) =>
    api<{ error: { fields: { field: string }[] } }>('POST', '/api/v1/model_budgets', { key: app.secretKey, body });
  assert.equal((await post({ subject: 'user', period: 'day' })).status, 422);
  const wrong = await post({ subject: 'user', subject_id: 'agt_1', period: 'day', tokens: 1 });
  assert.deepEqual([wrong.status, wrong.body.error.fields[0]?.field], [422, 'subject_id']);
  assert.equal((await post({ subject: 'app', subject_id: 'usr_1', period: 'day', tokens: 1 })).status, 422);
  const budget = await createBudget(app, { subject: 'user', period: 'day', tokens: 1 });
  const stranger = await server.provision.app();
  for (const path of ['', '/uses'])
    assert.equal(
      (await api('GET', `/api/v1/model_budgets/${budget.id}${path}`, { key: stranger.secretKey })).status,
      404,
    );
  const path = `/api/v1/model_budgets/${budget.id}`;
  assert.equal((await api('PATCH', path, { key: app.secretKey, body: { tokens: null } })).status, 422);
  assert.equal((await api('DELETE', path, { key: app.secretKey })).status, 204);
});

test('usage is listed by what calls were for, and as a table whose fields are not formulas', async () => {
  const app = await server.provision.app();
  const name = await createPriced(app);
  const client = new AutomationsClient(server, app);
  const { id } = await client.createAutomation({
    workflow: graphOf({ id: 'g', kind: 'generate', model: name, messages: [{ role: 'user', content: 'Hi.' }] }),
  });
  for (const payload of [{}, {}]) await client.waitForEnd((await client.invoke(id, { payload })).id);
  const get = (path: string) => api<{ data: Record<string, unknown>[] }>('GET', path, { key: app.secretKey });
  const expected = { calls: 2, prompt_tokens: 120, completion_tokens: 80, cost: 920 };
  for (const [by, group] of [
    ['automation', id],
    ['model', name],
    ['user', null],
    ['sandbox', null],
  ] as const)
    assert.deepEqual((await get(`/api/v1/usage/models?by=${by}`)).body.data, [{ group, ...expected }], by);
  assert.equal((await get('/api/v1/usage/models?by=run')).body.data.length, 2);
  assert.deepEqual((await get('/api/v1/usage/models?until=2020-01-01T00:00:00Z')).body.data, []);
  await services.db`update model_calls set model = '=HYPERLINK("x")' where app_id = ${uuidOf(app)}`;
  const table = await get('/api/v1/usage/models/csv?by=model');
  assert.equal(table.text, `model,calls,prompt_tokens,completion_tokens,cost\r\n"'=HYPERLINK(""x"")",2,120,80,920\r\n`);
});
