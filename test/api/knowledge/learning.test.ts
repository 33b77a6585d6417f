import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openDatabase } from '../../../src/db/database.ts';
import { claimModel } from '../../../src/knowledge/learning/store.ts';
import { learnSources } from '../../../src/knowledge/learning/train.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const org = { org: world.org.id };
const run = { signal: new AbortController().signal, waitOutside: <T>(wait: () => Promise<T>) => wait() } as never;

const letters = [...'bcdfghjklmnprstvz'];
const [gardens, roads] = ['ga', 'ro'].map((start) =>
  letters.slice(0, 15).flatMap((one) => [`${start}${one}o`, `${start}${one}u`]),
);

/** Half of the texts are about gardens, half about roads. Some of these say "car", as many "automobile", never both. */
function text(i: number): string {
  const words = (i % 2 === 0 ? gardens : roads) ?? [];
  const name = i % 2 === 0 ? 'flower' : i % 20 === 1 ? 'car' : i % 20 === 11 ? 'automobile' : 'way';
  const some = [0, 1, 2, 3, 4, 5].map(
    (n) => words[name === 'flower' || name === 'way' ? (i * 7 + n * n * 3 + (i >> 3)) % 30 : n],
  );
  return `The ${name} needs ${some.join(' and ')}.`;
}

/** Adds texts as passages, ten to a document: a source learns from passages, and each document takes time of its own. */
async function fill(source: string, count: number, more: Json = {}): Promise<string[]> {
  const passage = (i: number) => `# Number${i}\n\n${text(i)}${' And so on.'.repeat(40)}\n\n`;
  const items = Array.from({ length: count / 10 }, (_item, i) => ({
    content: { data: Array.from({ length: 10 }, (_passage, j) => passage(i * 10 + j)).join('') },
    ...more,
  }));
  const done = await app.ingest(source, { items }, 'ingest/batch');
  return (done.metadata.items ?? []).map((item) => String(item.document));
}

type Explained = { data: (Json & { content: string; explain: Json })[]; explain: Json };

async function search(source: string, query: string, more: Json = {}): Promise<Explained> {
  const body = { query, explain: true, max_results: 100, ...more };
  const found = await app.send<Explained>('POST', `/knowledge_sources/${source}/search`, body);
  assert.equal(found.status, 200, found.text);
  return found.body;
}

