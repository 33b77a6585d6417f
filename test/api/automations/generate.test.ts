import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { after, beforeEach, test } from 'node:test';
import { deleteOldOutput } from '../../../src/automations/runs/generation-store.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { EventStream } from '../../support/event-stream.ts';
import { chatEvent, startLanguageModel } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';

/* The node kind `generate`, against a server that speaks the protocol of chat completions. */

const model = await startLanguageModel();
const runTokens = 20_000;
const settings = {
  QUARRY_LLM_URL: model.url,
  QUARRY_LLM_MODEL: 'small',
  QUARRY_LLM_KEY: 'operator-key',
  QUARRY_LLM_RUN_TOKENS: String(runTokens),
  QUARRY_JOB_WORKERS: '1',
};
const server = await startTestServer({ env: settings, logLevel: 'fatal' });
after(async () => {
  await server.close();
  await model.close();
});
const world = await server.provision.world();
const client = new AutomationsClient(server, world.app);
beforeEach(() => {
  model.requests.length = 0;
  model.script = () => 'Hello.';
});

type Usage = { total_tokens: number; requests: number; estimated?: true };
type Output = { text: string; data?: unknown; model: string; finish_reason: string; usage: Usage };

const ask = (members: Record<string, unknown> = {}) => ({
  id: 'g',
  kind: 'generate',
  messages: [{ role: 'user', content: 'Greet {{$.name}}.' }],
  ...members,
});
const runOnce = (members: Record<string, unknown> = {}, payload = { name: 'Ada' }) =>
  client.runGraph(graphOf(ask(members)), payload);
const tokensUsed = async (key: string) =>
  (await server.api<{ tokens: { used: number; limit: number | null } }>('GET', '/api/v1/usage', { key })).body.tokens;
const citySchema = {
  type: 'object',
  properties: { city: { type: 'string' }, people: { type: 'integer' } },
  required: ['city', 'people'],
  additionalProperties: false,
};

test('a generate node sends its messages and settings, and its output and journal have the text and the usage', async () => {
  const before = (await tokensUsed(world.app.secretKey)).used;
  model.script = () => ({ text: 'Good day, Ada.', usage: [21, 7] });
  const run = await runOnce({ temperature: 0.2, tokens: 300 });
  assert.equal(run.status, 'completed', JSON.stringify(run.error));
  assert.deepEqual(run.result, {
    ...{ text: 'Good day, Ada.', model: 'small', finish_reason: 'stop' },
    usage: { prompt_tokens: 21, completion_tokens: 7, total_tokens: 28, requests: 1 },
  });
  const [request] = model.requests;
  assert.deepEqual(
    [request?.model, request?.messages, request?.max_tokens, request?.temperature, request?.stream],
    ['small', [{ role: 'user', content: 'Greet Ada.' }], 300, 0.2, true],
  );
  assert.equal(request?.authorization, 'Bearer operator-key');
  const journal = await client.journal(run.id);
  const ended = journal.find((entry) => entry.type === 'node_completed');
  assert.deepEqual(ended?.record.payload, run.result);
  assert.ok(!JSON.stringify(journal).includes('operator-key'));
  assert.equal((await tokensUsed(world.app.secretKey)).used - before, 28);
});

test('without a language model the node fails with not_implemented and names the setting, and is not retried', async () => {
  const plain = await startTestServer();
  try {
    const app = await plain.provision.app();
    const run = await new AutomationsClient(plain, app).runGraph(
      graphOf(ask({ retry: { max_attempts: 3, initial_seconds: 0 } })),
      { name: 'Ada' },
    );
    assert.deepEqual([run.status, run.error?.code], ['failed', 'not_implemented']);
    assert.match(run.error?.message ?? '', /QUARRY_LLM_URL/);
  } finally {
    await plain.close();
  }
});

test('an output with a schema is constrained by the server, and is data that validates', async () => {
  model.script = () => '{"city": "Oslo", "people": 709000}';
  const run = await runOnce({ schema: citySchema });
  assert.deepEqual((run.result as Output).data, { city: 'Oslo', people: 709_000 }, JSON.stringify(run));
  assert.deepEqual(model.requests[0]?.response_format, {
    type: 'json_schema',
    json_schema: { name: 'output', schema: citySchema },
  });
});

test('an output that does not validate is repaired, and every request counts', async () => {
  const outputs = [
    'Sure! Here you are.',
    '```json\n{"city": "Oslo", "people": "many"}\n```',
    '{"city":"Oslo","people":7}',
  ];
  model.script = (_request, number) => outputs[number - 1] ?? '';
  const run = await runOnce({ schema: citySchema });
  const { data, usage } = run.result as Output;
  assert.deepEqual(data, { city: 'Oslo', people: 7 });
  assert.deepEqual([usage.requests, usage.total_tokens], [3, 45]);
  assert.match(model.requests[2]?.messages.at(-1)?.content ?? '', /\/people must be integer/);
});

