import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

let now = Date.now();
const server = await startTestServer({ clock: { now: () => new Date(now) } });
after(() => server.close());
const app = await server.provision.app();
const knowledge = knowledgeOf(server, { key: app.secretKey });
const org = await server.provision.org(app);

type Sync = {
  id: string;
  status: string;
  fence: number;
  cursor: string | null;
  next_batch: number;
  documents: number;
  pending: number;
  stats: { written: number; unchanged: number; outdated: number; deleted: number; failed: number; errors: Json[] };
};
type Upsert = { external_id: string; order?: number; content: { data: string }; title?: string; metadata?: Json };

const doc = (id: string, data: string, more: Partial<Upsert> = {}): Upsert => ({
  external_id: id,
  content: { data },
  ...more,
});

const newSource = () => knowledge.createSource({ org: org.id });

async function start(source: string, body: Json = { mode: 'full' }): Promise<Sync> {
  const made = await knowledge.send<Sync>('POST', `/knowledge_sources/${source}/syncs`, body);
  assert.equal(made.status, 201, made.text);
  return made.body;
}

const put = (sync: Sync, number: number, body: Json) =>
  knowledge.send<Sync & { error: { code: string; details: Json; fields: { field: string }[] } }>(
    'PUT',
    `/knowledge_syncs/${sync.id}/batches/${number}`,
    { fence: sync.fence, ...body },
  );

const complete = (sync: Sync, body: Json) =>
  knowledge.send<Sync & { error: { details: Json } }>('POST', `/knowledge_syncs/${sync.id}/complete`, body);

/** Waits until everything that was sent is indexed, and the sync is not being completed. */
async function settled(sync: Sync): Promise<Sync> {
  let last: Sync | undefined;
  await until(async () => {
    last = (await knowledge.send<Sync>('GET', `/knowledge_syncs/${sync.id}`)).body;
    return last.pending === 0 && last.status !== 'completing';
  });
  return last as Sync;
}

async function idsOf(source: string): Promise<string[]> {
  const { body } = await knowledge.send<{ data: { external_id?: string }[] }>(
    'GET',
    `/knowledge_documents?source=${source}&page_size=100`,
  );
  return body.data.map((each) => each.external_id ?? '-').sort();
}

async function textOf(source: string, externalId: string): Promise<string | undefined> {
  const { body } = await knowledge.send<{ data: { id: string; external_id?: string }[] }>(
    'GET',
    `/knowledge_documents?source=${source}&page_size=100`,
  );
  const found = body.data.find((each) => each.external_id === externalId);
  if (!found) return undefined;
  return (await knowledge.send<{ content: string }>('GET', `/knowledge_documents/${found.id}/content`)).body.content;
}

/** Runs a whole sync with one batch. */
async function sync(source: string, mode: string, body: { upserts?: Upsert[]; deletes?: Json[]; cursor?: string }) {
  const begun = await start(source, { mode });
  const sent = await put(begun, begun.next_batch, body);
  assert.equal(sent.status, 200, sent.text);
  const counts = { batches: sent.body.next_batch - 1, documents: sent.body.documents };
  const ended = await complete(begun, counts);
  assert.equal(ended.status, 200, ended.text);
  return settled(begun);
}

test('a full sync writes what is sent and deletes what is not, and leaves pushed documents alone', async () => {
  const source = await newSource();
  await knowledge.push(source, 'Pushed by hand.');
  const first = await sync(source, 'full', {
    upserts: [doc('a', 'Apples grow on trees.'), doc('b', 'Bananas are yellow.'), doc('c', 'Cherries are red.')],
    cursor: 'one',
  });
  assert.deepEqual([first.status, first.stats.written, first.cursor], ['succeeded', 3, 'one']);
  assert.equal((await knowledge.search(source, 'apples'))[0]?.content, 'Apples grow on trees.');
  const second = await sync(source, 'full', {
    upserts: [doc('a', 'Apples grow on trees.'), doc('b', 'Bananas are green.')],
  });
  assert.deepEqual([second.stats.written, second.stats.unchanged, second.stats.deleted], [1, 1, 1]);
  assert.deepEqual(await idsOf(source), ['-', 'a', 'b']);
  assert.equal(await textOf(source, 'b'), 'Bananas are green.');
});

