import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { startEmbeddingService } from '../../support/embedding-service.ts';
import { EventStream } from '../../support/event-stream.ts';
import type { Json } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';
import { createSide, normalise, ownerOf, readEverything, type Side, searchesFor } from '../../support/twin-sources.ts';
import { until } from '../../support/until.ts';

/*
 * The same comparison as in hidden-documents.test.ts, for what else shows a source: vectors of a remote embedder, nodes
 * of workflows, event streams, pulls and retries.
 */

const service = await startEmbeddingService();
const server = await startTestServer({
  env: {
    QUARRY_EMBEDDER: 'openai',
    QUARRY_EMBED_URL: service.url,
    QUARRY_EMBED_MODEL: 'test',
    QUARRY_EMBED_DIMENSIONS: '64',
  },
});
const streams: EventStream[] = [];
const [withHidden, without] = [await createSide(server), await createSide(server)];
const sides = [withHidden, without];
after(async () => {
  for (const stream of streams) stream.close();
  await Promise.all(sides.map(({ mcp }) => mcp.close()));
  await server.close();
  await service.close();
});

const forInsider = ({ insider }: Side) => ({
  acl: { grants: [{ principal_type: 'user', principal: insider.id }] },
});

/** A source on each side. Both have the same documents; the first one also has hidden ones. */
async function createTwins(hidden: string[]): Promise<string[]> {
  const sources: string[] = [];
  for (const side of sides) {
    side.names.clear();
    const owner = ownerOf(server, side);
    const source = await owner.createSource({ agent: side.agent.id });
    if (side === withHidden) for (const data of hidden) await owner.push(source, data, forInsider(side));
    for (const data of ['# Alpha\n\nThe heron waits.', '# Beta\n\nThe bittern booms in the marsh.'])
      await owner.push(source, data);
    if (side === withHidden) for (const data of hidden) await owner.push(source, `${data} Again.`, forInsider(side));
    sources.push(source);
  }
  return sources;
}

async function compare(sources: string[]): Promise<void> {
  const read = (side: Side) =>
    readEverything(server, side, sources[sides.indexOf(side)] ?? '', searchesFor(['heron', 'marsh', 'alpha']));
  const [one, other] = [await read(withHidden), await read(without)];
  for (const [i, line] of one.entries()) assert.equal(line, other[i]);
  assert.equal(one.length, other.length);
}

test('vectors of a remote embedder show nothing of hidden documents, also not while theirs are missing', async () => {
  await compare(await createTwins(['The heron and the marsh.', 'Alpha, beta, heron.']));
  service.refusedOn = 'Unembeddable';
  const sources = await createTwins(['Unembeddable heron in the marsh.']);
  assert.ok(service.refused > 0);
  service.refusedOn = undefined;
  await compare(sources);
});

test('nodes of a run that acts as a reader find what the reader finds', async () => {
  const sources = await createTwins(['The heron of the secret marsh.']);
  const results: string[] = [];
  for (const [i, side] of sides.entries()) {
    const automations = new AutomationsClient(server, side.app);
    const { id } = await automations.createAutomation({
      run_as_user: side.reader.id,
      workflow: graphOf(
        { id: 'find', kind: 'search', source: sources[i], query: 'heron marsh', on_success: 'done' },
        { id: 'done', kind: 'complete', result: '{{$nodes.find}}' },
      ),
    });
    const run = await automations.waitForEnd((await automations.invoke(id)).id);
    assert.equal(run.status, 'completed', JSON.stringify(run));
    results.push(normalise(side, JSON.stringify(run.result)));
  }
  assert.match(results[0] ?? '', /heron waits/);
  assert.equal(results[0], results[1]);
});

