import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { startEmbeddingService } from '../../support/embedding-service.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startLanguageModel, toolCallEvents } from '../../support/language-model.ts';
import { startRerankingService } from '../../support/reranking-service.ts';
import { startTestServer } from '../../support/server.ts';
import { startTraceCollector } from '../../support/trace-collector.ts';
import { WebhookReceiver } from '../../support/webhook-receiver.ts';
import { WebhooksClient } from '../../support/webhooks.ts';

/* One trace from an upload to the webhook that announces what a language model made of it; one of a search. */

const model = await startLanguageModel();
const embedding = await startEmbeddingService();
const reranking = await startRerankingService();
const collector = await startTraceCollector();
const receiver = await WebhookReceiver.start();
after(async () => {
  collector.close();
  await Promise.all([model, embedding, reranking, receiver].map((each) => each.close()));
});

test('an upload, its extraction, the calls of the model and of its tools, and the webhook are one trace', async () => {
  const server = await startTestServer({
    env: {
      ...{ QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'house', QUARRY_FETCH_ALLOW: '127.0.0.1' },
      ...{ QUARRY_EMBEDDER: 'openai', QUARRY_EMBED_URL: embedding.url, QUARRY_EMBED_MODEL: 'vectors' },
      ...{ QUARRY_EMBED_MODEL_DIMENSIONS: '64', QUARRY_EMBED_DIMENSIONS: '32', QUARRY_EMBED_QUERY_MS: '60000' },
      ...{ QUARRY_RERANK_URL: reranking.url, QUARRY_RERANK_MODEL: 'order', QUARRY_RERANK_MS: '60000' },
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    },
    logLevel: 'fatal',
  });
  const traceId = 'c'.repeat(32);
  const searchId = 'e'.repeat(32);
  const namedId = 'f'.repeat(32);
  const traceparent = (id: string) => ({ traceparent: `00-${id}-${'d'.repeat(16)}-01` });
  try {
    const app = await server.provision.app();
    const client = new AutomationsClient(server, app);
    await new WebhooksClient(server, app.secretKey).create(`${receiver.origin}/done`, ['invoice.read']);
    await new WebhooksClient(server, app.secretKey).create(`${receiver.origin}/ended`, ['automation_run.completed']);
    model.script = ({ messages }) =>
      messages.some(({ role }) => role === 'tool') ? 'An invoice.' : { raw: toolCallEvents([['list_files', {}]]) };
    await client.createAutomation({
      ...{ type: 'trigger', trigger: 'file.created', filter: '$contains(filename, ".bin")' },
      workflow: graphOf(
        {
          ...{ id: 'read', kind: 'extract', file: '{{$.payload.file}}', on_success: 'ask' },
          ...{ destination_kind: 'storage', destination_path: 'out' },
        },
        {
          ...{ id: 'ask', kind: 'generate', messages: [{ role: 'user', content: 'What is it?' }] },
          ...{ tools: [{ operation: 'list_files' }], on_success: 'tell' },
        },
        { id: 'tell', kind: 'emit_event', name: 'invoice.read', payload: { text: '{{$nodes.ask.text}}' } },
      ),
    });
    const uploaded = await server.api('POST', '/api/v1/files', {
      key: app.secretKey,
      headers: traceparent(traceId),
      body: { filename: 'invoice-7.bin', content_type: 'text/plain', data: 'VG90YWwgNw==' },
    });
    assert.equal(uploaded.status, 201, uploaded.text);
    const [message] = await receiver.waitFor('/done', 1);
    assert.deepEqual(message?.event.data, { text: 'An invoice.' });
    const [ended] = await receiver.waitFor('/ended', 1);
    // The receiver is a host that the operator named.
    for (const each of [message, ended]) assert.match(String(each?.headers.traceparent), new RegExp(`^00-${traceId}-`));

    const knowledge = knowledgeOf(server, { key: app.secretKey });
    const source = await knowledge.createSource({ org: (await server.provision.org(app)).id });
    await knowledge.push(source, '# Iron\n\nIron is a metal.');
    const found = await server.api('POST', `/api/v1/knowledge_sources/${source}/search`, {
      ...{ key: app.secretKey, headers: traceparent(searchId), body: { query: 'metal' } },
    });
    assert.equal(found.status, 200, found.text);

    for (const named of [
      { name: 'meanings', kind: 'embedding', model: 'named-vectors', url: embedding.url, dimensions: 64 },
      { name: 'judge', kind: 'rerank', model: 'named-order', url: reranking.url.replace(/\/rerank$/, '') },
    ])
      assert.equal((await client.call('POST', '/models', { ...named, provider: 'openai' })).status, 201);
    const renamed = await server.provision.org(app);
    const other = await knowledge.createSource({ org: renamed.id, embedder: 'meanings' });
    await knowledge.push(other, '# Zinc\n\nZinc is a metal.');
    const named = await server.api<{ vectors_unavailable?: string; rerank_unavailable?: string }>(
      'POST',
      `/api/v1/knowledge_sources/${other}/search`,
      {
        ...{ key: app.secretKey, headers: traceparent(namedId) },
        body: { query: 'metal', rerank_model: 'judge' },
      },
    );
    assert.equal(named.status, 200, named.text);
  } finally {
    await server.close();
  }
  for (const name of [
    /^POST \/api\/v1\/files$/,
    /^job /,
    /^run$/,
    /^parser /,
    /^node call_operation$/,
    /^deliver webhook$/,
  ])
    collector.find(name, traceId);
  const chat = collector.find(/^chat house$/, traceId);
  const attribute = (span: typeof chat, name: string) => span.attributes[`gen_ai.${name}`];
  assert.deepEqual(
    ['operation.name', 'provider.name', 'request.model', 'usage.input_tokens'].map((name) => attribute(chat, name)),
    ['chat', 'openai', 'house', 10],
  );
  assert.match(JSON.stringify(attribute(chat, 'response.finish_reasons')), /tool_calls/);
  const tool = collector.find(/^execute_tool list_files$/, traceId);
  assert.deepEqual([attribute(tool, 'operation.name'), attribute(tool, 'tool.name')], ['execute_tool', 'list_files']);
  assert.ok(collector.pathOf(tool).includes('node call_operation'));
  const search = [/^retrieval$/, /^embeddings vectors$/, /^rerank order$/].map((name) =>
    collector.find(name, searchId),
  );
  assert.deepEqual(
    search.map((span) => attribute(span, 'operation.name')),
    ['retrieval', 'embeddings', 'rerank'],
  );
  for (const [operation, name] of [
    ['embeddings', 'named-vectors'],
    ['rerank', 'named-order'],
  ]) {
    const span = collector.find(new RegExp(`^${operation} ${name}$`), namedId);
    assert.deepEqual(
      ['operation.name', 'provider.name', 'request.model'].map((each) => attribute(span, each)),
      [operation, 'openai', name],
    );
  }
  for (const text of ['An invoice.', 'What is it?', 'invoice-7', 'metal']) assert.ok(!collector.text().includes(text));
});
