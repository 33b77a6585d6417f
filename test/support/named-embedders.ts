import assert from 'node:assert/strict';
import { beforeEach } from 'node:test';
import { parseId } from '../../src/lib/ids.ts';
import { startEmbeddingService } from './embedding-service.ts';
import { knowledgeOf } from './knowledge.ts';
import { startTestServer } from './server.ts';
import { until } from './until.ts';

type Embedding = Record<string, unknown> & {
  embedder: string | null;
  serving: string | null;
  status: string;
  embedded: number;
  tokens: number;
  cost: number;
  estimate?: { documents: number; tokens: number; cost: number | null };
};
export type ModelCall = Record<string, unknown> & { status: string; operation?: string };

/**
 * A server, two services of embeddings, which each test finds as they were at first, and an app whose sources name
 * models of the registry as their embedders.
 */
export async function startNamedEmbedders() {
  const [first, second] = [await startEmbeddingService(), await startEmbeddingService()];
  const server = await startTestServer({
    env: { QUARRY_FETCH_ALLOW: '127.0.0.1', QUARRY_EMBED_QUERY_MS: '30000' },
    logLevel: 'fatal',
  });
  const { api } = server;
  const world = await server.provision.world();
  const key = world.app.secretKey;
  const app = knowledgeOf(server, { key });
  const org = world.org.id;
  let names = 0;
  beforeEach(() => {
    const untouched = { broken: undefined, alter: undefined, silentOn: undefined };
    for (const each of [first, second]) Object.assign(each, { ...untouched, texts: [], batches: [], bodies: [] });
  });

  async function createModel(url: string, more: Record<string, unknown> = {}): Promise<{ id: string; name: string }> {
    const name = `embedder-${++names}`;
    const body = { name, kind: 'embedding', provider: 'openai', model: name, url, dimensions: 64, ...more };
    const made = await api<{ id: string }>('POST', '/api/v1/models', { key, body });
    assert.equal(made.status, 201, made.text);
    return { id: made.body.id, name };
  }

  async function createSource(more: Record<string, unknown> = {}): Promise<string> {
    const body = { org, type: 'knowledge/documents', ...more };
    const made = await api<{ id: string }>('POST', '/api/v1/knowledge_sources', { key, body });
    assert.equal(made.status, 201, made.text);
    return made.body.id;
  }

  const name = (source: string, embedder: string | null) =>
    api<{ embedder?: string }>('PATCH', `/api/v1/knowledge_sources/${source}`, { key, body: { embedder } });

  async function embeddingOf(source: string, query = ''): Promise<Embedding> {
    const got = await api<Embedding>('GET', `/api/v1/knowledge_sources/${source}/embedding${query}`, { key });
    assert.equal(got.status, 200, got.text);
    return got.body;
  }

  /** Runs what is due for the sources of the app, as if their retries were due now. */
  async function embedDue(): Promise<void> {
    await server.db`update knowledge_embedders set retry_at = null`;
    const signal = new AbortController().signal;
    await server.server.work.tasks.embed_documents?.({ appId: world.app.app.uuid }, {
      jobId: '0',
      signal,
      waitOutside: <T>(work: () => Promise<T>) => work(),
    } as never);
  }

  async function untilServing(source: string, embedder: string | null): Promise<Embedding> {
    await until(async () => {
      const { serving, status } = await embeddingOf(source);
      return serving === embedder && status === 'ready';
    });
    return embeddingOf(source);
  }

  async function search(source: string, query: string, mode = 'vector') {
    const body = { query, mode };
    const found = await api<{ data: { content: string }[]; vectors_unavailable?: string }>(
      'POST',
      `/api/v1/knowledge_sources/${source}/search`,
      { key, body },
    );
    assert.equal(found.status, 200, found.text);
    return found.body;
  }

  async function spacesOf(source: string): Promise<string[]> {
    const rows = await server.db<{ model: string }[]>`
      select distinct model from knowledge_vectors where source_id = ${parseId('source', source) ?? ''} order by model`;
    return rows.map(({ model }) => model);
  }

  async function close(): Promise<void> {
    await server.close();
    await Promise.all([first.close(), second.close()]);
  }

  const calls = { createModel, createSource, name, embeddingOf, embedDue, untilServing, search, spacesOf };
  return { ...calls, first, second, server, world, key, app, org, close };
}
