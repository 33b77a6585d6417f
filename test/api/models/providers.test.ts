import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { type ModelProvider, startAnthropic, startGoogle } from '../../support/model-providers.ts';
import { startTestServer } from '../../support/server.ts';

/* Models of Anthropic and Google, against local servers that speak their protocols. */

const fakes = { anthropic: await startAnthropic(), google: await startGoogle() };
const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' }, logLevel: 'fatal' });
const app = await server.provision.app();
const client = new AutomationsClient(server, app);
after(async () => {
  await server.close();
  await Promise.all(Object.values(fakes).map((each) => each.close()));
});
beforeEach(() => {
  for (const each of Object.values(fakes)) {
    each.requests.length = 0;
    each.script = () => 'Hello.';
  }
});

type Output = {
  text: string;
  data?: unknown;
  finish_reason: string;
  usage: { prompt_tokens: number; completion_tokens: number; estimated?: true };
};
const models = { anthropic: 'claude-haiku-4-5', google: 'gemini-2.5-flash' };

await client.createAutomation({
  ...{ name: 'Price', lookup_key: 'price', description: 'Looks up a price.' },
  input_schema: { type: 'object', properties: { article: { type: 'string' } }, required: ['article'] },
  workflow: graphOf({ id: 'done', kind: 'complete', result: { article: '{{$.article}}', cents: 250 } }),
});

