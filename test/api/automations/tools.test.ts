import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { parse } from 'yaml';
import { operations } from '../../../src/automations/nodes/operations.ts';
import { hasScope, type KeyScope } from '../../../src/tenancy/key-scopes.ts';
import { AutomationsClient, entryTypes, graphOf } from '../../support/automations.ts';
import { startLanguageModel, toolCallEvents } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';
import { readProjectFile } from '../../support/source.ts';

/* Tools of `generate` nodes, against a server that speaks the protocol of chat completions. */

const model = await startLanguageModel();
const server = await startTestServer({
  env: { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'small', QUARRY_FETCH_ALLOW: '127.0.0.1' },
  logLevel: 'fatal',
});
after(async () => {
  await server.close();
  await model.close();
});
const app = await server.provision.app();
const user = await server.provision.user(app);
const client = new AutomationsClient(server, app);
beforeEach(() => {
  model.requests.length = 0;
});

type Call = [name: string, given: unknown];
const calls = (...all: Call[]) => ({ raw: toolCallEvents(all) });

await client.createAutomation({
  ...{ name: 'Price of an article', lookup_key: 'price', description: 'Looks up the price of an article.' },
  input_schema: { type: 'object', properties: { article: { type: 'string' } }, required: ['article'] },
  workflow: graphOf({ id: 'done', kind: 'complete', result: { article: '{{$.article}}', cents: 250 } }),
});
const ask = (members: Record<string, unknown> = {}) => ({
  ...{ id: 'ask', kind: 'generate', messages: [{ role: 'user', content: 'What is a pen?' }] },
  tools: [{ automation: 'price' }],
  ...members,
});
const run = (members: Record<string, unknown> = {}, payload: Record<string, unknown> = {}) =>
  client.runGraph(graphOf(ask(members)), payload);
const results = (request = model.requests.at(-1)) =>
  (request?.messages ?? []).filter(({ role }) => role === 'tool').map(({ content }) => JSON.parse(content ?? ''));

type SentTool = { function: { name: string; parameters: { properties: object } } };
const toolsSent = () => ((model.requests[0]?.tools ?? []) as SentTool[]).map((each) => each.function);

test('a model calls an automation, and its result comes back as the next message', async () => {
  model.script = (_request, number) => (number === 1 ? calls(['price', { article: 'pen' }]) : 'A pen is 2.50.');
  const ended = await run();
  assert.equal(ended.status, 'completed', JSON.stringify(ended));
  assert.deepEqual(ended.result, {
    ...{ text: 'A pen is 2.50.', model: 'small', finish_reason: 'stop', turns: 1 },
    usage: { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30, requests: 2 },
  });
  assert.deepEqual(model.requests[0]?.tools, [
    {
      type: 'function',
      function: {
        ...{ name: 'price', description: 'Looks up the price of an article.' },
        parameters: { type: 'object', properties: { article: { type: 'string' } }, required: ['article'] },
      },
    },
  ]);
  assert.deepEqual(model.requests[1]?.messages.slice(1), [
    {
      ...{ role: 'assistant', content: null },
      tool_calls: [{ id: 'call_a0', type: 'function', function: { name: 'price', arguments: '{"article":"pen"}' } }],
    },
    { role: 'tool', tool_call_id: 'call_a0', content: '{"article":"pen","cents":250}' },
  ]);
  const journal = await client.journal(ended.id);
  assert.deepEqual(entryTypes(journal), [
    ...['run_started', 'node_started ask', 'tool_calls_received ask', 'node_started ask/price'],
    ...['child_run_started ask/price', 'child_run_ended ask/price', 'node_completed ask/price'],
    ...['node_completed ask', 'run_completed'],
  ]);
  assert.deepEqual(journal[3]?.record.context?.input.payload, { article: 'pen' });
});

test('several calls of one response run together, and each has its result', async () => {
  model.script = (_request, number) =>
    number === 1 ? calls(['price', { article: 'pen' }], ['price', { article: 'ink' }]) : 'Done.';
  assert.equal((await run()).status, 'completed');
  assert.deepEqual(
    results().map(({ article }) => article),
    ['pen', 'ink'],
  );
});

test('an operation is called with the rights of the run, and with the arguments that the graph states', async () => {
  const tools = [
    { operation: 'kv_put', arguments: { user: '{{$.user}}' } },
    { operation: 'kv_get', arguments: { user: '{{$.user}}' } },
  ];
  model.script = (_request, number) => {
    if (number === 1) return calls(['kv_put', { key: 'note', value: 'x' }]);
    return number === 2 ? calls(['kv_get', { key: 'note' }]) : 'Ok.';
  };
  const ended = await run({ tools }, { user: user.id });
  assert.equal(ended.status, 'completed', JSON.stringify(ended));
  assert.equal(results()[1].value, 'x', JSON.stringify(results()));
  const [tool] = toolsSent();
  assert.ok(tool && !('user' in tool.parameters.properties));
  const entry = await client.call<{ value: string }>('GET', `/kv/note?user=${user.id}`);
  assert.equal(entry.body.value, 'x');
});