test('one sync of a source at a time; an expired one is resumed where it was, and its old fence is refused', async () => {
  const source = await newSource();
  const first = await start(source);
  assert.deepEqual([first.fence, first.cursor, first.next_batch], [1, null, 1]);
  const second = await knowledge.send<{ error: { code: string } }>('POST', `/knowledge_sources/${source}/syncs`, {
    mode: 'full',
  });
  assert.deepEqual([second.status, second.body.error.code], [409, 'conflict']);
  assert.equal((await put(first, 1, { upserts: [doc('a', 'Text of a.')], cursor: 'after a' })).status, 200);
  now += 11 * 60_000;
  assert.equal((await knowledge.send<Sync>('GET', `/knowledge_syncs/${first.id}`)).body.status, 'expired');
  const resumed = await start(source);
  assert.deepEqual(
    [resumed.id, resumed.fence, resumed.cursor, resumed.next_batch, resumed.documents],
    [first.id, 2, 'after a', 2, 1],
  );
  assert.equal((await put(first, 2, { upserts: [doc('z', 'From the dead connector.')] })).status, 409);
  assert.equal((await put(resumed, 2, { upserts: [doc('b', 'Text of b.')] })).status, 200);
  assert.equal((await complete(resumed, { fence: resumed.fence, batches: 2, documents: 2 })).status, 200);
  await settled(resumed);
  assert.deepEqual(await idsOf(source), ['a', 'b']);
});

test('after a sync was resumed, its first connector can neither complete nor abort it, with its fence or without', async () => {
  for (const mode of ['full', 'changes']) {
    const source = await newSource();
    const first = await start(source, { mode });
    assert.equal((await put(first, 1, { upserts: [doc('a', 'Text of a.')] })).status, 200);
    const resumed = await start(source, { mode, take_over: true });
    assert.equal((await put(resumed, 2, { upserts: [doc('b', 'Text of b.')] })).status, 200);
    const counts = { batches: 2, documents: 2 };
    const abort = (body: Json) => knowledge.send('POST', `/knowledge_syncs/${first.id}/abort`, body);
    const refused = async (when: string) => {
      for (const fence of [{}, { fence: first.fence }]) {
        const words = `${mode}, ${when}, ${JSON.stringify(fence)}`;
        assert.equal((await complete(first, { ...counts, ...fence })).status, 409, `complete: ${words}`);
        assert.equal((await abort(fence)).status, 409, `abort: ${words}`);
      }
    };
    await refused('active');
    const fence = { fence: resumed.fence };
    const end = () => (mode === 'full' ? complete(resumed, { ...counts, ...fence }) : abort(fence));
    assert.equal((await end()).status, 200);
    await refused('ended');
    assert.equal((await end()).status, 200, 'repeated');
    await settled(resumed);
    assert.deepEqual(await idsOf(source), ['a', 'b']);
  }
});

test('a connector that knows that it is the only one takes over without waiting', async () => {
  const source = await newSource();
  const first = await start(source, { mode: 'changes' });
  const second = await start(source, { mode: 'changes', take_over: true });
  assert.deepEqual([second.id, second.fence], [first.id, first.fence + 1]);
  const other = await start(source, { mode: 'full', take_over: true });
  assert.notEqual(other.id, first.id);
  assert.equal((await knowledge.send<Sync>('GET', `/knowledge_syncs/${first.id}`)).body.status, 'aborted');
});

