import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { EventStream } from '../../support/event-stream.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import { type Json, knowledgeOf, type TestIngestion } from '../../support/knowledge.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
after(() => server.close());
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const org = { org: world.org.id };

type Listed = { data: { id: string; title?: string; source_url?: string; total_size: number }[] };
const documentsOf = async (source: string) =>
  (await app.send<Listed>('GET', `/knowledge_documents?source=${source}`)).body.data;

/** Of all sources of an agent. A message does not wait for what it sets off. */
async function waitForIngestionsOf(agent: string): Promise<void> {
  const list = async (path: string) => (await app.send<{ data: { id: string }[] }>('GET', path)).body.data;
  for (const source of await list(`/knowledge_sources?agent=${agent}`))
    for (const { id } of await list(`/knowledge_sources/${source.id}/ingestions`)) await app.waitForIngestion(id);
}

test('a link is pulled, then requested conditionally, and replaced when it changes', async () => {
  let body = htmlPage('Kettles');
  let conditional = 0;
  const site = await startSite({
    '/page': (request, response) => {
      const etag = `"${body.length}"`;
      response.setHeader('content-type', 'text/html');
      response.setHeader('etag', etag);
      if (request.headers['if-none-match'] === etag) {
        conditional += 1;
        response.statusCode = 304;
        response.end();
      } else response.end(body);
    },
  });
  try {
    const source = await app.createSource({ ...org, type: 'web/link', payload: { url: `${site.origin}/page` } });
    const first = await app.ingest(source, { pull: true });
    assert.equal(first.status, 'succeeded', JSON.stringify(first));
    const [document] = await documentsOf(source);
    assert.deepEqual([document?.title, document?.source_url], ['Kettles', `${site.origin}/page`]);
    assert.equal((await app.search(source, { query: 'kettles', mode: 'fulltext' })).length, 1);

    const second = await app.ingest(source, { pull: true });
    assert.deepEqual([second.status, second.stats.unchanged, conditional], ['succeeded', 1, 1]);

    body = htmlPage('Teapots and kettles');
    const third = await app.ingest(source, { pull: true });
    assert.deepEqual([third.status, third.stats.documents], ['succeeded', 1]);
    const [changed, ...others] = await documentsOf(source);
    assert.deepEqual([changed?.id, changed?.title, others.length], [document?.id, 'Teapots and kettles', 0]);
    assert.equal((await app.search(source, { query: 'teapots', mode: 'fulltext' })).length, 1);
  } finally {
    await site.close();
  }
});

test('a pull of a site adds new pages, leaves unchanged ones and removes deleted ones', async () => {
  const pages: Record<string, string> = {
    '/': htmlPage('Home', ['/a', '/b', '/c']),
    '/a': htmlPage('Apples'),
    '/b': htmlPage('Pears'),
    '/c': htmlPage('Plums'),
  };
  const site = await startSite({}, (_request, response, url) => {
    const page = pages[url.pathname];
    response.statusCode = page ? 200 : 404;
    response.setHeader('content-type', 'text/html');
    response.end(page ?? 'gone');
  });
  try {
    const source = await app.createSource({
      ...org,
      type: 'scrape/site',
      payload: { url: `${site.origin}/`, exclude_paths: ['/c'] },
    });
    const first = await app.ingest(source, { pull: true });
    assert.equal(first.status, 'succeeded', JSON.stringify(first));
    assert.deepEqual((await documentsOf(source)).map(({ title }) => title).sort(), ['Apples', 'Home', 'Pears']);
    delete pages['/a'];
    pages['/b'] = htmlPage('Ripe pears');
    pages['/d'] = htmlPage('Cherries');
    pages['/'] = htmlPage('Home', ['/b', '/d']);
    const second = await app.ingest(source, { pull: true });
    assert.equal(second.status, 'succeeded');
    assert.deepEqual((await documentsOf(source)).map(({ title }) => title).sort(), ['Cherries', 'Home', 'Ripe pears']);
    assert.equal(second.stats.removed, 1);
    assert.deepEqual(await app.search(source, { query: 'apples', mode: 'fulltext' }), []);
  } finally {
    await site.close();
  }
});

