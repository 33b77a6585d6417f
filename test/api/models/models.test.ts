import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, beforeEach, test } from 'node:test';
import { sweepModels } from '../../../src/models/sweep.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { chatEvent, startLanguageModel } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* Models that apps bring, aliases, and the records of calls. */

const operatorModel = await startLanguageModel();
const first = await startLanguageModel();
const second = await startLanguageModel();
const server = await startTestServer({
  env: { QUARRY_LLM_URL: operatorModel.url, QUARRY_LLM_MODEL: 'house', QUARRY_FETCH_ALLOW: '127.0.0.1' },
  logLevel: 'fatal',
});
after(async () => {
  await server.close();
  await Promise.all([operatorModel, first, second].map((each) => each.close()));
});
const { api } = server;
const app = await server.provision.app();
const client = new AutomationsClient(server, app);
beforeEach(() => {
  for (const each of [operatorModel, first, second]) {
    each.requests.length = 0;
    each.script = () => 'Hello.';
  }
});

type Model = { id: string; name: string; has_key: boolean; url: string };
type Call = Record<string, unknown> & { model: string; status: string };
let names = 0;

async function createModel(more: Record<string, unknown> = {}, key = app.secretKey): Promise<Model> {
  const body = { name: `model-${++names}`, provider: 'openai', model: 'gpt', url: first.url, ...more };
  const made = await api<Model>('POST', '/api/v1/models', { key, body });
  assert.equal(made.status, 201, made.text);
  return made.body;
}

async function createAlias(models: string[]): Promise<string> {
  const name = `alias-${++names}`;
  const made = await api('POST', '/api/v1/model_aliases', { key: app.secretKey, body: { name, models } });
  assert.equal(made.status, 201, made.text);
  return name;
}

const generate = (model: string | undefined, more: Record<string, unknown> = {}) =>
  client.runGraph(
    graphOf({
      ...{ id: 'g', kind: 'generate', messages: [{ role: 'user', content: 'Hi.' }], tokens: 100 },
      ...(model === undefined ? {} : { model }),
      ...more,
    }),
    {},
  );

async function callsOf(run: { id: string }): Promise<Call[]> {
  const listed = await api<{ data: Call[] }>('GET', `/api/v1/model_calls?run=${run.id}`, { key: app.secretKey });
  assert.equal(listed.status, 200, listed.text);
  return listed.body.data.reverse();
}

test('a node names a model of its app, which is called with its own key', async () => {
  const { name } = await createModel({ key: 'own-key', prices: { input: 2_000_000, output: 10_000_000 } });
  first.script = () => ({ text: 'From the first.', usage: [1_000, 50] });
  const run = await generate(name);
  assert.equal(run.status, 'completed', JSON.stringify(run.error));
  const { text, model, model_name } = run.result as Record<string, unknown>;
  assert.deepEqual([text, model, model_name], ['From the first.', 'gpt', name]);
  assert.equal(first.requests[0]?.authorization, 'Bearer own-key');
  const [call] = await callsOf(run);
  assert.deepEqual(
    [
      call?.model,
      call?.status,
      call?.prompt_tokens,
      call?.completion_tokens,
      call?.cost,
      call?.finish_reason,
      call?.node,
    ],
    [name, 'succeeded', 1_000, 50, 2_500, 'stop', 'g'],
  );
  assert.ok(typeof call?.first_token_ms === 'number' && call.prompt === undefined);
});

test('without a name the operator’s model is called, whatever models the app has', async () => {
  await createModel({ name: 'default' });
  const run = await generate(undefined);
  assert.deepEqual([run.status, operatorModel.requests.length, first.requests.length], ['completed', 1, 0]);
});

test('a key is never returned, and a URL of another host removes it', async () => {
  const made = await createModel({ key: 'secret-key-1', name: 'moving' });
  assert.equal(made.has_key, true);
  const path = `/api/v1/models/${made.id}`;
  const patch = async (body: object) => (await api<Model>('PATCH', path, { key: app.secretKey, body })).body;
  assert.equal((await patch({ url: `${first.url}/other` })).has_key, true);
  assert.equal((await patch({ url: second.url })).has_key, false);
  const run = await generate('moving');
  assert.deepEqual([run.status, run.error?.code, second.requests.length], ['failed', 'invalid_parameters', 0]);
  assert.equal((await patch({ key: 'secret-key-2' })).has_key, true);
  assert.equal((await generate('moving')).status, 'completed');
  assert.equal(second.requests[0]?.authorization, 'Bearer secret-key-2');
  const shown = await api('GET', path, { key: app.secretKey });
  assert.ok(!shown.text.includes('secret-key'));
});