test('a repeated batch changes nothing; other contents, a gap and an ended sync are 409', async () => {
  const source = await newSource();
  const begun = await start(source, { mode: 'changes' });
  const batch = { upserts: [doc('a', 'Once.', { metadata: { b: 1, a: 2 } })], cursor: '1' };
  assert.equal((await put(begun, 1, batch)).status, 200);
  const sameInAnotherOrder = { cursor: '1', upserts: [{ ...batch.upserts[0], metadata: { a: 2, b: 1 } }] };
  const repeated = await put(begun, 1, sameInAnotherOrder);
  assert.deepEqual([repeated.status, repeated.body.documents, repeated.body.next_batch], [200, 1, 2]);
  assert.equal((await put(begun, 1, { ...batch, cursor: '2' })).status, 409);
  const gap = await put(begun, 3, batch);
  assert.deepEqual([gap.status, gap.body.error.details.next_batch], [409, 2]);
  const wrong = await complete(begun, { batches: 2, documents: 1 });
  assert.deepEqual([wrong.status, wrong.body.error.details], [409, { batches: 1, documents: 1 }]);
  assert.equal((await complete(begun, { batches: 1, documents: 1 })).status, 200);
  assert.equal((await complete(begun, { batches: 1, documents: 1 })).status, 200);
  assert.equal((await put(begun, 2, { upserts: [] })).status, 409);
  assert.equal((await settled(begun)).stats.written, 1);
});

test('changes continue at the cursor of the last batch, even after an abort, and a full sync that dies keeps it', async () => {
  const source = await newSource();
  const first = await start(source, { mode: 'changes' });
  await put(first, 1, { upserts: [doc('a', 'Text.')], cursor: 'c1' });
  await knowledge.send('POST', `/knowledge_syncs/${first.id}/abort`, {});
  await settled(first);
  assert.deepEqual(await idsOf(source), ['a']);
  const full = await start(source);
  await put(full, 1, { upserts: [], cursor: 'page 2' });
  await knowledge.send('POST', `/knowledge_syncs/${full.id}/abort`, { fence: full.fence });
  const changes = await start(source, { mode: 'changes' });
  assert.equal(changes.cursor, 'c1');
  assert.deepEqual(await idsOf(source), ['a']);
});

test('a lower order never overwrites, and does not bring a deleted document back', async () => {
  const source = await newSource();
  await sync(source, 'changes', { upserts: [doc('a', 'Version five.', { order: 5 })] });
  const older = await sync(source, 'changes', { upserts: [doc('a', 'Version four.', { order: 4 })] });
  assert.equal(older.stats.outdated, 1);
  assert.equal(await textOf(source, 'a'), 'Version five.');
  const deletion = await sync(source, 'changes', { deletes: [{ external_id: 'a', order: 3 }] });
  assert.equal(deletion.stats.outdated, 1);
  await sync(source, 'changes', { deletes: [{ external_id: 'a', order: 7 }] });
  assert.deepEqual(await idsOf(source), []);
  await sync(source, 'changes', { upserts: [doc('a', 'Version six.', { order: 6 })] });
  assert.deepEqual(await idsOf(source), []);
  await sync(source, 'changes', { upserts: [doc('a', 'Version eight.', { order: 8 })] });
  assert.equal(await textOf(source, 'a'), 'Version eight.');
});

test('more than half of a source is deleted only if this is confirmed', async () => {
  const source = await newSource();
  await sync(source, 'full', { upserts: ['a', 'b', 'c', 'd', 'e'].map((id) => doc(id, `Text of ${id}.`)) });
  const begun = await start(source);
  await put(begun, 1, { upserts: [doc('a', 'Text of a.')] });
  const refused = await complete(begun, { batches: 1, documents: 1 });
  assert.deepEqual([refused.status, refused.body.error.details], [409, { deletions: 4, documents: 5 }]);
  assert.equal((await idsOf(source)).length, 5);
  const confirmed = await complete(begun, { batches: 1, documents: 1, confirm_deletions: true });
  assert.equal(confirmed.status, 200, confirmed.text);
  assert.equal((await settled(begun)).stats.deleted, 4);
  assert.deepEqual(await idsOf(source), ['a']);
});

