import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { checkIndexes } from '../../../src/knowledge/index/check.ts';
import { lockIndex } from '../../../src/knowledge/index/store.ts';
import { findDrift } from '../../../src/usage/store.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const run = { signal: new AbortController().signal, waitOutside: <T>(wait: () => Promise<T>) => wait() } as never;

type Model = { status: 'ready' | 'over_quota'; bytes: number; bytes_needed: number | null; trained_at: string | null };

async function modelOf(source: string): Promise<Model | null> {
  const found = await app.send<{ learned_model: Model | null }>('GET', `/knowledge_sources/${source}`);
  assert.equal(found.status, 200);
  return found.body.learned_model;
}

const readUsage = async () => (await app.send<{ file_bytes: { used: number } }>('GET', '/usage')).body.file_bytes.used;

async function limitBytes(bytes: number | null): Promise<void> {
  const { developerToken: token, app: of } = world.app;
  const path = `/protected/api/v1/developer/apps/${of.id}`;
  const changed = await server.api('PATCH', path, { token, body: { quotas: { file_bytes: bytes } } });
  assert.equal(changed.status, 200);
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

const subjects = ['rivers', 'mountains', 'harbours', 'gardens', 'railways'];

/** Adds documents of ten passages each. */
async function fill(source: string, from: number, passages: number): Promise<void> {
  const passage = (i: number) =>
    `# Number${i}\n\nIt is about ${subjects[i % 5]} and ${subjects[(i * 3 + 1) % 5]}.${' And so on.'.repeat(40)}\n\n`;
  const items = Array.from({ length: passages / 10 }, (_item, i) => ({
    content: { data: Array.from({ length: 10 }, (_passage, j) => passage(from + i * 10 + j)).join('') },
  }));
  await app.ingest(source, { items }, 'ingest/batch');
}

/** The versions of the models that took part in a search. */
async function searchWith(source: string): Promise<number[]> {
  const found = await app.send<{ data: Json[]; explain: { models?: { version: number }[] } }>(
    'POST',
    `/knowledge_sources/${source}/search`,
    { query: 'rivers', explain: true },
  );
  assert.equal(found.status, 200, found.text);
  assert.ok(found.body.data.length > 0);
  return (found.body.explain.models ?? []).map(({ version }) => version);
}

/** The counters of quotas and of models are exact. */
async function requireExactCounts(): Promise<void> {
  assert.deepEqual(await server.db.begin((tx) => findDrift(tx)), []);
  const found: unknown[] = [];
  await checkIndexes(server.db as never, false, (finding) => found.push(finding));
  assert.deepEqual(found, []);
}

test('a learned model counts against the quota until its source is deleted', async () => {
  const source = await app.createSource({ org: world.org.id });
  assert.equal(await modelOf(source), null);
  await fill(source, 0, 300);
  await learn();
  const model = await modelOf(source);
  assert.equal(model?.status, 'ready');
  assert.ok(model.bytes > 300 * 16 && model.trained_at !== null && model.bytes_needed === null);
  assert.equal(await readUsage(), model.bytes);
  await fill(source, 300, 10);
  const grown = await modelOf(source);
  assert.ok(grown && grown.bytes > model.bytes, 'new documents count as well');
  assert.equal(await readUsage(), grown.bytes);
  await requireExactCounts();
  assert.equal((await app.send('DELETE', `/knowledge_sources/${source}`)).status, 204);
  assert.equal(await readUsage(), 0);
  await requireExactCounts();
});

test('a model over the quota is not stored, the source says so, and it is learned when there is room', async () => {
  const source = await app.createSource({ org: world.org.id });
  await limitBytes(5_000);
  await fill(source, 0, 300);
  await learn();
  const refused = await modelOf(source);
  assert.equal(refused?.status, 'over_quota');
  assert.deepEqual([refused.bytes, refused.trained_at], [0, null]);
  assert.ok((refused.bytes_needed ?? 0) > 5_000);
  assert.deepEqual(await searchWith(source), []);
  assert.equal(await readUsage(), 0);
  const left = await server.db`
    select 1 from knowledge_sources s join knowledge_model_terms t on t.source_id = s.id
    union all select 1 from knowledge_sources s join knowledge_model_codes c on c.source_id = s.id`;
  assert.equal(left.count, 0, 'nothing is left of a refused model');

  await limitBytes(null);
  await learn();
  const model = await modelOf(source);
  assert.equal(model?.status, 'ready');
  assert.deepEqual(await searchWith(source), [1]);

  // No room for one more code: the documents are stored, and the model is removed.
  await limitBytes(model.bytes);
  await fill(source, 300, 10);
  assert.equal((await modelOf(source))?.status, 'over_quota');
  assert.deepEqual(await searchWith(source), []);
  assert.equal(await readUsage(), 0);
  await requireExactCounts();
  await limitBytes(null);
  await learn();
  assert.equal((await modelOf(source))?.status, 'ready');
  assert.deepEqual(await searchWith(source), [3]);
  await requireExactCounts();
  assert.equal((await app.send('DELETE', `/knowledge_sources/${source}`)).status, 204);
});

test('fsck finds and corrects a wrong size of a model', async () => {
  const source = await app.createSource({ org: world.org.id });
  await fill(source, 0, 300);
  await learn();
  const model = await modelOf(source);
  await server.db`update knowledge_models set bytes = bytes + 100`;
  const found: { kind: string; source: string; repair: unknown }[] = [];
  await checkIndexes(server.db as never, true, (finding) => found.push(finding as never));
  assert.deepEqual(
    found.map(({ kind, source, repair }) => [kind, source, repair]),
    [['wrong_model_bytes', source, 'corrected']],
  );
  assert.deepEqual(await modelOf(source), model);
  await requireExactCounts();
});

test('a writer that waits for a training places its chunks in the model that the training stores', async () => {
  const source = await app.createSource({ org: world.org.id });
  await fill(source, 0, 300);
  await learn();
  const [key] = await server.db<[{ appId: string; sourceId: string; version: number }]>`
    select app_id, source_id, version from knowledge_models order by trained_at desc limit 1`;
  const isLocked = Promise.withResolvers<void>();
  const isWaited = Promise.withResolvers<void>();
  const training = server.db.begin(async (tx) => {
    await lockIndex(tx, key);
    await tx`update knowledge_models set version = version + 1 where source_id = ${key.sourceId}`;
    isLocked.resolve();
    await isWaited.promise;
  });
  await isLocked.promise;
  const writer = server.db.begin(async (tx) => (await lockIndex(tx, key))?.modelVersion);
  for (let waiting = 0; waiting === 0; ) {
    const rows = await server.db`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    waiting = rows.count;
  }
  isWaited.resolve();
  await training;
  assert.equal(await writer, key.version + 1);
});