test('an output that never validates fails the node with its usage after three requests', async () => {
  model.script = () => '{"city": 1}';
  const { id } = await client.createAutomation({
    workflow: graphOf(ask({ schema: citySchema, on_error: 'note' }), {
      ...{ id: 'note', kind: 'complete', result: '{{$nodes.g.error}}' },
    }),
  });
  const ended = await client.waitForEnd((await client.invoke(id, { payload: { name: 'Ada' } })).id);
  const error = ended.result as { code: string; usage: Usage };
  assert.deepEqual([error.code, error.usage.requests, error.usage.total_tokens], ['invalid_output', 3, 45]);
  const failed = (await client.journal(ended.id)).find((entry) => entry.type === 'node_failed');
  assert.deepEqual(failed?.record.payload, error);
});

test('an invalid schema fails the node before a token is spent', async () => {
  const run = await runOnce({ schema: { type: 'nothing' } });
  assert.deepEqual([run.status, model.requests.length], ['failed', 0]);
  assert.match(run.error?.message ?? '', /schema/);
});

test('a server that accepts fewer members of a request gets it without them', async () => {
  const fresh = await startTestServer({ env: settings, logLevel: 'fatal' });
  try {
    const app = await fresh.provision.app();
    model.script = (request) => {
      if (request.max_tokens !== undefined) return { status: 400, body: '{"error":"use max_completion_tokens"}' };
      if (request.stream_options !== undefined) return { status: 422, body: '{"error":"stream_options is unknown"}' };
      if (request.response_format !== undefined) return { status: 400, body: '{"error":"response_format is unknown"}' };
      return { text: '{"city":"Oslo","people":7}', usage: null };
    };
    const run = await new AutomationsClient(fresh, app).runGraph(graphOf(ask({ schema: citySchema })), { name: 'A' });
    const { data, usage } = run.result as Output;
    assert.deepEqual(data, { city: 'Oslo', people: 7 });
    assert.equal(usage.estimated, true);
    assert.ok(usage.total_tokens > 0);
    assert.equal(model.requests.length, 4);
    assert.match(model.requests.at(-1)?.messages[0]?.content ?? '', /JSON Schema/);
  } finally {
    await fresh.close();
  }
});

test('errors and invalid responses of the server fail the node with its own code and without their text', async () => {
  const secretive = '{"error":{"message":"Incorrect API key sk-operator"}}';
  const cases: [ReturnType<typeof model.script>, string, number][] = [
    [{ status: 401, body: secretive }, 'llm_failed', 1],
    [{ status: 500, body: secretive }, 'llm_failed', 3],
    [{ raw: ['<html>Bad gateway</html>'], type: 'text/html' }, 'llm_bad_response', 1],
    [{ raw: ['data: {"choices"\n\n'] }, 'llm_bad_response', 1],
    [{ raw: ['data: [1,2]\n\n'] }, 'llm_bad_response', 1],
    [{ raw: ['data: null\n\n'] }, 'llm_bad_response', 1],
    [{ raw: [] }, 'llm_bad_response', 1],
    [{ raw: [chatEvent('Half')], breaks: true }, 'llm_bad_response', 1],
    [{ raw: [chatEvent('Half'), 'data: {"error":{"message":"sk-operator"}}\n\n'] }, 'llm_failed', 1],
    [{ raw: ['x'.repeat(5_000_000)], type: 'application/json' }, 'llm_output_too_large', 1],
    [{ respond: (response) => void response.destroy() }, 'llm_unreachable', 3],
  ];
  for (const [script, code, requests] of cases) {
    model.requests.length = 0;
    // The one wait between tries is shortened by the server itself.
    model.script = () =>
      'status' in Object(script) ? { ...Object(script), headers: { 'retry-after': '0.01' } } : script;
    const run = await client.runGraph(graphOf(ask({ tokens: 1 })), { name: 'Ada' });
    assert.deepEqual(
      [run.status, run.error?.code, model.requests.length],
      ['failed', code, requests],
      JSON.stringify(run),
    );
    assert.ok(!JSON.stringify(await client.journal(run.id)).includes('sk-operator'));
  }
});