test('a model must be on the public internet unless the operator allows its address', async () => {
  for (const url of ['http://10.0.0.8/v1', 'http://169.254.169.254/v1', 'ftp://models.example.com/v1']) {
    const body = { name: 'inside', provider: 'openai', model: 'm', url };
    const made = await api<{ error: { fields: { field: string }[] } }>('POST', '/api/v1/models', {
      key: app.secretKey,
      body,
    });
    assert.deepEqual([made.status, made.body.error.fields[0]?.field], [422, 'url'], url);
  }
});

test('a key that no header can carry is refused, and a server without the model says what to check', async () => {
  const { id, name } = await createModel({ key: 'good' });
  for (const key of ['sk-…', 'sk 1', 'sk-1\n']) {
    const body = { name: 'odd', provider: 'openai', model: 'm', url: first.url, key };
    for (const [method, path, sent] of [
      ['POST', '/api/v1/models', body],
      ['PATCH', `/api/v1/models/${id}`, { key }],
    ] as const) {
      const refused = await api<{ error: { fields: { field: string }[] } }>(method, path, {
        key: app.secretKey,
        body: sent,
      });
      assert.deepEqual([refused.status, refused.body.error.fields[0]?.field], [422, 'key'], refused.text);
    }
  }
  first.script = () => ({ status: 404 });
  assert.match((await generate(name)).error?.message ?? '', /404: check the URL, .* and the name of the model/);
});

test('a name is unique among models and aliases, and an alias lists models only', async () => {
  const { name } = await createModel();
  const alias = await createAlias([name]);
  const post = (path: string, body: object) =>
    api<{ error: { code: string; fields: { field: string }[] } }>('POST', path, { key: app.secretKey, body });
  const model = { provider: 'openai', model: 'm', url: first.url };
  assert.equal((await post('/api/v1/models', { ...model, name: alias })).body.error.code, 'already_exists');
  assert.equal((await post('/api/v1/model_aliases', { name, models: [name] })).body.error.code, 'already_exists');
  const nested = await post('/api/v1/model_aliases', { name: 'nested', models: [alias] });
  assert.deepEqual([nested.status, nested.body.error.fields[0]?.field], [422, 'models.0']);
  assert.equal((await post('/api/v1/model_aliases', { name: 'missing', models: ['nothing'] })).status, 422);
});

test('an alias tries its next model when one is busy or fails, and the record names each', async () => {
  const [one, other] = [await createModel(), await createModel({ url: second.url })];
  const alias = await createAlias([one.name, other.name]);
  for (const status of [429, 500, 503]) {
    first.requests.length = 0;
    first.script = () => ({ status });
    const run = await generate(alias);
    assert.equal(run.status, 'completed', JSON.stringify(run.error));
    assert.equal((run.result as { model_name: string }).model_name, other.name);
    assert.equal(first.requests.length, 1, 'A model that is not the last is asked once.');
    assert.deepEqual(
      (await callsOf(run)).map(({ model, alias: by, status: ended }) => [model, by, ended]),
      [
        [one.name, alias, 'failed'],
        [other.name, alias, 'succeeded'],
      ],
    );
  }
});

test('an alias tries its next model when one is silent for too long', async () => {
  const one = await createModel({ timeout_seconds: 3 });
  const other = await createModel({ url: second.url });
  const alias = await createAlias([one.name, other.name]);
  first.script = () => ({
    respond: (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }),
  });
  const run = await generate(alias);
  assert.equal(run.status, 'completed', JSON.stringify(run.error));
  assert.deepEqual(
    (await callsOf(run)).map(({ error_code }) => error_code),
    ['llm_timeout', undefined],
  );
});