test('the stream of an ingestion shows each change up to its end, resumes, and ends with the ingestion', async () => {
  let go = () => {};
  const opened = new Promise<void>((resolve) => {
    go = resolve;
  });
  const site = await startSite({
    '/slow': async (_request, response) => {
      await opened;
      response.setHeader('content-type', 'text/html');
      response.end(htmlPage('Slow'));
    },
    '/never': () => {},
  });
  const follow = (id: string, headers: Record<string, string> = {}) =>
    EventStream.open(`${server.baseUrl}/api/v1/knowledge_ingestions/${id}/stream`, {
      'x-api-key': world.app.secretKey,
      ...headers,
    });
  const start = async (path: string) => {
    const source = await app.createSource({ ...org, type: 'web/link', payload: { url: `${site.origin}${path}` } });
    const ingest = (body: Json) => app.send<TestIngestion>('POST', `/knowledge_sources/${source}/ingest`, body);
    const { body } = await ingest({ pull: true });
    return { source, id: body.id, queued: (await ingest({ pull: true, on_active: 'queue' })).body.id };
  };
  try {
    const { id, queued } = await start('/slow');
    const [active, waiting] = [await follow(id), await follow(queued)];
    const first = await active.take();
    assert.deepEqual([first.event, first.data.id], ['ingestion_update', id]);
    assert.equal((await waiting.take()).data.status, 'pending');
    go();
    for (const stream of [active, waiting]) {
      let last = await stream.take();
      for (let next = await stream.next(); next; next = await stream.next()) {
        assert.ok(next.id > last.id);
        last = next;
      }
      assert.equal(last.data.status, 'succeeded');
      // A reader who lost the end gets it, and so does one who has it.
      for (const seen of [last.id - 1, last.id]) {
        const again = await follow(last.data.id, { 'last-event-id': String(seen) });
        assert.deepEqual([await again.next(), await again.next()], [last, undefined]);
      }
    }
    const doomed = await start('/never');
    const stream = await follow(doomed.id);
    await stream.take();
    assert.equal((await app.send('DELETE', `/knowledge_sources/${doomed.source}`)).status, 204);
    while ((await stream.next()) !== undefined);
    assert.equal((await follow(doomed.id)).response.statusCode, 404);
  } finally {
    await site.close();
  }
});

test('an unavailable start page fails the pull with a reason and changes no document', async () => {
  let up = true;
  const site = await startSite({}, (_request, response) => {
    response.statusCode = up ? 200 : 404;
    response.setHeader('content-type', 'text/html');
    response.end(htmlPage('Lighthouse'));
  });
  try {
    const source = await app.createSource({
      ...org,
      type: 'web/link',
      payload: { url: `${site.origin}/x` },
      state: 'paused',
    });
    assert.equal((await app.ingest(source, { pull: true })).status, 'succeeded');
    up = false;
    const failed = await app.ingest(source, { pull: true });
    assert.equal(failed.status, 'failed');
    assert.ok(failed.error?.code && failed.error.message);
    assert.equal((await app.search(source, { query: 'lighthouse', mode: 'fulltext' })).length, 1);
  } finally {
    await site.close();
  }
});

test("a file is pulled with the rights of the source's owner, and again only if the file has changed", async () => {
  const upload = (text: string, as: Json = {}) =>
    app.send<{ id: string }>('POST', '/files', {
      filename: 'f.md',
      content_type: 'text/markdown',
      data: Buffer.from(text).toString('base64'),
      ...as,
    });
  const file = (await upload('# Granite\n\nA hard rock.', { user: world.member.id })).body.id;
  const source = await app.createSource({ type: 'file/document', user: world.member.id, payload: { file_id: file } });
  const first = await app.ingest(source, { pull: true });
  assert.equal(first.status, 'succeeded', JSON.stringify(first));
  assert.equal((await app.search(source, { query: 'granite', mode: 'fulltext' })).length, 1);
  assert.equal((await app.ingest(source, { pull: true })).stats.unchanged, 1);
  assert.equal((await documentsOf(source)).length, 1);
  const foreign = (await upload('# Private', { user: world.viewer.id })).body.id;
  assert.equal((await app.send('PATCH', `/knowledge_sources/${source}`, { payload: { file: foreign } })).status, 200);
  const refused = await app.ingest(source, { pull: true });
  assert.deepEqual([refused.status, refused.error?.code], ['failed', 'not_found']);
});

test('a schedule pulls an active source by itself, and never a paused one', async () => {
  const site = await startSite({}, (_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(htmlPage('Tides'));
  });
  try {
    const payload = { url: `${site.origin}/`, schedule: '*/5 * * * *' };
    const active = await app.createSource({ ...org, type: 'web/link', payload });
    const paused = await app.createSource({ ...org, type: 'web/link', payload, state: 'paused' });
    await server.db`update knowledge_sources set next_pull_at = now() - interval '1 minute' where next_pull_at is not null`;
    await server.server.work.tasks.start_pulls?.({}, {} as never);
    const list = async (source: string) =>
      (await app.send<{ data: { id: string }[] }>('GET', `/knowledge_sources/${source}/ingestions`)).body.data;
    // The server's own task may have started it, and may not have committed.
    let [pull] = await list(active);
    while (pull === undefined) [pull] = await list(active);
    assert.equal((await app.waitForIngestion(pull.id)).status, 'succeeded');
    assert.deepEqual(await list(paused), []);
  } finally {
    await site.close();
  }
});