test('a sync neither waits for an ingestion nor ends one', async () => {
  const source = await newSource();
  const pushes = Array.from({ length: 5 }, (_, i) =>
    knowledge.send<{ id: string; metadata: Json }>('POST', `/knowledge_sources/${source}/ingest`, {
      content: { data: `Push ${i}.` },
      on_active: 'queue',
    }),
  );
  const synced = await sync(source, 'full', { upserts: [doc('a', 'Synced.')] });
  assert.equal(synced.stats.written, 1);
  for (const push of await Promise.all(pushes)) {
    assert.equal(push.body.metadata.already_active, undefined);
    assert.equal((await knowledge.waitForIngestion(push.body.id)).status, 'succeeded');
  }
  assert.deepEqual(await idsOf(source), ['-', '-', '-', '-', '-', 'a']);
});

test('a document that cannot be read fails alone and keeps its last text', async () => {
  const source = await newSource();
  await sync(source, 'full', { upserts: [doc('a', 'Good text.'), doc('b', 'More text.')] });
  const bad = {
    external_id: 'a',
    content: { data: 'JVBERi0xLjcKYnJva2Vu', data_encoding: 'base64', content_type: 'application/pdf' },
  };
  const begun = await start(source);
  assert.equal((await put(begun, 1, { upserts: [bad, doc('b', 'Changed text.')] })).status, 200);
  await complete(begun, { batches: 1, documents: 2 });
  const { stats } = await settled(begun);
  assert.deepEqual([stats.failed, stats.written, stats.deleted, stats.errors[0]?.external_id], [1, 1, 0, 'a']);
  assert.equal(await textOf(source, 'a'), 'Good text.');
});

test('bad batches are refused with the member that is wrong', async () => {
  const source = await newSource();
  const begun = await start(source);
  const wrong = async (body: Json, field: string) => {
    const response = await put(begun, 1, body);
    assert.deepEqual([response.status, response.body.error.fields[0]?.field], [422, field], response.text);
  };
  await wrong({ upserts: [doc('a', 'One.'), doc('a', 'Two.')] }, 'upserts.1.external_id');
  await wrong({ upserts: [doc('a', 'One.')], deletes: [{ external_id: 'a' }] }, 'deletes.0.external_id');
  await wrong({ upserts: [{ external_id: 'a' }] }, 'upserts.0.content');
  await wrong({ upserts: [{ external_id: 'a', file: 'fil_0000000000000000000000' }] }, 'upserts.0.file');
  await wrong({ upserts: [{ external_id: '', content: { data: '' } }] }, 'upserts.0.external_id');
  const link = await knowledge.createSource({ type: 'web/link', org: org.id });
  const refused = await knowledge.send('POST', `/knowledge_sources/${link}/syncs`, { mode: 'full' });
  assert.equal(refused.status, 422);
  const other = await server.provision.app();
  const path = `/api/v1/knowledge_syncs/${begun.id}`;
  assert.equal((await server.api('GET', path, { key: other.secretKey })).status, 404);
  assert.equal((await server.api('GET', path, {})).status, 401);
});

test('a person who deletes a document deletes what waits for it', async () => {
  const source = await newSource();
  await sync(source, 'full', { upserts: [doc('a', 'Old.'), doc('b', 'Other.')] });
  const { body } = await knowledge.send<{ data: { id: string; external_id: string }[] }>(
    'GET',
    `/knowledge_documents?source=${source}`,
  );
  const found = body.data.find((each) => each.external_id === 'a');
  assert.equal((await knowledge.send('DELETE', `/knowledge_documents/${found?.id}`)).status, 204);
  assert.deepEqual(await idsOf(source), ['b']);
  await sync(source, 'full', { upserts: [doc('a', 'Back again.'), doc('b', 'Other.')] });
  assert.deepEqual(await idsOf(source), ['a', 'b']);
});