test('a reader of the event stream receives the same events', async () => {
  const seen: string[][] = [];
  for (const side of sides) {
    const lines: string[] = [];
    const stream = await EventStream.open(`${server.baseUrl}/api/v1/events/stream`, {
      authorization: `Bearer ${side.reader.token}`,
    });
    streams.push(stream);
    assert.equal((await stream.take()).event, 'ready');
    void (async () => {
      for (let event = await stream.next(); event; event = await stream.next())
        lines.push(normalise(side, JSON.stringify({ ...event.data, sequence: 0 })));
    })();
    seen.push(lines);
  }
  await createTwins(['The heron of the secret marsh.']);
  for (const side of sides) {
    const body = { filename: 'last.txt', content_type: 'text/plain', data: '', org: side.org.id };
    await server.api('POST', '/api/v1/files', { key: side.app.secretKey, body });
  }
  await until(() => seen.every((lines) => lines.at(-1)?.includes('last.txt')));
  assert.ok((seen[0]?.length ?? 0) >= 4);
  const withoutIds = seen.map((lines) => lines.map((line) => line.replaceAll(/id\d+/g, 'id')));
  assert.deepEqual(withoutIds[0], withoutIds[1]);
});

test('the stream of an ingestion is the same with a hidden document, and 404 if it has one', async () => {
  const [source = ''] = await createTwins(['The secret heron.']);
  const owner = ownerOf(server, withHidden);
  const { id: hidden } = await owner.ingest(source, { content: { data: 'More secrets.' }, ...forInsider(withHidden) });
  for (const id of [hidden, 'cig_0000000000000000000000']) {
    const response = await server.api('GET', `/api/v1/knowledge_ingestions/${id}/stream`, {
      token: withHidden.reader.token,
    });
    assert.equal(response.status, 404);
  }
});

test('a retried search is checked again', async () => {
  const [source = ''] = await createTwins([]);
  const owner = ownerOf(server, withHidden);
  const document = await owner.push(source, 'The capercaillie dances.');
  const body = { query: 'capercaillie' };
  const headers = { 'idempotency-key': 'again' };
  for (const path of [
    `/api/v1/knowledge_sources/${source}/search`,
    '/api/v1/knowledge_search',
    `/api/v1/agents/${withHidden.agent.id}/search`,
    `/v1/vector_stores/${source.replace('cso_', 'vs_')}/search`,
  ]) {
    const search = async () => {
      const found = await server.api<{ data: Json[] }>('POST', path, { token: withHidden.reader.token, headers, body });
      assert.equal(found.status, 200, found.text);
      return found.text.includes('capercaillie dances');
    };
    assert.equal(await search(), true, path);
    const restricted = await owner.send('PATCH', `/knowledge_documents/${document}/acl`, forInsider(withHidden).acl);
    assert.equal(restricted.status, 200);
    assert.equal(await search(), false, path);
    assert.equal((await owner.send('DELETE', `/knowledge_documents/${document}/acl`)).status, 204);
  }
});

test('numbers that count every document are not shown where some are restricted', async () => {
  const [source = '', other = ''] = await createTwins(['The secret heron.']);
  const held = { documents: 3, of: 4, since: '2026-01-01T00:00:00.000Z' };
  await server.db`update knowledge_sources set held_deletions = ${JSON.stringify(held)}::text::jsonb`;
  await server.db`
    insert into knowledge_models (app_id, source_id, refused_bytes) select app_id, id, 77 from knowledge_sources
    on conflict (app_id, source_id) do update set refused_bytes = 77`;
  const shown = async (id: string, auth: { key: string } | { token: string }) => {
    type Shown = { held_deletions: Json | null; learned_model: { bytes_needed: number | null } };
    const { body } = await server.api<Shown>('GET', `/api/v1/knowledge_sources/${id}`, auth);
    return [body.held_deletions?.of ?? null, body.learned_model.bytes_needed];
  };
  assert.deepEqual(await shown(source, { token: withHidden.reader.token }), [null, null]);
  assert.deepEqual(await shown(source, { key: withHidden.app.secretKey }), [4, 77]);
  assert.deepEqual(await shown(other, { token: without.reader.token }), [4, 77]);
});
