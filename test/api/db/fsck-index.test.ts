import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, test } from 'node:test';
import { checkIndexes, type IndexFinding } from '../../../src/knowledge/index/check.ts';
import { type DocumentPlace, findNextDocument } from '../../../src/knowledge/index/check-store.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { createRandom } from '../../support/rounds.ts';
import { startTestServer } from '../../support/server.ts';

/*
 * The index against the texts: after any sequence of pushes, replacements, deletions and compactions it has the words of
 * the documents that are there, each in its place; and each kind of damage is found.
 *   INDEX_STEPS=300 INDEX_SEED=1 node test/run.ts test/api/db/fsck-index.test.ts
 */
const stepsMax = Number(process.env.INDEX_STEPS ?? 16);
const seed = Number(process.env.INDEX_SEED ?? randomInt(2 ** 31));

const server = await startTestServer();
after(() => server.close());
const { provision, db } = server;
const app = await provision.app();
const org = await provision.org(app);
const knowledge = knowledgeOf(server, { key: app.secretKey });
const appId = app.app.uuid;

async function check(repair = false) {
  const findings: IndexFinding[] = [];
  const report = await checkIndexes(db, repair, (finding) => findings.push(finding));
  return { report, kinds: findings.map(({ kind }) => kind).sort() };
}

const compact = (key: { appId: string; sourceId: string }) =>
  server.server.work.tasks.compact_index?.(key, { signal: new AbortController().signal } as never);

const words = [
  'harbour',
  'tide',
  'anchor',
  'ropes',
  'sailing',
  'Schiffe',
  '漢字',
  'bé',
  'lighthouse',
  'c++',
  'northern',
];

test('after random pushes, replacements, deletions and compactions, the index matches the texts', async (context) => {
  context.diagnostic(`repeat with INDEX_SEED=${seed} INDEX_STEPS=${stepsMax}`);
  const random = createRandom(seed);
  const below = (count: number) => Math.floor(random() * count);
  const source = await knowledge.createSource({ org: org.id });
  const sourceId = parseId('source', source) ?? '';
  const live = new Map<string, string>();
  const dead: string[] = [];
  const write = () => {
    const marker = `m${Math.floor(random() * 36 ** 7).toString(36)}q`;
    const sections = Array.from({ length: 1 + below(4) }, (_, number) => {
      const text = Array.from({ length: 20 + below(400) }, () => words[below(words.length)]).join(' ');
      return `# ${words[below(words.length)]} ${number}\n\n${text}`;
    });
    return { marker, text: `${sections.join('\n\n')}\n\n${marker}\n` };
  };
  for (let step = 0; step < stepsMax; step++) {
    const [some] = [...live.keys()].slice(below(Math.max(1, live.size)));
    const choice = below(10);
    if (choice < 5 || some === undefined) {
      const { marker, text } = write();
      live.set(await knowledge.push(source, text, { title: `Title ${step}` }), marker);
    } else if (choice < 7) {
      const { marker, text } = write();
      const { body } = await knowledge.send<{ id: string }>('PATCH', `/knowledge_documents/${some}`, {
        content: { data: text },
      });
      assert.equal((await knowledge.waitForIngestion(body.id)).status, 'succeeded');
      dead.push(live.get(some) ?? '');
      live.set(some, marker);
    } else if (choice < 9) {
      assert.equal((await knowledge.send('DELETE', `/knowledge_documents/${some}`)).status, 204);
      dead.push(live.get(some) ?? '');
      live.delete(some);
    } else {
      await compact({ appId, sourceId });
    }
    if (step % 8 !== 7 && step !== stepsMax - 1) continue;
    const { report, kinds } = await check();
    assert.deepEqual(kinds, [], `step ${step}: INDEX_SEED=${seed}`);
    assert.equal(report.documents, live.size);
    const [row] = await db<{ chunks: number }[]>`select count(*)::int as chunks from knowledge_chunks`;
    assert.equal(report.chunks, row?.chunks);
  }
  for (const [document, marker] of live) {
    const [hit] = await knowledge.search(source, { query: marker, mode: 'fulltext' });
    assert.equal(hit?.document, document, `${marker}: INDEX_SEED=${seed}`);
  }
  for (const marker of dead)
    for (const { content } of await knowledge.search(source, { query: marker, mode: 'fulltext' }))
      assert.ok(!content.includes(marker), `${marker}: INDEX_SEED=${seed}`);
  context.diagnostic(`${stepsMax} steps, ${live.size} documents, ${dead.length} gone`);
});