test('a run that acts as a user or an agent calls operations with no more than their rights', async () => {
  const other = await server.provision.user(app);
  const agent = await client.call<{ id: string }>('POST', '/agents', { name: 'helper' });
  const tools = [{ operation: 'kv_get' }, { operation: 'list_automations' }, { operation: 'list_files' }];
  model.script = (request) =>
    request.messages.length === 1
      ? calls(['kv_get', { key: 'note' }], ['list_automations', {}], ['list_files', {}])
      : 'Ok.';
  const outcomes = async (identity: Record<string, unknown>) => {
    const made = await client.createAutomation({ workflow: graphOf(ask({ tools })), ...identity });
    const ended = await client.waitForEnd((await client.invoke(made.id)).id);
    assert.equal(ended.status, 'completed', JSON.stringify(ended));
    return results().map(({ error, value, files }) => error?.code ?? value ?? files);
  };
  assert.deepEqual(await outcomes({ run_as_user: user.id }), ['x', 'forbidden', []]);
  assert.deepEqual(await outcomes({ run_as_user: other.id }), ['not_found', 'forbidden', []]);
  assert.deepEqual(await outcomes({ run_as_agent: agent.body.id }), ['not_found', 'forbidden', []]);
});

test('unknown tools, invalid arguments and the third same call are told to the model, and are in the journal', async () => {
  model.script = (_request, number) => {
    if (number === 1)
      return calls(['price', { article: 7 }], ['refund', {}], ['price', 'no'], ['price', { article: 'pen' }]);
    return number < 5 ? calls(['price', { article: 'pen' }]) : 'I give up.';
  };
  const ended = await run();
  assert.equal(ended.status, 'completed', JSON.stringify(ended));
  assert.deepEqual(
    results().map(({ error, cents }) => error?.code ?? cents),
    ['invalid_arguments', 'unknown_tool', 'invalid_arguments', 250, 250, 'repeated_call', 'repeated_call'],
  );
  const [first] = (await client.journal(ended.id)).filter(({ type }) => type === 'tool_calls_received');
  const received = first?.record.payload as { tool_calls: { error?: { code: string } }[] };
  assert.deepEqual(
    received.tool_calls.map(({ error }) => error?.code),
    ['invalid_arguments', 'unknown_tool', 'invalid_arguments', undefined],
  );
});

test('a model that goes on calling fails its node after the turns that it has', async () => {
  model.script = (_request, number) => calls(['price', { article: `a${number}` }]);
  const ended = await run({ max_turns: 2 });
  assert.deepEqual([ended.error?.code, model.requests.length], ['tool_turns_exceeded', 3]);
});

test('a failed call is a result for the model, and the node goes on', async () => {
  await client.createAutomation({
    lookup_key: 'broken',
    workflow: graphOf({ id: 'no', kind: 'fail', code: 'out_of_stock', message: 'None left.' }),
  });
  model.script = (_request, number) => (number === 1 ? calls(['broken', {}]) : 'None left, sorry.');
  const ended = await run({ tools: [{ automation: 'broken' }] });
  assert.equal(ended.status, 'completed', JSON.stringify(ended));
  assert.equal(results()[0].error.code, 'out_of_stock');
});

test('what the model writes is not a template', async () => {
  model.script = (_request, number) => (number === 1 ? calls(['price', { article: '{{$secrets.KEY}}' }]) : 'Ok.');
  await run();
  assert.deepEqual(results()[0], { article: '{{$secrets.KEY}}', cents: 250 });
});