test('an alias skips models whose context is too small and those without their key', async () => {
  const small = await createModel({ context_tokens: 256 });
  const keyless = await createModel({ provider: 'anthropic', url: first.url });
  const other = await createModel({ url: second.url });
  const alias = await createAlias([small.name, keyless.name, other.name]);
  const run = await generate(alias, { messages: [{ role: 'user', content: 'word '.repeat(1_000) }] });
  assert.equal(run.status, 'completed', JSON.stringify(run.error));
  assert.deepEqual([first.requests.length, second.requests.length], [0, 1]);
});

test('a refused key, a wrong request and a failure after the first text are errors, not a reason for the next model', async () => {
  const [one, other] = [await createModel({ key: 'old' }), await createModel({ url: second.url })];
  const alias = await createAlias([one.name, other.name]);
  const chunk = `data: ${JSON.stringify({ choices: [{ delta: { content: 'Half' } }] })}\n\n`;
  const cases = [
    [{ status: 401 }, 'llm_failed'],
    [{ status: 400 }, 'llm_failed'],
    [{ raw: [chunk], breaks: true }, 'llm_bad_response'],
  ] as const;
  for (const [script, code] of cases) {
    first.script = () => script as never;
    const run = await generate(alias);
    assert.deepEqual([run.status, run.error?.code, second.requests.length], ['failed', code, 0]);
  }
});

test('an unknown model, and a model of another app, is 422 on the member', async () => {
  const stranger = await server.provision.app();
  const { name } = await createModel({ name: 'theirs' }, stranger.secretKey);
  const run = await generate(name);
  assert.deepEqual([run.status, run.error?.code], ['failed', 'invalid_parameters']);
  assert.match(run.error?.message ?? '', /names no model/);
  assert.equal(first.requests.length, 0);
});

test('a server that refuses members and then fails is asked a bounded number of times', async () => {
  const { name } = await createModel();
  const refusals = ['use max_completion_tokens', 'unknown stream_options', 'response_format is unknown'];
  first.script = (_request, number) => {
    const body = refusals[number - 1];
    if (number > 20) return 'Too late.';
    return body === undefined ? { status: 500, headers: { 'retry-after': '0.01' } } : { status: 400, body };
  };
  const run = await generate(name, { schema: { type: 'object' } });
  assert.deepEqual([run.status, run.error?.code, first.requests.length], ['failed', 'llm_failed', 6]);
});

test('a repeatable request holds no transaction while a model is silent, and calls it once', async () => {
  const { id } = await createModel();
  const asked = Promise.withResolvers<ServerResponse>();
  first.script = () => ({ respond: asked.resolve });
  const headers = { 'idempotency-key': 'try-1' };
  const send = () => api<{ ok: boolean }>('POST', `/api/v1/models/${id}/test`, { key: app.secretKey, headers });
  const tried = send();
  const response = await asked.promise;
  await until(async () => {
    const writers = await server.db`
      select from pg_stat_activity
      where datname = current_database() and backend_xid is not null and state like 'idle in transaction%'`;
    return writers.count === 0;
  });
  assert.equal(response.destroyed, false, 'the model is still asked');
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(`${chatEvent('yes', { finish_reason: 'stop' })}data: [DONE]\n\n`);
  const { status, body, text } = await tried;
  assert.deepEqual([status, body.ok], [200, true], text);
  const again = await send();
  assert.deepEqual([again.text, again.headers.get('idempotency-replayed')], [text, 'true']);
  assert.equal(first.requests.length, 1);
});

test('a server that ends its text for a reason that cannot be stored is called once', async () => {
  const { name } = await createModel();
  first.script = () => ({ text: 'Hello.', finish: `odd\0${'x'.repeat(10_000)}` });
  const run = await generate(name);
  assert.equal(run.status, 'completed', JSON.stringify(run).slice(0, 1_000));
  const [call] = await callsOf(run);
  assert.deepEqual([first.requests.length, call?.status], [1, 'succeeded']);
  assert.match(String(call?.finish_reason), /^odd\ufffdx{96}$/);
});