for (const [provider, fake] of Object.entries(fakes) as [keyof typeof models, ModelProvider][]) {
  const body = { name: provider, provider, model: models[provider], url: fake.url, key: 'provider-key' };
  const made = await server.api('POST', '/api/v1/models', { key: app.secretKey, body });
  assert.equal(made.status, 201, made.text);
  const run = (more: Record<string, unknown> = {}) =>
    client.runGraph(
      graphOf({
        ...{ id: 'g', kind: 'generate', model: provider, tokens: 300, temperature: 0.5 },
        messages: [
          { role: 'system', content: 'Be short.' },
          { role: 'user', content: 'Greet Ada.' },
        ],
        ...more,
      }),
      {},
    );
  const generated = async (more?: Record<string, unknown>) => {
    const ended = await run(more);
    assert.equal(ended.status, 'completed', JSON.stringify(ended.error));
    return ended.result as Output;
  };
  const failed = async (more?: Record<string, unknown>) => {
    const ended = await run(more);
    return ended.error?.code ?? `${ended.status}: ${JSON.stringify(ended.result)}`;
  };

  test(`${provider}: the text arrives whatever the stream is cut into, with its usage`, async () => {
    for (const cut of [1, 7, 100, undefined]) {
      fake.script = () => ({ text: 'Good day, Ada: 世界 🌍!', usage: [21, 9], ...(cut === undefined ? {} : { cut }) });
      const { text, finish_reason, usage } = await generated();
      assert.deepEqual([text, finish_reason], ['Good day, Ada: 世界 🌍!', 'stop'], `${cut}`);
      assert.deepEqual([usage.prompt_tokens, usage.completion_tokens, usage.estimated], [21, 9, undefined]);
    }
    const [request] = fake.requests;
    assert.equal(request?.key, 'provider-key');
    assert.match(
      request?.path ?? '',
      provider === 'anthropic' ? /^\/v1\/messages$/ : /gemini-2.5-flash:streamGenerateContent/,
    );
    assert.ok(JSON.stringify(request?.body).includes('Be short.'));
  });

  test(`${provider}: pictures and documents are sent as bytes, never as an address`, async () => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const pdf = 'JVBERi0xLjQK';
    const files: string[] = [];
    for (const [filename, content_type, data] of [
      ['a.png', 'image/png', png],
      ['a.pdf', 'application/pdf', pdf],
    ])
      files.push((await client.call<{ id: string }>('POST', '/files', { filename, content_type, data })).body.id);
    const seeing = { ...body, name: `${provider}-seeing`, modalities: ['text', 'image', 'file'] };
    assert.equal((await client.call('POST', '/models', seeing)).status, 201);
    fake.script = () => 'A dot.';
    const messages = [{ role: 'user', content: 'What is this?', files }];
    assert.equal((await generated({ model: seeing.name, messages })).text, 'A dot.');
    const sent = JSON.stringify(fake.requests[0]?.body);
    for (const [type, data] of [
      ['image/png', png],
      ['application/pdf', pdf],
    ])
      assert.ok(sent.includes(String(data)) && sent.includes(`"${type}"`), sent);
    assert.doesNotMatch(sent, /https?:|fil_/);
  });

  test(`${provider}: a stream without a finish reason, or that breaks, is an error`, async () => {
    fake.script = () => ({ text: 'Half of', finish: null });
    assert.equal(await failed(), 'llm_bad_response');
    for (const breaksAt of [30, 200, 420]) {
      fake.script = () => ({ text: 'Half of it and more', breaksAt });
      assert.equal(await failed(), 'llm_bad_response', `${breaksAt}`);
    }
    fake.script = () => ({
      respond: (response) =>
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {"nonsense\n\n'),
    });
    assert.equal(await failed(), 'llm_bad_response');
  });

  test(`${provider}: token counts that are not counts are estimated`, async () => {
    for (const usage of [
      [-5, 7],
      [3.5, 7],
      [11, -1],
      [11, 2.5],
    ] as [number, number][]) {
      fake.script = () => ({ text: 'Good day.', usage });
      const { usage: used } = await generated();
      assert.deepEqual([used.estimated, used.completion_tokens], [true, 3], JSON.stringify(usage));
    }
  });

  test(`${provider}: a provider that cannot be reached is asked three times`, async () => {
    fake.script = () => ({ respond: (response) => void response.destroy() });
    assert.deepEqual([await failed(), fake.requests.length], ['llm_unreachable', 3]);
  });

  test(`${provider}: an alias tries its next model when it is busy`, async () => {
    const second = { name: `${provider}-2`, provider, model: models[provider], url: fake.url, key: 'second-key' };
    const alias = { name: `both-${provider}`, models: [provider, second.name] };
    for (const [path, sent] of [
      ['/api/v1/models', second],
      ['/api/v1/model_aliases', alias],
    ] as const)
      assert.equal((await server.api('POST', path, { key: app.secretKey, body: sent })).status, 201);
    fake.script = (request) => (request.key === 'second-key' ? 'Here.' : { status: 529 });
    assert.equal((await generated({ model: alias.name })).text, 'Here.');
    assert.equal(fake.requests.length, 2);
  });

  test(`${provider}: NUL is replaced, and a model that writes beyond its limit is cut off`, async () => {
    fake.script = () => ({ text: 'a\u0000b' });
    assert.equal((await generated()).text, 'a\uFFFDb');
    fake.script = () => ({ text: 'word '.repeat(10_000) });
    const { finish_reason, text } = await generated({ tokens: 10 });
    assert.equal(finish_reason, 'length');
    assert.ok(text.length < 300);
  });

  test(`${provider}: an endless stream is read up to a limit`, async () => {
    let sent = 0;
    fake.script = () => ({
      respond(response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const filler = `: ${'x'.repeat(64 * 1024)}\n\n`;
        const more = (): void => {
          while (!response.destroyed && sent < 300 * 1024 * 1024) {
            sent += filler.length;
            if (!response.write(filler)) return void response.once('drain', more);
          }
        };
        more();
      },
    });
    await run({ tokens: 10 });
    assert.ok(sent < 20 * 1024 * 1024, `${sent} bytes were read`);
  });

  test(`${provider}: a busy or failing provider is asked three times, a refusing one once`, async () => {
    const headers = { 'retry-after': '0.01' };
    for (const [status, code, requests] of [
      [429, 'llm_failed', 3],
      [503, 'llm_failed', 3],
      [401, 'llm_failed', 1],
      [400, 'llm_failed', 1],
    ] as const) {
      fake.requests.length = 0;
      fake.script = () => ({ status, headers });
      assert.deepEqual([await failed(), fake.requests.length], [code, requests], `${status}`);
    }
    fake.requests.length = 0;
    fake.script = (_request, number) => (number < 3 ? { status: 529, headers } : 'At last.');
    assert.equal((await generated()).text, 'At last.');
  });

  test(`${provider}: a silent provider ends with the node's deadline`, async () => {
    fake.script = () => ({
      respond: (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
    });
    assert.equal(await failed({ timeout_seconds: 1 }), 'timeout');
  });

  test(`${provider}: data that a schema asks for is validated`, async () => {
    fake.script = (request) => {
      const isTool = provider === 'anthropic' && Array.isArray(request.body.tools);
      return isTool ? { status: 400, body: '{"error":{"message":"tools: no"}}' } : '{"city":"Oslo"}';
    };
    const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    assert.deepEqual((await generated({ schema })).data, { city: 'Oslo' });
  });

  test(`${provider}: tools are called in parallel, whatever the stream is cut into, and their results are sent back`, async () => {
    const given = [{ article: 'pen' }, { article: '世界 🌍' }];
    for (const cut of [1, 13, undefined]) {
      fake.requests.length = 0;
      fake.script = (_request, number) => {
        const called = given.map((each) => ({ name: 'price', given: each }));
        return number === 1 ? { text: 'I look.', calls: called, ...(cut === undefined ? {} : { cut }) } : 'Two prices.';
      };
      const { text, usage } = await generated({ tools: [{ automation: 'price' }] });
      assert.deepEqual([text, usage.prompt_tokens, usage.completion_tokens], ['Two prices.', 22, 14]);
      const [first, second] = fake.requests.map(({ body: sent }) => JSON.stringify(sent));
      assert.match(first ?? '', /"name":"price","description":"Looks up a price/);
      assert.match(second ?? '', /I look\..*"article":"pen".*世界 🌍.*"article":"pen","cents":250|"cents\\":250/);
      if (provider === 'google') assert.match(second ?? '', /"thoughtSignature":"c2lnbmVk"/);
    }
  });

  test(`${provider}: a call that the limit or a broken connection cut off is not made`, async () => {
    const called = [{ name: 'price', given: { article: 'x'.repeat(5_000) } }];
    fake.script = () => ({ text: '', calls: called });
    if (provider === 'anthropic') {
      const { finish_reason } = await generated({ tools: [{ automation: 'price' }], tokens: 10 });
      assert.equal(finish_reason, 'length');
    }
    fake.script = () => ({ text: 'I look.', calls: called, breaksAt: 900 });
    assert.equal(await failed({ tools: [{ automation: 'price' }] }), 'llm_bad_response');
    fake.requests.length = 0;
    const maximum = provider === 'anthropic' ? 'max_tokens' : 'MAX_TOKENS';
    fake.script = () => ({ text: 'I look.', calls: [{ name: 'price', given: { article: 'pen' } }], finish: maximum });
    assert.equal((await generated({ tools: [{ automation: 'price' }] })).finish_reason, 'length');
    assert.equal(fake.requests.length, 1);
  });

  test(`${provider}: nothing is written to the console`, async (t) => {
    const methods = (['warn', 'error', 'log', 'info'] as const).map((name) => t.mock.method(console, name, () => {}));
    const written = t.mock.method(process.stderr, 'write', () => true);
    await generated({ temperature: 2, tokens: 60_000 });
    fake.script = () => ({ status: 400 });
    await failed();
    assert.deepEqual([...methods.map(({ mock }) => mock.callCount()), written.mock.callCount()], [0, 0, 0, 0, 0]);
  });
}

test('an operator without the add-on is told the command that installs it', async () => {
  const { missingText } = await import('../../../src/lib/add-ons.ts');
  assert.match(missingText('models'), /quarry add models/);
});