test('a call waits for its approval; a refusal is a result', async () => {
  const { id } = await client.createAutomation({
    workflow: graphOf(ask({ tools: [{ automation: 'price', approve: { users: [user.id] } }] })),
  });
  model.script = (request) => (request.messages.length === 1 ? calls(['price', { article: 'pen' }]) : 'Ok.');
  for (const ok of [true, false]) {
    const begun = await client.invoke(id);
    await client.waitUntilWaiting(begun.id);
    const waiting = (await client.call<{ waiting_for: { kind: string } }>('GET', `/automation_runs/${begun.id}`)).body;
    assert.equal(waiting.waiting_for.kind, 'approval');
    const mine = await server.api<{ data: { id: string; question: string; status: string }[] }>(
      'GET',
      '/api/v1/approvals',
      { key: app.publishableKey, token: user.token },
    );
    const [approval] = mine.body.data;
    assert.match(approval?.question ?? '', /May this tool be called\?\n\nprice \{"article":"pen"\}/);
    const answered = await server.api('POST', `/api/v1/approvals/${approval?.id}/answer`, {
      ...{ key: app.publishableKey, token: user.token },
      body: { data: { ok, comment: 'Too dear.' } },
    });
    assert.equal(answered.status, 200, answered.text);
    assert.equal((await client.waitForEnd(begun.id)).status, 'completed');
    const [result] = results();
    if (ok) assert.equal(result.cents, 250);
    else assert.deepEqual([result.error.code, /Too dear/.test(result.error.message)], ['refused', true]);
  }
});

test('people see all of the arguments that they approve: longer ones fail the call, and every character is visible', async () => {
  const { id } = await client.createAutomation({
    workflow: graphOf(ask({ tools: [{ automation: 'price', approve: { users: [user.id] } }] })),
  });
  model.script = (request) =>
    request.messages.length === 1 ? calls(['price', { note: 'x'.repeat(10_000), article: 'yacht' }]) : 'Ok.';
  const long = await client.invoke(id);
  assert.equal((await client.waitForEnd(long.id)).status, 'completed');
  assert.equal(results()[0].error.code, 'arguments_too_long');

  model.script = (request) =>
    request.messages.length === 1 ? calls(['price', { article: 'a\u202eb\u{e0041}c' }]) : 'Ok.';
  const begun = await client.invoke(id);
  await client.waitUntilWaiting(begun.id);
  const asked = await client.call<{ data: { question: string }[] }>('GET', `/approvals?run=${begun.id}`);
  assert.match(asked.body.data[0]?.question ?? '', /price \{"article":"a\\u202eb\\udb40\\udc41c"\}$/);
  await client.call('POST', `/automation_runs/${begun.id}/cancel`);
});

test('a failed attempt keeps what was called: the next one asks the model again, and calls nothing twice', async () => {
  await client.createAutomation({
    lookup_key: 'count',
    workflow: graphOf({ id: 'n', kind: 'emit_event', name: 'counted', payload: {} }),
  });
  model.script = (_request, number) => {
    if (number === 1) return calls(['count', {}]);
    return number === 2 ? { status: 400 } : 'Counted.';
  };
  const ended = await run({ tools: [{ automation: 'count' }], retry: { max_attempts: 2, initial_seconds: 0 } });
  assert.equal(ended.status, 'completed', JSON.stringify(ended));
  const started = (await client.journal(ended.id)).filter(({ type }) => type === 'child_run_started');
  assert.deepEqual([started.length, model.requests.length], [1, 3]);
});

test('a schema is checked on the last text, while tools were called before', async () => {
  model.script = (_request, number) => {
    if (number === 1) return calls(['price', { article: 'pen' }]);
    return number === 2 ? 'It is 250.' : '{"cents": 250}';
  };
  const schema = { type: 'object', properties: { cents: { type: 'integer' } }, required: ['cents'] };
  const ended = await run({ schema });
  assert.deepEqual((ended.result as { data: unknown }).data, { cents: 250 }, JSON.stringify(ended));
  assert.equal(model.requests[0]?.response_format, undefined);
});

test('a graph with wrong tools is 422 and names them', async () => {
  const wrong: [tools: unknown, message: RegExp][] = [
    [[{}], /exactly one of automation and operation/],
    [[{ automation: 'a', operation: 'kv_get' }], /exactly one of/],
    [[{ operation: 'upload_file' }], /must be one of .*kv_get/],
    [[{ automation: 'a' }, { automation: 'b', name: 'a' }], /another tool has the name .{1,2}a/],
    [[{ automation: '{{$.name}}' }], /must not be a template/],
    ['{{$.tools}}', /must be a list/],
    [[{ automation: 'a', url: 'http://x' }], /url.*not a known member/],
  ];
  for (const [tools, message] of wrong) {
    const made = await client.call('POST', '/automations', {
      ...{ name: 'wrong', type: 'invoked', workflow: graphOf(ask({ tools })) },
    });
    assert.equal(made.status, 422, `${JSON.stringify(tools)} ${made.text}`);
    assert.match(made.text, message);
  }
});

