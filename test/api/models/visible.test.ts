import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ConfigError } from '../../../src/config/config.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { startLanguageModel, toolCallEvents } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';
import { startTraceCollector } from '../../support/trace-collector.ts';

/* The operator's models from a file, what records keep, and the spans of calls. */

const model = await startLanguageModel();
const directory = mkdtempSync(join(tmpdir(), 'quarry-models-'));
after(async () => {
  await model.close();
  rmSync(directory, { recursive: true });
});

function modelsFile(content: unknown): string {
  const path = join(directory, `${Math.random()}.json`);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}
const entry = (name: string, more: object = {}) => ({
  name,
  provider: 'openai',
  model: `m-${name}`,
  url: model.url,
  ...more,
});

test('the operator’s file offers models and aliases, and chooses the default', async () => {
  const content = {
    models: [entry('small', { key: 'operator-key', prices: { input: 1_000_000, output: 1_000_000 } }), entry('large')],
    aliases: { best: ['large', 'small'] },
    default: 'best',
  };
  const server = await startTestServer({ env: { QUARRY_MODELS_FILE: modelsFile(content) }, logLevel: 'fatal' });
  try {
    const app = await server.provision.app();
    model.script = (request) => (request.model === 'm-large' ? { status: 503 } : { text: 'Small.', usage: [10, 5] });
    const messages = [{ role: 'user', content: 'Hi.' }];
    const run = await new AutomationsClient(server, app).runGraph(graphOf({ id: 'g', kind: 'generate', messages }), {});
    assert.equal((run.result as { model: string }).model, 'm-small', JSON.stringify(run.error));
    assert.equal(model.requests.at(-1)?.authorization, 'Bearer operator-key');
    const get = (path: string) => server.api<{ data: Record<string, unknown>[] }>('GET', path, { key: app.secretKey });
    const listed = await get('/api/v1/available_models');
    assert.deepEqual(
      listed.body.data.map(({ name, from, is_default }) => [name, from, is_default]),
      [
        ['best', 'operator', true],
        ['large', 'operator', false],
        ['small', 'operator', false],
      ],
    );
    assert.ok(!listed.text.includes('operator-key') && !listed.text.includes(model.url));
    const [call] = (await get('/api/v1/model_calls')).body.data;
    assert.deepEqual([call?.model, call?.alias, call?.cost], ['small', 'best', 15]);
  } finally {
    await server.close();
  }
});

test('a file that cannot be used stops the start and names what is wrong', async () => {
  for (const [content, problem] of [
    ['{', /JSON/],
    [{ models: [{ name: 'a' }] }, /models\/0/],
    [{ models: [entry('a'), entry('a')] }, /twice/],
    [{ models: [entry('a')], aliases: { b: ['missing'] } }, /missing/],
    [{ models: [entry('a')], aliases: { b: ['a'], c: ['b'] } }, /lists b/],
    [{ models: [{ name: 'a', provider: 'openai', model: 'm' }] }, /url/],
    [{ models: [], default: 'a' }, /default/],
  ] as const)
    await assert.rejects(
      startTestServer({ env: { QUARRY_MODELS_FILE: modelsFile(content) }, logLevel: 'silent' }),
      (error: unknown) => error instanceof ConfigError && problem.test(error.message),
      JSON.stringify(content),
    );
});

test('records keep contents only if the operator wants it, without secrets, and calls and searches are spans', async () => {
  const collector = await startTraceCollector();
  const server = await startTestServer({
    env: {
      ...{ QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'house', QUARRY_MODEL_CALL_CONTENTS: 'true' },
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    },
    logLevel: 'fatal',
  });
  try {
    const app = await server.provision.app();
    const client = new AutomationsClient(server, app);
    await client.call('PUT', '/secrets/TOKEN', { value: 'swordfish-42' });
    model.script = () => ({ text: 'The word is swordfish-42.', usage: [10, 5] });
    const messages = [{ role: 'user', content: 'Say {{$secrets.TOKEN}}.' }];
    const run = await client.runGraph(graphOf({ id: 'g', kind: 'generate', messages }), {});
    assert.equal(run.status, 'completed', JSON.stringify(run.error));
    const get = (path: string) => server.api<{ data: { id: string }[] }>('GET', path, { key: app.secretKey });
    const listed = await get(`/api/v1/model_calls?run=${run.id}`);
    const shown = await get(`/api/v1/model_calls/${listed.body.data[0]?.id}`);
    const { prompt, output } = shown.body as unknown as { prompt: string; output: string };
    assert.match(prompt, /"Say /);
    assert.match(output, /^The word is /);
    assert.ok(!shown.text.includes('swordfish') && !listed.text.includes('The word'));
    // Contents come from every area, so a key with scopes reads them only if it may read everything.
    for (const [scopes, shows] of [
      [['app'], false],
      [['app:read', 'automations'], false],
      [['read'], true],
    ] as const) {
      const body = { type: 'secret', scopes };
      const made = await server.api<{ full_key: string }>('POST', '/api/v1/keys', { key: app.secretKey, body });
      const path = `/api/v1/model_calls/${listed.body.data[0]?.id}`;
      const seen = await server.api<Record<string, unknown>>('GET', path, { key: made.body.full_key });
      assert.deepEqual([seen.status, 'prompt' in seen.body, 'output' in seen.body], [200, shows, shows], `${scopes}`);
    }
    // In a call of a tool, a secret is text within JSON within JSON.
    const key = 'a "swordfish"\nof two swordfish';
    await client.call('PUT', '/secrets/KEY', { value: key });
    model.script = ({ messages: sent }) =>
      sent.at(-1)?.role === 'tool' ? 'Done.' : { raw: toolCallEvents([['list_files', { key }]], 'I call.') };
    const asked = [{ role: 'user', content: '{{$secrets.KEY}}' }];
    const tools = [{ operation: 'list_files' }];
    const called = await client.runGraph(graphOf({ id: 'g', kind: 'generate', messages: asked, tools }), {});
    assert.equal(called.status, 'completed', JSON.stringify(called.error));
    const calls = await get(`/api/v1/model_calls?run=${called.id}`);
    assert.equal(calls.body.data.length, 2);
    for (const { id } of calls.body.data) {
      const { text } = await get(`/api/v1/model_calls/${id}`);
      assert.match(text, /list_files/);
      assert.doesNotMatch(text, /swordfish/);
    }
    const search = await server.api('POST', '/api/v1/knowledge_search', {
      key: app.secretKey,
      body: { query: 'words' },
    });
    assert.equal(search.status, 200, search.text);
  } finally {
    await server.close();
    collector.close();
  }
  const call = collector.find(/^chat house$/);
  assert.deepEqual(
    ['operation.name', 'provider.name', 'request.model', 'usage.input_tokens', 'usage.output_tokens'].map(
      (name) => call.attributes[`gen_ai.${name}`],
    ),
    ['chat', 'openai', 'house', 10, 5],
  );
  assert.ok(Number(call.attributes['gen_ai.response.time_to_first_chunk']) > 0);
  assert.equal(collector.find(/^retrieval$/).attributes['gen_ai.operation.name'], 'retrieval');
  assert.ok(!collector.text().includes('swordfish'));
});
