import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { PlatformClient } from '@archastro/sdk';
import { startTestServer } from '../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const world = await server.provision.world();
const key = world.app.secretKey;

type Json = Record<string, unknown>;

function sdk() {
  return new PlatformClient({
    baseUrl: server.baseUrl,
    apiKey: world.app.publishableKey,
    accessToken: world.member.token,
  } as never);
}

async function makeSource(body: Json = {}, auth: { key?: string; token?: string } = { key }): Promise<string> {
  const answer = await server.api<{ id: string }>('POST', '/api/v1/knowledge_sources', {
    ...auth,
    body: { type: 'knowledge/documents', org: world.org.id, ...body },
  });
  assert.equal(answer.status, 201, answer.text);
  return answer.body.id;
}

test('a pushed text is found by full text, by vector and by both, at the lines and bytes that it stands at', async () => {
  const source = await makeSource();
  const text = '# Harbour\n\nShips anchor here at night.\n\n# Mountains\n\nGoats climb the ridge above the valley.\n';
  const pushed = await server.api<Json>('POST', `/api/v1/knowledge_sources/${source}/ingest`, {
    key,
    body: { content: { data: text }, title: 'Places', metadata: { shelf: 3 } },
  });
  assert.equal(pushed.status, 201, pushed.text);
  assert.equal(pushed.body.status, 'succeeded', pushed.text);
  for (const mode of ['fulltext', 'vector', 'hybrid']) {
    const found = await server.api<{ data: Json[] }>('POST', `/api/v1/knowledge_sources/${source}/search`, {
      key,
      body: { query: 'goat climbing', mode, explain: true },
    });
    assert.equal(found.status, 200, found.text);
    const [hit] = found.body.data;
    assert.ok(hit, found.text);
    assert.match(String(hit.content), /Goats climb/);
    const slice = await server.api<Json>(
      'GET',
      `/api/v1/knowledge_documents/${hit.document}/content?unit=bytes&offset=${hit.start_byte}&limit=${Number(hit.end_byte) - Number(hit.start_byte)}`,
      { key },
    );
    assert.equal(slice.body.content, hit.content);
  }
});

test('debug', () => {
  void sdk;
});