test('a key with scopes writes a graph only with the scopes of its tools', async () => {
  const createKey = async (...scopes: string[]) => {
    const made = await client.call<{ full_key: string }>('POST', '/keys', { type: 'secret', scopes });
    return made.body.full_key;
  };
  const body = { name: 'scoped', type: 'invoked', workflow: graphOf(ask({ tools: [{ operation: 'kv_put' }] })) };
  const poor = await server.api('POST', '/api/v1/automations', { key: await createKey('automations'), body });
  const enough = await server.api('POST', '/api/v1/automations', { key: await createKey('automations', 'kv'), body });
  assert.deepEqual([poor.status, enough.status], [403, 201], poor.text);
});

test('each operation needs the scope that its request needs: the tools that a key with it sees', async () => {
  const areas = new Set(Object.values(operations).map(({ area }) => area));
  for (const scope of [...areas].flatMap((area): KeyScope[] => [area, `${area}:read`])) {
    const key = await client.call<{ full_key: string }>('POST', '/keys', { type: 'secret', scopes: [scope] });
    const listed = await server.api<{ result: { tools: { name: string }[] } }>('POST', '/mcp', {
      key: key.body.full_key,
      headers: { accept: 'application/json, text/event-stream' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    });
    const seen = new Set([...listed.text.matchAll(/"name":"(\w+)","title"/g)].map(([, name]) => name));
    for (const [name, { area, reads }] of Object.entries(operations))
      assert.equal(
        seen.has(name),
        hasScope([scope], area, reads),
        `${name} with ${scope}: ${listed.text.slice(0, 300)}`,
      );
  }
});

test('pictures and documents go to the model as bytes, to one that takes them', async () => {
  const upload = async (filename: string, content_type: string, data: string) =>
    (await client.call<{ id: string }>('POST', '/files', { filename, content_type, data })).body.id;
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const files = [await upload('a.png', 'image/png', png), await upload('a.pdf', 'application/pdf', 'JVBERi0xLjQK')];
  const text = await upload('a.txt', 'text/plain', 'aGk=');
  const seeing = { name: 'seeing', provider: 'openai', model: 'vision', url: model.url };
  const body = { ...seeing, modalities: ['text', 'image', 'file'] };
  assert.equal((await client.call('POST', '/models', body)).status, 201);
  model.script = () => 'A dot.';
  const messages = (ids: string[]) => [{ role: 'user', content: 'What is this?', files: ids }];
  const blind = await run({ tools: undefined, messages: messages(files) });
  assert.deepEqual([blind.error?.code, model.requests.length], ['llm_failed', 0], JSON.stringify(blind));
  const refused = await run({ tools: undefined, messages: messages([text]) });
  assert.equal(refused.error?.code, 'unsupported_file');
  const seen = await run({ tools: undefined, model: 'seeing', messages: messages(files) });
  assert.equal(seen.status, 'completed', JSON.stringify(seen));
  assert.deepEqual(model.requests[0]?.messages[0]?.content, [
    { type: 'text', text: 'What is this?' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
    { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0xLjQK' } },
  ]);
});

test('the example of the guide answers with what its tools found', async () => {
  const guide = readProjectFile('docs/language-models.md');
  const example = [...guide.matchAll(/```yaml\n([\s\S]*?)```/g)].find(([, text]) => text?.includes('answer-customer'));
  const org = await server.provision.org(app);
  const source = await client.call<{ id: string }>('POST', '/knowledge_sources', {
    ...{ type: 'knowledge/documents', org: org.id, payload: {} },
  });
  assert.equal(source.status, 201, source.text);
  for (const lookup_key of ['find-order', 'refund'])
    await client.createAutomation({
      ...{ lookup_key, workflow: graphOf({ id: 'done', kind: 'complete', result: { order: '{{$.order}}' } }) },
      input_schema: { type: 'object', properties: { order: { type: 'string' }, customer: { type: 'string' } } },
    });
  await client.createAutomation(parse(example?.[1] ?? '') as Record<string, unknown>);
  model.script = (_request, number) =>
    number === 1 ? calls(['search_knowledge', { query: 'return' }], ['find-order', { order: '7' }]) : 'Thirty days.';
  const payload = { question: 'Can I return it?', source: source.body.id, customer: 'c', clerk: user.id };
  const begun = await client.invoke('answer-customer', { payload });
  const ended = await client.waitForEnd(begun.id);
  assert.deepEqual([ended.status, ended.result], ['completed', 'Thirty days.'], JSON.stringify(ended));
  const [found, order] = results();
  assert.deepEqual([found.error, order], [undefined, { order: '7' }]);
  const names = toolsSent().map(({ name, parameters }) => [name, Object.keys(parameters.properties)]);
  assert.deepEqual(names[1], ['find-order', ['order', 'customer']]);
  assert.deepEqual(names[2], ['refund', ['order']]);
});