test('the models that requests may name are listed, without URLs of the operator', async () => {
  const { name } = await createModel({ provider: 'google', url: undefined });
  const alias = await createAlias([name]);
  const listed = await api<{ data: Record<string, unknown>[] }>('GET', '/api/v1/available_models', {
    key: app.secretKey,
  });
  assert.equal(listed.status, 200, listed.text);
  const find = (wanted: string) => listed.body.data.find((each) => each.name === wanted);
  assert.deepEqual([find(name)?.usable, find(alias)?.usable, find(alias)?.kind], [false, false, 'alias']);
  assert.ok(!listed.text.includes(operatorModel.url));
});

test('calls are listed by what they were for, and an id of the wrong kind is 422', async () => {
  const { name } = await createModel();
  const run = await generate(name);
  const count = async (query: string) =>
    (await api<{ total_entries: number }>('GET', `/api/v1/model_calls?${query}`, { key: app.secretKey })).body
      .total_entries;
  assert.equal(await count(`run=${run.id}&status=succeeded`), 1);
  assert.equal(await count(`run=${run.id}&status=failed`), 0);
  assert.equal(await count(`model=${name}`), 1);
  assert.equal(await count(`model=${name}&until=2020-01-01T00:00:00Z`), 0);
  assert.equal((await api('GET', '/api/v1/model_calls?run=usr_1', { key: app.secretKey })).status, 422);
  const stranger = await server.provision.app();
  const [call] = await callsOf(run);
  assert.equal((await api('GET', `/api/v1/model_calls/${call?.id}`, { key: stranger.secretKey })).status, 404);
});

test('records are deleted after their days, and a call of a killed process counts what it reserved', async () => {
  const { db, clock } = server.services;
  const { name } = await createModel();
  const run = await generate(name);
  const { name: other } = await createModel();
  const hanging = await generate(other);
  await db`update model_calls set status = 'running', prompt_tokens = null where model = ${other}`;
  const later = { now: () => new Date(clock.now().getTime() + 7 * 3_600_000) };
  await sweepModels({ db, clock: later as never, daysKept: 30 });
  const [abandoned] = await callsOf(hanging);
  assert.deepEqual([abandoned?.status, abandoned?.prompt_tokens], ['abandoned', abandoned?.reserved_tokens]);
  assert.equal((await callsOf(run)).length, 1);
  const muchLater = { now: () => new Date(clock.now().getTime() + 31 * 24 * 3_600_000) };
  await sweepModels({ db, clock: muchLater as never, daysKept: 30 });
  assert.equal((await callsOf(run)).length, 0);
});

test('calls are counted for /metrics', async () => {
  const { name } = await createModel();
  await generate(name);
  const { text } = await api('GET', '/metrics');
  assert.match(text, /quarry_model_call_duration_seconds_count\{[^}]*provider="openai"[^}]*\} [1-9]/);
  assert.match(text, /quarry_model_tokens_total\{[^}]*kind="prompt"[^}]*\} [1-9]/);
});

test('a model is tried with one small call, whose failures are named', async () => {
  const tryModel = async ({ id }: Model) => {
    const tried = await api<Record<string, unknown>>('POST', `/api/v1/models/${id}/test`, { key: app.secretKey });
    assert.equal(tried.status, 200, tried.text);
    return tried.body;
  };
  const works = await createModel();
  const tried = await tryModel(works);
  assert.equal(tried.ok, true);
  assert.ok(Number(tried.first_token_ms) <= Number(tried.latency_ms));
  const calls = await api<{ data: Call[] }>('GET', `/api/v1/model_calls?model=${works.name}`, { key: app.secretKey });
  assert.deepEqual(
    calls.body.data.map(({ status }) => status),
    ['succeeded'],
  );
  for (const [status, problem] of [
    [401, 'key_refused'],
    [404, 'not_found'],
    [400, 'failed'],
  ] as const) {
    first.script = () => ({ status });
    assert.equal((await tryModel(await createModel())).problem, problem);
  }
  const keyless = await createModel({ provider: 'google', url: undefined });
  assert.equal((await tryModel(keyless)).problem, 'no_key');
  const nobody = await startLanguageModel();
  await nobody.close();
  for (const more of [{}, { kind: 'embedding', dimensions: 8 }, { kind: 'rerank' }])
    assert.equal((await tryModel(await createModel({ url: nobody.url, ...more }))).problem, 'unreachable');
});
