import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { startEmbeddingService } from '../../support/embedding-service.ts';
import { knowledgeOf, type TestIngestion } from '../../support/knowledge.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { startWatch } from '../../support/speed.ts';

/* One place for jobs, and an embedding service that does not respond to some texts. */

const brokenOffWithinMs = 2_000;
/** More than what is worked within the request, so that a job does it. */
const large = (word: string): string => `A sentence about ${word} and rivers. `.repeat(10_000);

let service: Awaited<ReturnType<typeof startEmbeddingService>>;
let server: TestServer;
let first: TestTenants;
let second: TestTenants;

before(async () => {
  service = await startEmbeddingService();
  server = await startTestServer({
    env: {
      QUARRY_EMBEDDER: 'openai',
      QUARRY_EMBED_URL: service.url,
      QUARRY_EMBED_MODEL: 'test',
      QUARRY_EMBED_DIMENSIONS: '64',
      QUARRY_JOB_WORKERS: '1',
    },
  });
  first = await server.provision.world();
  second = await server.provision.world();
});
after(async () => {
  await server.close();
  await service.close();
});

test('ingestions whose embedding service does not respond keep no other app waiting, and end when their source is deleted', async () => {
  service.silentOn = 'herons';
  const app = knowledgeOf(server, { key: first.app.secretKey });
  const sources = [];
  for (let n = 0; n < 2; n++) {
    const source = await app.createSource({ org: first.org.id });
    sources.push(source);
    const body = { content: { data: large('herons') } };
    assert.equal((await app.send<TestIngestion>('POST', `/knowledge_sources/${source}/ingest`, body)).status, 201);
  }
  await service.waitForOpenRequests(2);

  const other = knowledgeOf(server, { key: second.app.secretKey });
  const source = await other.createSource({ org: second.org.id });
  const pushed = await other.ingest(source, { content: { data: large('storks') } });
  assert.deepEqual([pushed.status, pushed.metadata.embedding], ['succeeded', undefined]);
  // The job that catches up with missing vectors may have sent a third meanwhile.
  const both = service.hanging.slice(0, 2);
  assert.ok(both.every((response) => !response.destroyed));

  const closed = both.map((response) => once(response, 'close'));
  const watch = startWatch();
  for (const id of sources) assert.equal((await app.send('DELETE', `/knowledge_sources/${id}`)).status, 204);
  await Promise.all(closed);
  watch.within(brokenOffWithinMs, 'The end of the request');
});

test('adding missing vectors occupies no slot, and a stop aborts the request', async () => {
  service.hanging.length = 0;
  service.silentOn = undefined;
  service.broken = 400;
  const app = knowledgeOf(server, { key: first.app.secretKey });
  const waiting = await app.createSource({ org: first.org.id });
  const pushed = await app.ingest(waiting, { content: { data: 'Bitterns hide in the reeds.' } });
  assert.equal(pushed.metadata.embedding, 'pending');
  service.broken = undefined;
  service.silentOn = 'Bitterns';
  await service.waitForOpenRequests(1);

  const other = knowledgeOf(server, { key: second.app.secretKey });
  const source = await other.createSource({ org: second.org.id });
  assert.equal((await other.ingest(source, { content: { data: large('egrets') } })).status, 'succeeded');

  const [hanging] = service.hanging;
  assert.ok(hanging);
  const closed = once(hanging, 'close');
  const watch = startWatch();
  await Promise.all([closed, server.services.stopWorkers()]);
  watch.within(brokenOffWithinMs, 'The end of the request');
});