test('each kind of damage is found, and a repaired index is read again from the texts', async () => {
  const source = await knowledge.createSource({ org: org.id });
  const sourceId = parseId('source', source) ?? '';
  const text = 'Ropes and anchors of the northern harbour. '.repeat(60);
  const document = await knowledge.push(source, text);
  const uuid = parseId('document', document) ?? '';
  assert.deepEqual((await check()).kinds, []);
  const damages: [IndexFinding['kind'], () => PromiseLike<unknown>, () => PromiseLike<unknown>][] = [
    [
      'wrong_counters',
      () => db`update knowledge_indexes set word_count = word_count + 1 where source_id = ${sourceId}`,
      () => db`update knowledge_indexes set word_count = word_count - 1 where source_id = ${sourceId}`,
    ],
    [
      'changed_text',
      () => db`update knowledge_texts set content = set_byte(content, 3, 88) where document_id = ${uuid}`,
      () => db`update knowledge_texts set content = ${Buffer.from(text)} where document_id = ${uuid}`,
    ],
    [
      'missing_vectors',
      () => db`update knowledge_vectors set model = 'x' || model where source_id = ${sourceId} and ordinal = 0`,
      () => db`update knowledge_vectors set model = substr(model, 2) where source_id = ${sourceId} and ordinal = 0`,
    ],
    [
      'wrong_words',
      () => db`update knowledge_bundles set first_ordinal = first_ordinal + 100, source_id = ${appId}
        where source_id = ${sourceId}`,
      () => db`update knowledge_bundles set first_ordinal = first_ordinal - 100, source_id = ${sourceId}
        where source_id = ${appId}`,
    ],
  ];
  for (const [kind, damage, mend] of damages) {
    await damage();
    const { kinds, report } = await check();
    assert.deepEqual([kind, ...new Set(kinds)], [kind, kind]);
    assert.equal(report.unrepaired, kinds.length);
    await mend();
    assert.deepEqual((await check()).kinds, [], kind);
  }
  await db`delete from knowledge_bundles where source_id = ${sourceId}`;
  assert.deepEqual(await knowledge.search(source, { query: 'anchors', mode: 'fulltext' }), []);
  assert.equal((await check(true)).report.unrepaired, 0);
  await compact({ appId, sourceId });
  assert.deepEqual((await check()).kinds, []);
  assert.equal((await knowledge.search(source, { query: 'anchors', mode: 'fulltext' })).length > 0, true);

  await db`delete from knowledge_texts where document_id = ${uuid}`;
  const lost = await check(true);
  assert.deepEqual([lost.kinds, lost.report.unrepaired], [['missing_text'], 1]);
});

test('a check reads each document of a source once, however many there are', async () => {
  const documents = 300;
  const source = await knowledge.createSource({ org: org.id });
  const key = { appId, sourceId: parseId('source', source) ?? '' };
  await knowledge.push(source, 'A text of the northern harbour.');
  await db`
    insert into knowledge_documents
    select (jsonb_populate_record(d, jsonb_build_object('id', gen_random_uuid(), 'first_ordinal', n))).*
    from knowledge_documents d, generate_series(1, ${documents - 1}) n
    where d.app_id = ${appId} and d.source_id = ${key.sourceId}`;
  await db.begin(async (tx) => {
    await tx`analyze knowledge_documents`;
    /** Also counts what earlier transactions of this session have read and not yet reported: at most a second's. */
    const countReads = async () => {
      const [row] = await tx<[{ rows: number }]>`
        select sum(seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_xact_user_tables
        where relname like 'knowledge_documents%'`;
      return row.rows;
    };
    const before = await countReads();
    const seen = new Set<string>();
    for (let after: DocumentPlace | undefined; ; ) {
      after = await findNextDocument(tx, key, after);
      if (after === undefined) break;
      seen.add(after.id);
    }
    assert.equal(seen.size, documents);
    const rows = (await countReads()) - before;
    assert.ok(rows < 3 * documents, `${rows} rows were read`);
  });
  await db`delete from knowledge_documents where source_id = ${key.sourceId} and first_ordinal > 0`;
});