test('a pull that cannot be started is tried again later, and delays no other source', async () => {
  const site = await startSite({}, (_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(htmlPage('Tides'));
  });
  const payload = { url: `${site.origin}/`, schedule: '*/5 * * * *' };
  const create = () => app.createSource({ ...org, type: 'web/link', payload });
  const [broken, kept] = [await create(), await create()];
  const id = parseId('source', broken) ?? '';
  try {
    await server.db`create table refused as select ${id}::uuid as id`;
    await server.db`create function refuse_pull() returns trigger language plpgsql as $$ begin
      if new.source_id in (select id from refused) then raise exception 'refused'; end if; return new; end $$`;
    await server.db`create trigger refuse_pull before insert on knowledge_ingestions
      for each row execute function refuse_pull()`;
    await server.db`
      update knowledge_sources set next_pull_at = now() - (1 + (id = ${id})::int) * interval '1 minute'
      where id = any(${[id, parseId('source', kept) ?? '']}::uuid[])`;
    await server.server.work.tasks.start_pulls?.({}, {} as never);
    const list = async (source: string) =>
      (await app.send<{ data: { id: string }[] }>('GET', `/knowledge_sources/${source}/ingestions`)).body.data;
    await until(async () => (await list(kept)).length === 1);
    assert.deepEqual(await list(broken), []);
    const [row] = await server.db<{ isLater: boolean }[]>`
      select next_pull_at > now() as is_later from knowledge_sources where id = ${id}`;
    assert.equal(row?.isLater, true);
  } finally {
    await server.db`drop trigger if exists refuse_pull on knowledge_ingestions`;
    await site.close();
  }
});

test('an inbound URL stores each posted body as a document, until its secret is replaced', async () => {
  const agent = await server.provision.agent(world.app, { org: world.org });
  const installed = await app.send<{ id: string; inbound_url: string }>('POST', '/installations', {
    agent: agent.id,
    kind: 'webhook/inbound',
  });
  assert.equal(installed.status, 201);
  const { body } = await app.send<{ data: Json[] }>('GET', `/knowledge_sources?installation=${installed.body.id}`);
  const [source] = body.data;
  assert.deepEqual(
    [source?.type, source?.context_installation, source?.agent],
    ['webhook/inbound', installed.body.id, agent.id],
  );
  const path = `/knowledge_sources/${source?.id}`;
  const { url } = (await app.send<{ url: string }>('GET', `${path}/inbound_url`)).body;
  assert.equal(url, installed.body.inbound_url);
  const post = (to: string) =>
    fetch(to, { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'The walrus has tusks.' });
  const posted = await post(url);
  assert.equal(posted.status, 202);
  await app.waitForIngestion(((await posted.json()) as { ingestion: string }).ingestion);
  assert.equal((await app.search(String(source?.id), { query: 'walrus', mode: 'fulltext' })).length, 1);
  const refusal = await app.send<ErrorBody>('POST', `${path}/ingest`, { content: { data: 'x' } });
  assert.deepEqual([refusal.status, refusal.body.error.fields[0]?.field], [422, 'content']);
  const fresh = (await app.send<{ url: string }>('POST', `${path}/inbound_url`)).body.url;
  assert.equal((await post(url)).status, 404);
  assert.equal((await post(`${url}x`)).status, 404);
  assert.equal((await post(fresh)).status, 202);
});

test("messages of an agent's threads become documents of its thread/messages source", async () => {
  const agent = await server.provision.agent(world.app, { org: world.org });
  await app.send('POST', '/installations', { agent: agent.id, kind: 'thread/messages' });
  const thread = (await app.send<{ id: string }>('POST', '/threads', { agent: agent.id, title: 'Chat' })).body.id;
  const posted = await app.send<Json>('POST', `/threads/${thread}/messages`, {
    content: 'Remember the lilac bicycle.',
  });
  assert.equal(posted.status, 201, JSON.stringify(posted.body));
  await waitForIngestionsOf(agent.id);
  const { body } = await app.send<{ data: Json[] }>('POST', `/agents/${agent.id}/search`, { query: 'lilac bicycle' });
  assert.equal(body.data[0]?.type, 'thread/messages');
  assert.equal((body.data[0]?.metadata as Json | undefined)?.thread, thread);
  const stranger = knowledgeOf(server, { token: world.stranger.token });
  assert.equal((await stranger.send('POST', `/threads/${thread}/messages`, { content: 'x' })).status, 404);
});