test('a tool call is not executed, and what cannot be stored is replaced', async () => {
  const call = { tool_calls: [{ function: { name: 'kv_set', arguments: '{}' } }], content: 'a\u0000b\ud800' };
  model.script = () => ({
    raw: [
      `data: ${JSON.stringify({ choices: [{ delta: call }] })}\n\n`,
      `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: 'tool_calls' }] })}\n\n`,
    ],
  });
  const run = await runOnce();
  const { text, finish_reason } = run.result as Output;
  assert.deepEqual([run.status, text, finish_reason], ['completed', 'a\ufffdb\ufffd', 'tool_calls']);
});

test('a character that the stream divides is whole in the output and for readers, wherever the stream divides it', async () => {
  const text = '😀a🎉🎉b😀';
  for (const size of [1, 2, 3]) {
    const parts = Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size));
    model.script = () => ({ raw: [...parts.map((part) => chatEvent(part)), chatEvent('', { finish_reason: 'stop' })] });
    const run = await runOnce();
    assert.equal((run.result as Output).text, text, `in parts of ${size}`);
    assert.equal((await readOutput(run.id)).text, text);
  }
});

test('a model that ignores its limit is cut off there, and no response exceeds the budget of its app or its run', async () => {
  const app = await server.provision.app();
  await server.api('PATCH', `/protected/api/v1/developer/apps/${app.app.id}`, {
    token: app.developerToken,
    body: { quotas: { tokens: 3_000 } },
  });
  const mine = new AutomationsClient(server, app);
  const endless = () => ({
    respond(response: ServerResponse) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const write = () => {
        if (!response.closed) response.write(chatEvent('x'.repeat(10_000)), () => setImmediate(write));
      };
      write();
    },
  });
  const lies = () => ({ text: 'Short.', usage: [16, 263_041] as [number, number] });
  const thinks = () => ({
    respond(response: ServerResponse) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const event = `data: ${JSON.stringify({ choices: [{ delta: { reasoning_content: 'x'.repeat(10_000) } }] })}\n\n`;
      const write = () => {
        if (!response.closed) response.write(event, () => setImmediate(write));
      };
      write();
    },
  });
  for (const [script, finish] of [
    [endless, 'length'],
    [lies, 'stop'],
    [thinks, 'length'],
  ] as const) {
    model.script = script;
    const before = (await tokensUsed(app.secretKey)).used;
    const run = await mine.runGraph(graphOf(ask({ tokens: 500 })), { name: 'Ada' });
    const output = run.result as Output;
    assert.deepEqual([run.status, output.finish_reason], ['completed', finish], JSON.stringify(run.error));
    assert.ok(output.text.length <= 128 + 8 * 500, `${output.text.length}`);
    const { used } = await tokensUsed(app.secretKey);
    assert.ok(used - before <= 500 + 16 + 5 && used - before >= 500, `${used - before}`);
  }
});