/** Trains what is due; waits for a training that the ingestion has started itself. */
async function learn(): Promise<void> {
  for (;;) {
    await server.server.work.tasks.learn_sources?.({ appId: world.app.app.uuid }, run);
    const [busy] = await server.db`select 1 from knowledge_models where lease_holder is not null`;
    if (!busy) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function versionOf(source: string): Promise<number | undefined> {
  const { explain } = await search(source, 'car');
  return (explain.models as { source: string; version: number }[] | undefined)?.find((one) => one.source === source)
    ?.version;
}

const rowsLeft = (sourceId: string) => server.db<{ models: number; terms: number; codes: number }[]>`
  select (select count(*)::int from knowledge_models where source_id = ${sourceId}) as models,
    (select count(*)::int from knowledge_model_terms where source_id = ${sourceId}) as terms,
    (select count(*)::int from knowledge_model_codes where source_id = ${sourceId}) as codes`;

async function uuidOfNewest(): Promise<string> {
  const [row] = await server.db<{ id: string }[]>`select id from knowledge_sources order by created_at desc limit 1`;
  return row?.id ?? '';
}

test('a source learns which words belong together, and new documents are found by it immediately', async () => {
  const source = await app.createSource(org);
  await fill(source, 300);
  await learn();
  const finds = async (query: string) => (await search(source, query)).data.map((hit) => hit.content);
  const fulltext = (await search(source, 'automobile', { mode: 'fulltext' })).data.map((hit) => hit.content);
  assert.ok(fulltext.every((content) => content.includes('automobile')));
  const hybrid = await finds('automobile');
  assert.ok(
    hybrid.some((content) => content.includes('car ')),
    'the other word for it is found',
  );
  assert.ok(hybrid.filter((content) => content.includes('flower')).length * 4 < hybrid.length);

  const { explain, data } = await search(source, 'automobile');
  assert.equal(explain.learned_weight, 0.3);
  assert.deepEqual(
    (explain.models as Json[]).map((model) => [model.source, model.dimensions]),
    [[source, 16]],
  );
  assert.ok(data.some((hit) => hit.explain.learned_rank === 1 && Number(hit.explain.learned_score) > 0));

  const fresh = await app.push(source, 'A car with robo and roco and rodu and rofu.');
  assert.ok((await search(source, 'automobile')).data.some((hit) => hit.document === fresh));
  await app.send('DELETE', `/knowledge_documents/${fresh}`);
  assert.ok((await search(source, 'automobile')).data.every((hit) => hit.document !== fresh));
});

test('feedback adds words of the best passages to a long query, only from passages that the search may return', async () => {
  const source = await app.createSource(org);
  const items = Array.from({ length: 6 }, (_item, i) => ({
    content: { data: `The car needs robo and roco and rodo and rofo and zanzibar ${i}.` },
    metadata: { secret: true },
  }));
  await app.ingest(source, { items }, 'ingest/batch');
  await fill(source, 300, { metadata: { secret: false } });
  await learn();
  const query = 'car robo roco rodo rofo rogo';
  const termsOf = ({ explain }: Explained) =>
    (explain.feedback as { passages: number; terms: { term: string; weight: number }[] } | undefined)?.terms;
  const all = termsOf(await search(source, query));
  assert.ok(
    all?.some(({ term, weight }) => term === 'zanzibar' && weight > 0),
    JSON.stringify(all),
  );
  const allowed = termsOf(await search(source, query, { filter: { secret: false } }));
  assert.ok(allowed && allowed.length > 0);
  assert.ok(!allowed.some(({ term }) => term === 'zanzibar'), JSON.stringify(allowed));
  assert.equal(termsOf(await search(source, 'car robo')), undefined, 'a short query gets no feedback');
});

test('a model is trained again when its source has grown by half and a minute has passed, and survives a compaction', async () => {
  const source = await app.createSource(org);
  const id = await uuidOfNewest();
  const documents = await fill(source, 300);
  await learn();
  const first = await versionOf(source);
  assert.ok(first !== undefined);
  await fill(source, 60);
  await learn();
  assert.equal(await versionOf(source), first, 'a fifth more is folded in');
  await fill(source, 100);
  await learn();
  assert.equal(await versionOf(source), first, 'it was trained less than a minute ago');
  await server.db`update knowledge_models set trained_at = now() - interval '2 minutes' where source_id = ${id}`;
  await learn();
  const second = (await versionOf(source)) ?? 0;
  assert.ok(second > first);
  const [rows] = await server.db<{ versions: number }[]>`
    select count(distinct version)::int as versions from knowledge_model_terms where source_id = ${id}`;
  assert.equal(rows?.versions, 1, 'nothing is left of the version before');

  for (const document of documents.slice(0, 6)) await app.send('DELETE', `/knowledge_documents/${document}`);
  const [row] = await server.db<{ appId: string; sourceId: string }[]>`
    select app_id, id as source_id from knowledge_sources where id = ${id}`;
  await server.server.work.tasks.compact_index?.(row ?? {}, run);
  const { data } = await search(source, 'automobile');
  assert.ok(data.some((hit) => hit.content.includes('car ') && hit.explain.learned_rank !== undefined));
});

test('a model is trained again when its source has grown by a tenth and is quiet', async () => {
  const source = await app.createSource(org);
  const id = await uuidOfNewest();
  await fill(source, 300);
  await learn();
  const first = await versionOf(source);
  assert.ok(first !== undefined);
  const age = async (model: string, writes: string): Promise<void> => {
    await server.db`update knowledge_models set trained_at = now() - ${model}::interval where source_id = ${id}`;
    await server.db`update knowledge_ingestions set updated_at = now() - ${writes}::interval where source_id = ${id}`;
    await learn();
  };
  await fill(source, 20);
  await age('2 hours', '1 hour');
  assert.equal(await versionOf(source), first, 'too little is new');
  await fill(source, 40);
  await age('2 hours', '0 seconds');
  assert.equal(await versionOf(source), first, 'the source may still grow');
  await age('30 minutes', '20 minutes');
  assert.equal(await versionOf(source), first, 'it was trained a short time ago');
  await age('2 hours', '20 minutes');
  const second = (await versionOf(source)) ?? 0;
  assert.ok(second > first);
  await age('2 hours', '20 minutes');
  assert.equal(await versionOf(source), second, 'nothing is new since');
});

test('a source is learned with one connection to the database', async () => {
  const source = await app.createSource(org);
  await fill(source, 300);
  await learn();
  const before = (await versionOf(source)) ?? 0;
  await server.db`
    update knowledge_models set next_ordinal = 0, chunk_count = 0, trained_at = now() - interval '1 hour'`;
  const { directTarget, log } = server.services;
  const db = openDatabase(directTarget, { poolSize: 1, applicationName: 'quarry-test-learning', timeoutMs: 10_000 });
  try {
    await learnSources({ db, log, learnMemoryMb: 512 }, world.app.app.uuid, undefined);
  } finally {
    await db.end();
  }
  // A job of the server may have been learning meanwhile. One that failed would keep the source waiting for an hour.
  await learn();
  assert.ok(((await versionOf(source)) ?? 0) > before);
});

test('a model belongs to one source and is deleted with it', async () => {
  const [one, two] = [await app.createSource(org), await app.createSource(org)];
  const small = await uuidOfNewest();
  await fill(one, 300);
  await fill(two, 20);
  await learn();
  assert.ok((await versionOf(one)) !== undefined);
  const { explain, data } = await search(two, 'automobile');
  assert.equal(explain.models, undefined, 'a small source has none');
  assert.ok(data.length > 0 && data.every((hit) => !hit.content.includes('flower')));
  assert.deepEqual([...(await rowsLeft(small))], [{ models: 0, terms: 0, codes: 0 }]);

  const [{ id } = { id: '' }] = await server.db<{ id: string }[]>`
    select source_id as id from knowledge_models order by trained_at desc limit 1`;
  assert.equal((await app.send('DELETE', `/knowledge_sources/${one}`)).status, 204);
  await server.server.work.tasks.purge_sources?.({}, run);
  assert.deepEqual([...(await rowsLeft(id))], [{ models: 0, terms: 0, codes: 0 }]);
});

test('a killed training leaves nothing that a search uses, and the next one starts from the beginning', async () => {
  const source = await app.createSource(org);
  const sourceId = await uuidOfNewest();
  const appId = world.app.app.uuid;
  await server.db`
    insert into knowledge_models (app_id, source_id, lease_holder, lease_until)
    values (${appId}, ${sourceId}, gen_random_uuid(), now() + interval '1 hour')`;
  await server.db`
    insert into knowledge_model_terms values (${appId}, ${sourceId}, 1, 'car', 1, decode('0000803f0102', 'hex'))`;
  await server.db`
    insert into knowledge_model_codes values (${appId}, ${sourceId}, 1, 0, 1, 1, decode('0000803f0102', 'hex'))`;
  await fill(source, 300);
  assert.equal(await versionOf(source), undefined);
  await server.db`update knowledge_models set lease_until = now() where source_id = ${sourceId}`;
  await learn();
  assert.equal(await versionOf(source), 1);
  const { data } = await search(source, 'automobile');
  assert.ok(data.some((hit) => hit.content.includes('car ')));
});

test('an app learns from one source at a time, and does not stop other apps from learning', async () => {
  const { otherApp } = world;
  const stranger = knowledgeOf(server, { key: otherApp.secretKey });
  const keys = [];
  for (const [who, where] of [
    [app, world.app],
    [app, world.app],
    [stranger, otherApp],
  ] as const) {
    const owner = await server.provision.org(where);
    await who.createSource({ org: owner.id });
    keys.push({ appId: where.app.uuid, sourceId: await uuidOfNewest() });
  }
  const [one, two, other] = keys;
  assert.ok(one && two && other);
  const holder = crypto.randomUUID();
  const claims = await Promise.all([one, two].map((key) => claimModel(server.db as never, key, holder, 60)));
  assert.deepEqual(claims.toSorted(), [0, undefined]);
  assert.equal(await claimModel(server.db as never, other, holder, 60), 0);
});

test('the first vector search of a small source reads all of its vectors, and the next ones none', async () => {
  const source = await app.createSource(org);
  const id = await uuidOfNewest();
  await fill(source, 300);
  const vector = (query: string) => search(source, query, { mode: 'vector', min_similarity: 0 });
  assert.equal((await vector('The flower needs gabo.')).data.length, 100);
  await server.db`delete from knowledge_vectors where source_id = ${id}`;
  const { data } = await vector('The way needs robo and roco and rodo.');
  assert.equal(data.length, 100);
  assert.ok(data.every((hit) => !hit.content.includes('flower')));
});