test('a message that only paused sources would take is refused with 409 and stored nowhere; one active source takes it', async () => {
  const agent = await server.provision.agent(world.app, { org: world.org });
  const thread = (await app.send<{ id: string }>('POST', '/threads', { agent: agent.id })).body.id;
  const postMessage = (content: string) => app.send<ErrorBody>('POST', `/threads/${thread}/messages`, { content });
  const listSources = async () =>
    (await app.send<{ data: { id: string }[] }>('GET', `/knowledge_sources?agent=${agent.id}`)).body.data;
  for (let n = 0; n < 2; n++) await app.send('POST', '/installations', { agent: agent.id, kind: 'thread/messages' });
  const sources = await listSources();
  assert.equal(sources.length, 2);
  for (const { id } of sources)
    assert.equal((await app.send('PATCH', `/knowledge_sources/${id}`, { state: 'paused' })).status, 200);
  const countIngestions = async () => {
    const of = ({ id }: { id: string }) => app.send<{ data: Json[] }>('GET', `/knowledge_sources/${id}/ingestions`);
    return (await Promise.all(sources.map(of))).map(({ body }) => body.data.length);
  };
  const refused = await postMessage('Where is the lilac bicycle?');
  assert.deepEqual([refused.status, refused.body?.error?.code], [409, 'conflict'], refused.text);
  assert.deepEqual(await countIngestions(), [0, 0]);

  await app.send('PATCH', `/knowledge_sources/${sources[0]?.id}`, { state: 'active' });
  assert.equal((await postMessage('In the shed.')).status, 201);
  assert.deepEqual(await countIngestions(), [1, 0]);
});

test('a message that one of two sources cannot store is stored in neither', async () => {
  const agent = await server.provision.agent(world.app, { org: world.org });
  const thread = (await app.send<{ id: string }>('POST', '/threads', { agent: agent.id })).body.id;
  for (let n = 0; n < 2; n++) await app.send('POST', '/installations', { agent: agent.id, kind: 'thread/messages' });
  const { data } = (await app.send<{ data: { id: string }[] }>('GET', `/knowledge_sources?agent=${agent.id}`)).body;
  const countIngestions = async () => {
    const of = ({ id }: { id: string }) => app.send<{ data: Json[] }>('GET', `/knowledge_sources/${id}/ingestions`);
    return (await Promise.all(data.map(of))).map(({ body }) => body.data.length);
  };
  const post = () => app.send('POST', `/threads/${thread}/messages`, { content: 'The lilac bicycle is in the shed.' });
  // Whichever source comes first takes the message; the other one fails.
  await server.db.begin(
    (tx) => tx`create function test_refuse_second() returns trigger language plpgsql as $$ begin
    if exists (select from knowledge_ingestions i join knowledge_sources s on s.app_id = i.app_id and s.id = i.source_id
      where s.agent_id = (select agent_id from knowledge_sources where app_id = new.app_id and id = new.source_id)
        and s.id <> new.source_id) then raise 'refused by the test'; end if;
    return new; end $$`,
  );
  await server.db`create trigger test_refuse_second before insert on knowledge_ingestions
    for each row execute function test_refuse_second()`;
  try {
    assert.equal((await post()).status, 500);
    assert.deepEqual(await countIngestions(), [0, 0]);
  } finally {
    await server.db`drop function test_refuse_second cascade`;
  }
  assert.equal((await post()).status, 201);
  assert.deepEqual(await countIngestions(), [1, 1]);
  await waitForIngestionsOf(agent.id);
  const { body } = await app.send<{ data: Json[] }>('POST', `/agents/${agent.id}/search`, { query: 'lilac bicycle' });
  assert.ok(body.data.length > 0);
});

test('deleting a source in the middle of its ingestion ends both cleanly', async () => {
  const site = await startSite({}, () => {});
  try {
    const source = await app.createSource({ ...org, type: 'web/link', payload: { url: `${site.origin}/slow` } });
    const started = await app.send<TestIngestion>('POST', `/knowledge_sources/${source}/ingest`, { pull: true });
    assert.equal(started.body.status, 'running');
    await site.waitForRequest('/robots.txt');
    assert.equal((await app.send('DELETE', `/knowledge_sources/${source}`)).status, 204);
    assert.equal((await app.send('GET', `/knowledge_ingestions/${started.body.id}`)).status, 404);
  } finally {
    await site.close();
  }
});
