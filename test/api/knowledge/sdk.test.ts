import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { PlatformClient } from '@archastro/sdk';
import {
  contextDocumentContentSchema,
  contextDocumentSchema,
  contextIngestionSchema,
} from '@archastro/sdk/dist/types/common.js';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const { app, org, member } = await server.provision.world();

for (const [name, client] of [
  ['an end user', PlatformClient.withToken(app.publishableKey, member.token, server.baseUrl)],
  ['a secret key', PlatformClient.withSecretKey(app.secretKey, server.baseUrl)],
] as const)
  test(`the published client drives every knowledge method as ${name}`, async () => {
    const sources = client.knowledge_sources;
    const kinds = await sources.kinds.list();
    assert.equal(kinds.data.length, 7);
    const source = await sources.create({ type: 'knowledge/documents', user: member.id, metadata: { a: 1 } });
    assert.equal((await sources.get(source.id)).state, 'active');
    assert.equal((await sources.update(source.id, { state: 'paused' })).state, 'paused');
    const listed = await sources.list({ type: 'knowledge/documents', ownerScope: 'individual' });
    assert.ok(listed.data.some(({ id }) => id === source.id));
    const ingestion = await sources.ingest(source.id, {
      content: { data: 'Moss grows on the north side.', content_type: 'text/plain' },
      title: 'Moss',
      dedupe: true,
    });
    contextIngestionSchema.parse(ingestion);
    await knowledgeOf(server, { key: app.secretKey }).waitForIngestion(ingestion.id);
    contextIngestionSchema.parse(await client.knowledge_ingestions.get(ingestion.id));
    const found = await sources.search(source.id, { query: 'moss', mode: 'hybrid', max_results: 5 });
    assert.equal(found.data[0]?.kind, 'chunk');
    const documents = client.knowledge_documents;
    const [document] = (await documents.list({ source: [source.id], q: 'mo' })).data;
    assert.ok(document);
    contextDocumentSchema.parse(await documents.get(document.id));
    contextDocumentContentSchema.parse(await documents.content(document.id));
    const slice = await documents.content(document.id, { offset: 0, limit: 4, unit: 'bytes' });
    contextDocumentContentSchema.parse(slice);
    assert.equal(slice.content, 'Moss');
    const updated = await documents.update(document.id, { content: { data: 'Lichen grows too.' } });
    contextIngestionSchema.parse(updated);
    await documents.delete(document.id);
    await sources.delete(source.id);
    await assert.rejects(sources.get(source.id));
  });

test("the published client searches an agent's knowledge", async () => {
  const client = PlatformClient.withSecretKey(app.secretKey, server.baseUrl);
  const agent = await server.provision.agent(app, { org });
  const source = await client.knowledge_sources.create({ type: 'knowledge/documents', agent: agent.id });
  await client.knowledge_sources.ingest(source.id, { content: { data: 'Basalt columns.' } });
  const found = await client.agents.search(agent.id, { query: 'basalt', source_types: ['knowledge/documents'] });
  assert.equal(found.data.length, 1);
});
