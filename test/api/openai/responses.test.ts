import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import OpenAI, { APIError } from 'openai';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { knowledgeOf } from '../../support/knowledge.ts';
import { chatEvent, startLanguageModel } from '../../support/language-model.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestServer } from '../../support/server.ts';

/* `/v1/responses`, driven by the official client. */

const model = await startLanguageModel();
const clock = new ManualClock(new Date('2030-01-01T00:00:00Z'));
const server = await startTestServer({ clock, env: { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'test' } });
after(async () => {
  await server.close();
  await model.close();
});
const world = await server.provision.world();
const { app, org, member, viewer } = world;
const clientOf = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${server.baseUrl}/v1`, maxRetries: 0 });
const client = clientOf(app.secretKey);
const asMember = clientOf(member.token);
const owner = knowledgeOf(server, { key: app.secretKey });
const source = await owner.createSource({ org: org.id });
const document = await owner.push(source, 'Goods may be returned within thirty days.', { title: 'returns.md' });
const store = source.replace('cso_', 'vs_');
const tools = [{ type: 'file_search' as const, vector_store_ids: [store] }];
const question = 'When may goods be returned?';

/** Fails unless the request is refused with this status and parameter. */
async function refuses(work: Promise<unknown>, status: number, param?: string | null): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof APIError, String(error));
    assert.deepEqual([error.status, param === undefined ? undefined : error.param], [status, param]);
    return true;
  });
}

test('a response without tools is what the model says', async () => {
  model.script = () => 'Hello there.';
  const response = await client.responses
    .create({
      model: 'test-alias',
      input: 'Hi.',
    })
    .catch((error: APIError) => error);
  assert.ok(response instanceof APIError);
  assert.deepEqual([response.status, response.param], [400, 'model']);
  const said = await client.responses.create({
    input: [
      { role: 'developer', content: 'Be kind.' },
      { role: 'user', content: [{ type: 'input_text', text: 'Hi.' }] },
    ],
    instructions: 'Be short.',
    temperature: 0.5,
    top_p: 0.9,
    max_output_tokens: 100,
    metadata: { topic: 'greeting' },
  });
  assert.match(said.id, /^resp_[0-9A-Za-z]{22}$/);
  assert.deepEqual(
    [said.object, said.status, said.output_text, said.model],
    ['response', 'completed', 'Hello there.', 'test'],
  );
  assert.deepEqual(
    [said.temperature, said.top_p, said.max_output_tokens, said.metadata],
    [0.5, 0.9, 100, { topic: 'greeting' }],
  );
  assert.deepEqual([said.usage?.input_tokens, said.usage?.output_tokens, said.usage?.total_tokens], [10, 5, 15]);
  const sent = model.requests.at(-1);
  assert.deepEqual(
    sent?.messages.map(({ role, content }) => [role, content]),
    [
      ['system', 'Be short.\n\nBe kind.'],
      ['user', 'Hi.'],
    ],
  );
  assert.deepEqual([sent?.temperature, sent?.top_p], [0.5, 0.9]);
});

test('with file_search, the text has citations of the passages found', async () => {
  model.script = () => 'They may be returned within thirty days [1]. Nobody knows why.';
  const response = await asMember.responses.create({ input: question, tools, include: ['file_search_call.results'] });
  const [call, message] = response.output;
  assert.ok(call?.type === 'file_search_call' && message?.type === 'message');
  assert.deepEqual([call.status, call.queries, call.results?.length], ['completed', [question], 1]);
  assert.match(call.results?.[0]?.text ?? '', /thirty days/);
  const [part] = message.content;
  assert.ok(part?.type === 'output_text');
  assert.equal(part.text, response.output_text);
  assert.deepEqual(part.annotations, [
    { type: 'file_citation', index: part.text.indexOf('.') + 1, file_id: document, filename: 'returns.md' },
  ]);
  assert.match(model.requests.at(-1)?.messages[0]?.content ?? '', /within thirty days/);

  model.script = () => 'NOT_IN_SOURCES';
  const missing = await client.responses.create({ input: question, tools });
  assert.deepEqual([missing.status, missing.output_text], ['completed', 'The sources do not say.']);
  const before = model.requests.length;
  model.script = () => 'Plain.';
  const plain = await client.responses.create({ input: question, tools, tool_choice: 'none' });
  assert.deepEqual([plain.output.map(({ type }) => type), plain.output_text], [['message'], 'Plain.']);
  assert.equal(model.requests.length, before + 1);
});

test('the streaming helper of the client follows a response, event by event', async () => {
  const text = 'They may be returned [1]. It is strict [1].';
  model.script = () => ({ text, parts: 6 });
  const stream = client.responses.stream({ input: question, tools });
  const events: ResponseStreamEvent[] = [];
  let deltas = '';
  stream.on('event', (event) => events.push(event));
  stream.on('response.output_text.delta', ({ delta }) => {
    deltas += delta;
  });
  const final = await stream.finalResponse();
  assert.deepEqual([deltas, final.output_text, final.status], [text, text, 'completed']);
  assert.deepEqual(
    events.map(({ sequence_number: number }) => number),
    events.map((_event, index) => index),
  );
  const kinds = events.map(({ type }) => type.replace('response.', ''));
  assert.deepEqual(
    kinds.filter((kind, index) => kind !== kinds[index - 1]),
    [
      ...['created', 'in_progress', 'output_item.added'],
      ...[
        'file_search_call.in_progress',
        'file_search_call.searching',
        'file_search_call.completed',
        'output_item.done',
      ],
      ...['output_item.added', 'content_part.added', 'output_text.delta', 'output_text.annotation.added'],
      ...['output_text.done', 'content_part.done', 'output_item.done', 'completed'],
    ],
  );
  const stored = await client.responses.retrieve(final.id);
  assert.deepEqual([stored.output_text, stored.status], [text, 'completed']);

  model.script = () => ({ raw: [chatEvent('They may be returned [1]. Then more')], breaks: true });
  const broken: ResponseStreamEvent[] = [];
  for await (const event of await client.responses.create({ input: question, tools, stream: true })) broken.push(event);
  const last = broken.at(-1);
  assert.ok(last?.type === 'response.failed');
  assert.deepEqual([last.response.status, last.response.error?.code], ['failed', 'server_error']);
  await refuses(client.responses.retrieve(last.response.id), 404);
});

test('a stored response is continued, listed and deleted', async () => {
  model.script = () => 'Thirty days [1].';
  const first = await client.responses.create({ input: question, tools, instructions: 'Be short.' });
  model.script = () => 'You are welcome.';
  const second = await client.responses.create({ input: 'Thanks.', previous_response_id: first.id });
  assert.equal(second.previous_response_id, first.id);
  assert.deepEqual(
    model.requests.at(-1)?.messages.map(({ role, content }) => [role, content]),
    [
      ['user', question],
      ['assistant', 'Thirty days [1].'],
      ['user', 'Thanks.'],
    ],
  );
  assert.deepEqual(await client.responses.retrieve(second.id), { ...second, output_text: 'You are welcome.' });

  const several = await client.responses.create({
    input: ['one', 'two', 'three'].map((content) => ({ role: 'user' as const, content })),
  });
  const items = await Array.fromAsync(await client.responses.inputItems.list(several.id, { limit: 2, order: 'asc' }));
  assert.deepEqual(
    items.map((item) => item.type === 'message' && item.content),
    ['one', 'two', 'three'].map((text) => [{ type: 'input_text', text }]),
  );
  const newest = await client.responses.inputItems.list(several.id, { limit: 1 });
  assert.match(JSON.stringify(newest.data), /three/);

  await client.responses.delete(first.id);
  await refuses(client.responses.retrieve(first.id), 404);
  await refuses(
    client.responses.create({ input: 'And?', previous_response_id: second.id }),
    400,
    'previous_response_id',
  );
  const unstored = await client.responses.create({ input: 'Hi.', store: false });
  await refuses(client.responses.retrieve(unstored.id), 404);
});

test('reading and continuing a response checks the documents that it was written from', async () => {
  const acl = { grants: [{ principal_type: 'user', principal: member.id }] };
  const secret = await owner.push(source, 'Lapwings nest behind the observatory.', { acl });
  model.script = () => 'Behind the observatory [1].';
  const response = await asMember.responses.create({ input: 'Where do lapwings nest?', tools });
  assert.equal((await asMember.responses.retrieve(response.id)).output_text, 'Behind the observatory [1].');
  // Others never see a user's responses, except the keys of the app.
  await refuses(clientOf(viewer.token).responses.retrieve(response.id), 404);
  assert.equal((await client.responses.retrieve(response.id)).id, response.id);

  // What continues it rests on the same documents, although its model has read no passage.
  const continued = await asMember.responses.create({ input: 'Say it again.', previous_response_id: response.id });
  const last = await asMember.responses.create({ input: 'And again.', previous_response_id: continued.id });

  await owner.send('PATCH', `/knowledge_documents/${secret}/acl`, { grants: [] });
  await refuses(asMember.responses.retrieve(continued.id), 404);
  await refuses(asMember.responses.retrieve(last.id), 404);
  await refuses(asMember.responses.retrieve(response.id), 404);
  await refuses(asMember.responses.inputItems.list(response.id), 404);
  await refuses(asMember.responses.delete(response.id), 404);
  await refuses(
    asMember.responses.create({ input: 'Why?', previous_response_id: response.id }),
    400,
    'previous_response_id',
  );
  await owner.send('PATCH', `/knowledge_documents/${secret}/acl`, acl);
  assert.equal((await asMember.responses.retrieve(response.id)).id, response.id);
});

test('a vector store that the caller cannot see is like a missing one', async () => {
  const asked = { input: question, tools };
  for (const other of [world.stranger, world.otherUser]) {
    const work = clientOf(other.token).responses.create(asked);
    await refuses(work, 404, 'tools.0.vector_store_ids.0');
  }
});

test('output with a schema is valid, and comes as a whole', async () => {
  const answers = ['{"days": "thirty"}', '{"days": 30}'];
  model.script = (_request, _number) => answers.shift() ?? '{}';
  const schema = { type: 'object', properties: { days: { type: 'integer' } }, required: ['days'] };
  const format = { type: 'json_schema' as const, name: 'days', schema };
  const parsed = await client.responses.parse({ input: question, tools, text: { format } });
  assert.deepEqual([JSON.parse(parsed.output_text), parsed.text?.format?.type], [{ days: 30 }, 'json_schema']);
  model.script = () => ({ text: 'They may', finish: 'length' });
  const cut = await client.responses.create({ input: question, max_output_tokens: 16 });
  assert.deepEqual([cut.status, cut.incomplete_details], ['incomplete', { reason: 'max_output_tokens' }]);
  model.script = () => ({ text: 'I cannot', finish: 'content_filter' });
  const refused = await client.responses.create({ input: question });
  assert.deepEqual([refused.status, refused.incomplete_details], ['incomplete', { reason: 'content_filter' }]);
});

test('what is not supported is 400 and names its parameter', async () => {
  const picture = [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://example.com/a.png' }] }];
  const other = { type: 'file_search', vector_store_ids: ['vs_0000000000000000000000'] };
  for (const [body, param] of [
    [{ background: true }, 'background'],
    [{ conversation: 'conv_1' }, 'conversation'],
    [{ prompt: { id: 'pmpt_1' } }, 'prompt'],
    [{ reasoning: { effort: 'low' } }, 'reasoning'],
    [{ input: picture }, 'input.0.content.0.type'],
    [{ input: [{ type: 'function_call_output', call_id: 'a', output: 'b' }] }, 'input.0.type'],
    [{ input: [] }, 'input'],
    [{ previous_response_id: 'resp_0000000000000000000000' }, 'previous_response_id'],
    [{ tools: [{ ...other, filters: { type: 'near', key: 'a', value: 1 } }] }, 'tools.0.vector_store_ids.0'],
    [
      { tools: [{ type: 'file_search', vector_store_ids: [store], filters: { type: 'near', key: 'a', value: 1 } }] },
      'tools.0.filters.type',
    ],
  ] as const) {
    const status = param === 'tools.0.vector_store_ids.0' ? 404 : 400;
    await refuses(client.responses.create({ input: question, ...body } as never), status, param);
  }
  const tool = client.responses.create({ input: question, tools: [{ type: 'web_search' }] });
  await assert.rejects(
    tool,
    (error) => error instanceof APIError && error.status === 400 && /^tools/.test(error.param ?? ''),
  );
  model.script = () => ({ status: 400 });
  await refuses(client.responses.create({ input: question }), 503);
});

test('a stored response is gone after thirty days', async () => {
  model.script = () => 'Hello.';
  const response = await client.responses.create({ input: 'Hi.' });
  clock.advance(29 * 24 * 3_600_000);
  assert.equal((await client.responses.retrieve(response.id)).id, response.id);
  clock.advance(2 * 24 * 3_600_000);
  await refuses(client.responses.retrieve(response.id), 404);
  const sweep = server.server.work.tasks.sweep_responses;
  await sweep?.({} as never, {} as never);
  assert.deepEqual([...(await server.db`select id from openai_responses`)], []);
});