test('a server that does not stream also works', async () => {
  const whole = {
    choices: [{ message: { content: 'Whole.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 2 },
  };
  model.script = () => ({ raw: [JSON.stringify(whole)], type: 'application/json' });
  const { text, usage } = (await runOnce()).result as Output;
  assert.deepEqual([text, usage.total_tokens], ['Whole.', 3]);
});

test('a node past its deadline is aborted, counts what it used, and may be retried', async () => {
  const closed: Promise<unknown>[] = [];
  model.script = (_request, number) =>
    number === 1
      ? {
          respond(response) {
            response.writeHead(200, { 'content-type': 'text/event-stream' }).write(chatEvent('Slow'));
            closed.push(once(response, 'close'));
          },
        }
      : 'Second.';
  const app = await server.provision.app();
  const run = await new AutomationsClient(server, app).runGraph(
    graphOf(ask({ timeout_seconds: 2, retry: { max_attempts: 2, initial_seconds: 0 } })),
    { name: 'Ada' },
  );
  assert.equal((run.result as Output).text, 'Second.', JSON.stringify(run));
  await Promise.all(closed);
  // The first attempt is estimated: 16 tokens and its 10 characters, and one token of text. The second reports 15.
  assert.equal((await tokensUsed(app.secretKey)).used, 16 + 3 + 1 + 15);
});

test('a budget that is used up fails the node without a request or a retry: of the run, and of the app', async () => {
  const app = await server.provision.app();
  const mine = new AutomationsClient(server, app);
  const retry = { max_attempts: 3, initial_seconds: 0 };
  model.script = () => ({ text: 'Much.', usage: [15_000, 0] });
  const twice = await mine.runGraph(
    graphOf(ask({ id: 'a', on_success: 'b' }), ask({ id: 'b', tokens: 6_000, retry })),
    { name: 'Ada' },
  );
  assert.deepEqual([twice.error?.code, twice.error?.node_id, model.requests.length], ['token_budget_exceeded', 'b', 1]);
  assert.match(twice.error?.message ?? '', /20000/);
  assert.equal((await tokensUsed(app.secretKey)).used, 15_000);

  const bounded = await server.api('PATCH', `/protected/api/v1/developer/apps/${app.app.id}`, {
    token: app.developerToken,
    body: { quotas: { tokens: 16_000 } },
  });
  assert.equal(bounded.status, 200, bounded.text);
  const over = await mine.runGraph(graphOf(ask({ tokens: 1_000, retry })), { name: 'Ada' });
  assert.deepEqual([over.error?.code, model.requests.length], ['token_budget_exceeded', 1]);
  assert.deepEqual(await tokensUsed(app.secretKey), {
    used: 15_000,
    limit: 16_000,
    ...resetsAt(await tokensUsed(app.secretKey)),
  });
});

function resetsAt(usage: object) {
  return { resets_at: (usage as { resets_at: string }).resets_at };
}

test('requests at the same time cannot pass the budget together', async () => {
  const app = await server.provision.app();
  await server.api('PATCH', `/protected/api/v1/developer/apps/${app.app.id}`, {
    token: app.developerToken,
    body: { quotas: { tokens: 3_000 } },
  });
  const held: ServerResponse[] = [];
  model.script = () => ({ respond: (response) => void held.push(response) });
  const mine = new AutomationsClient(server, app);
  const inner = { id: 'g', kind: 'generate', messages: [{ role: 'user', content: 'Hi.' }], tokens: 1_000 };
  const { id } = await mine.createAutomation({
    workflow: graphOf({ id: 'f', kind: 'for_each', items: '[1,2,3,4]', concurrency: 4, node: inner }),
  });
  const ended = await mine.waitForEnd((await mine.invoke(id)).id);
  assert.equal(ended.error?.code, 'token_budget_exceeded');
  assert.ok(model.requests.length <= 2, `${model.requests.length}`);
});

test('nodes that wait for the language model hold no job slot', async () => {
  const held: ServerResponse[] = [];
  let onHeld = () => {};
  model.script = () => ({
    respond(response) {
      held.push(response);
      onHeld();
    },
  });
  const { id } = await client.createAutomation({ workflow: graphOf(ask()) });
  const runs = [];
  for (let n = 0; n < 3; n++) runs.push(await client.invoke(id, { payload: { name: String(n) } }));
  await new Promise<void>((resolve) => {
    onHeld = () => held.length >= 3 && resolve();
    onHeld();
  });
  const other = await client.runGraph(graphOf({ id: 'd', kind: 'complete', result: 1 }));
  assert.equal(other.status, 'completed');
  for (const response of held)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(chatEvent('Hi.', { finish_reason: 'stop' }));
  for (const run of runs) assert.equal((await client.waitForEnd(run.id)).status, 'completed');
});

test('secrets in messages and outputs are redacted in the journal and the stream, also across the parts of a text', async () => {
  await client.call('PUT', '/secrets/TOKEN', { value: 'hunter2-hunter2' });
  model.script = () => ({ text: 'The token is hunter2-hunter2, as you know.', parts: 30 });
  const { id } = await client.createAutomation({
    workflow: graphOf(ask({ messages: [{ role: 'user', content: 'Use {{$secrets.TOKEN}}.' }] })),
  });
  const { id: run } = await client.invoke(id);
  await client.waitForEnd(run);
  assert.equal(model.requests[0]?.messages[0]?.content, 'Use hunter2-hunter2.');
  const journal = JSON.stringify(await client.journal(run));
  assert.ok(journal.includes('[redacted]') && !journal.includes('hunter2'), journal);
  const { text } = await readOutput(run);
  assert.equal(text, 'The token is [redacted], as you know.');
});

/** Every event of a run that has ended, and the text of its parts. */
async function readOutput(run: string, headers: Record<string, string> = {}) {
  const stream = await openOutput(run, headers);
  const events = [];
  for (let event = await stream.next(); event; event = await stream.next()) events.push(event);
  return { events, text: events.map(({ data }) => data.text ?? '').join('') };
}

function openOutput(run: string, headers: Record<string, string> = {}) {
  return EventStream.open(`${server.baseUrl}/api/v1/automation_runs/${run}/output_stream`, {
    'x-api-key': world.app.secretKey,
    ...headers,
  });
}

test('tokens stream while they are written, resume after the last event, and end with the run', async () => {
  const held: ServerResponse[] = [];
  const onHeld = () => {};
  model.script = () => ({
    respond(response) {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(chatEvent('One, '));
      held.push(response);
      onHeld();
    },
  });
  const { id } = await client.createAutomation({ workflow: graphOf(ask()) });
  const { id: run } = await client.invoke(id, { payload: { name: 'Ada' } });
  const stream = await openOutput(run);
  assert.deepEqual(await stream.take(), { id: 0, event: 'ready', data: { position: 0 } });
  const started = await stream.take();
  assert.deepEqual([started.event, started.data.node_id, started.data.attempt], ['generation_started', 'g', 1]);
  const first = await stream.take();
  assert.deepEqual([first.event, first.data.text], ['generation_text', 'One, ']);
  const entry = (await client.journal(run)).find(({ type }) => type === 'node_started');
  assert.equal(first.data.command_id, entry?.command_id);
  stream.close();

  assert.equal(held.length, 1);
  held[0]?.write(chatEvent('two, '));
  held[0]?.end(chatEvent('three.', { finish_reason: 'stop' }));
  const rest = await readOutput(run, { 'last-event-id': String(first.id) });
  assert.deepEqual(
    rest.events.map(({ event }) => event).filter((event) => event !== 'generation_text'),
    ['ready', 'generation_ended'],
  );
  assert.equal(rest.text, 'two, three.');
  assert.equal((await client.run(run)).status, 'completed');
  assert.equal((await readOutput(run)).text, 'One, two, three.');

  const status = await EventStream.open(`${server.baseUrl}/api/v1/automation_runs/${run}/stream`, {
    'x-api-key': world.app.secretKey,
  });
  assert.equal((await status.take()).event, 'run_update');
  assert.equal(await status.next(), undefined);
});

test('a Last-Event-ID that is not a position of the output is answered with reset', async () => {
  const run = await runOnce();
  const stream = await openOutput(run.id, { 'last-event-id': 'nonsense' });
  assert.deepEqual([(await stream.take()).event, (await stream.take()).event], ['ready', 'reset']);
  assert.equal(await stream.next(), undefined);
});

test('a retry begins the text again, and output that is no longer kept is a reset', async () => {
  model.script = (_request, number) =>
    number === 1 ? { raw: [chatEvent('Broken')], breaks: true } : { text: 'Whole.' };
  const run = await runOnce({ retry: { max_attempts: 2, initial_seconds: 0 } });
  const { events } = await readOutput(run.id);
  const started = events.filter(({ event }) => event === 'generation_started');
  assert.deepEqual(
    started.map(({ data }) => data.attempt),
    [1, 2],
  );
  await deleteOldOutput(server.db, new Date(Date.now() + 60_000));
  const left = await readOutput(run.id);
  assert.deepEqual(
    left.events.map(({ event }) => event),
    ['ready', 'reset'].slice(0, left.events.length),
  );
  assert.equal(left.text, '');
});

test('the output of a run is 404 for every caller who may not read its payloads', async () => {
  const { id } = await client.createAutomation({ workflow: graphOf(ask()) });
  const run = await client.runGraph(graphOf(ask()), { name: 'Ada' });
  const path = `/api/v1/automation_runs/${run.id}/output_stream`;
  const other = await server.provision.app();
  for (const credential of [{ key: other.secretKey }, { token: world.member.token, key: world.app.publishableKey }])
    assert.equal((await server.api('GET', path, credential)).status, 404);
  assert.equal((await server.api('GET', path, {})).status, 401);
  const invoked = await server.api<{ id: string }>('POST', `/api/v1/automations/${id}/invoke`, {
    ...{ token: world.member.token, key: world.app.publishableKey, body: { payload: { name: 'Ada' } } },
  });
  await client.waitForEnd(invoked.body.id);
  const own = await server.api('GET', `/api/v1/automation_runs/${invoked.body.id}/output_stream`, {
    ...{ token: world.member.token, key: world.app.publishableKey },
  });
  assert.equal(own.status, 200);
  assert.match(own.text, /generation_text/);
});

test('a generate node with unknown or wrong members is 422 and names them', async () => {
  const wrong: [Record<string, unknown>, RegExp][] = [
    [{ messages: [] }, /messages/],
    [{ messages: [{ role: 'tool', content: 'x' }] }, /role/],
    [{ temperature: 3 }, /temperature/],
    [{ tokens: 0 }, /tokens/],
    [{ tools: [] }, /tools/],
  ];
  for (const [members, named] of wrong) {
    const body = { name: 'x', type: 'invoked', workflow: graphOf(ask(members)) };
    const refused = await client.call('POST', '/automations', body);
    assert.equal(refused.status, 422);
    assert.match(refused.text, named);
  }
});
