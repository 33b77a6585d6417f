/**
 * Search at size: one source of 100,000 chunks in an app of 1,000,000 (`--chunks`, `--sources`), all on the embedded
 * PostgreSQL, and the time and size of its index and of its learned model. Sources of more than 100,000 chunks get no
 * vectors of the embedder (`--vectors` adds them): hybrid search reads none where there is a model. Prints p50 and p95 per mode at 1 and at 8 concurrent searches, beside the bare SQL that a plain design
 * would run: `bit_count` over sign codes for vectors, `ts_rank_cd` over a GIN index for full text.
 */
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { packVector, signCode } from '../src/content/embed/codes.ts';
import { normalize } from '../src/content/embed/embedder.ts';
import { inLanes } from '../src/content/embed/in-lanes.ts';
import { lexicalEmbedder } from '../src/content/embed/lexical.ts';
import { PostingsBuilder, packBundle } from '../src/content/postings.ts';
import type { PreparedText } from '../src/content/prepare.ts';
import { type Database, openDatabase, production } from '../src/db/database.ts';
import { startEmbeddedPostgres } from '../src/db/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { newUuid } from '../src/ids.ts';
import {
  appendChunks,
  flushBundles,
  insertIndex,
  insertVectors,
  lockIndex,
  mergeSegments,
} from '../src/knowledge/index/store.ts';
import { learnSources } from '../src/knowledge/learning/train.ts';
import { openSearchIndex, type SearchMode } from '../src/knowledge/search/search.ts';
import { createLogger } from '../src/log.ts';

const { values } = parseArgs({
  options: {
    chunks: { type: 'string', default: '100000' },
    sources: { type: 'string', default: '10' },
    searches: { type: 'string', default: '200' },
    cache: { type: 'string', default: '256' },
    vectors: { type: 'boolean' },
  },
});
const chunksPerSource = Number(values.chunks);
const sourceCount = Number(values.sources);
const searches = Number(values.searches);
const withVectors = values.vectors ?? chunksPerSource <= 100_000;
const chunksPerDocument = chunksPerSource > 100_000 ? 70 : 7;
const wordsPerChunk = 250;
/** Larger segments than ingestion makes: merging them by steps is not what is measured here. */
const bundledChunks = 4_096;
const vocabulary = 60_000;
const embedder = lexicalEmbedder();
const appId = newUuid();

/** Word ranks as natural language has them: the r-th word with a probability of about 1/r. */
function zipfRank(): number {
  return Math.floor(vocabulary ** Math.random());
}

function fakeDocument(size: number): Pick<PreparedText, 'chunks' | 'bundles'> & { text: Buffer } {
  const postings = new PostingsBuilder();
  let text = '';
  const chunks = Array.from({ length: size }, (_chunk, ordinal) => {
    const terms = new Map<string, number[]>();
    const startByte = text.length;
    for (let position = 0; position < wordsPerChunk; position++) {
      const term = `w${zipfRank()}`;
      text += `${term} `;
      const known = terms.get(term);
      if (known) known.push(position);
      else terms.set(term, [position]);
    }
    postings.add({ ordinal, length: wordsPerChunk, terms });
    const place = { headingPath: [], startByte, endByte: text.length, startLine: 1, endLine: 10 };
    return { ...place, hash: '00'.repeat(32), words: wordsPerChunk };
  });
  const bundles = [{ chunkCount: chunks.length, content: packBundle(postings.finish()) }];
  return { chunks, bundles, text: Buffer.from(text) };
}

function fakeVector(): Float32Array {
  const vector = new Float32Array(embedder.dimensions);
  for (let i = 0; i < vector.length; i++) vector[i] = Math.random() - 0.5;
  return normalize(vector);
}

async function createSource(db: Database): Promise<string> {
  const sourceId = newUuid();
  await db`insert into knowledge_sources (app_id, id, sandbox_id, type) values (${appId}, ${sourceId}, ${production}, 'knowledge/documents')`;
  await insertIndex(db, { appId, sourceId }, 'english');
  return sourceId;
}

async function fillSource(db: Database, sourceId: string): Promise<void> {
  const key = { appId, sourceId };
  const vectors = Array.from({ length: 64 }, fakeVector);
  const packed = vectors.map(packVector);
  for (let done = 0; done < chunksPerSource; done += chunksPerDocument) {
    const document = fakeDocument(Math.min(chunksPerDocument, chunksPerSource - done));
    const { chunks, text } = document;
    const documentId = newUuid();
    await db.begin(async (tx) => {
      const state = await lockIndex(tx, key);
      if (!state) throw new Error('The index is there.');
      const first = state.nextOrdinal;
      await tx`
        insert into knowledge_documents (app_id, id, source_id, bytes_hash, content_hash, total_lines, total_size,
          first_ordinal, chunk_count, word_count, metadata, embedding_model)
        values (${appId}, ${documentId}, ${sourceId}, '', '', 10, 1500, ${first}, ${chunks.length},
          ${chunks.length * wordsPerChunk}, jsonb_build_object('shelf', ${randomInt(10)}::int), ${embedder.model})`;
      await tx`insert into knowledge_texts (app_id, document_id, content) values (${appId}, ${documentId}, ${text})`;
      await appendChunks(tx, key, state, documentId, document);
      if (withVectors)
        await insertVectors(
          tx,
          key,
          state,
          embedder.model,
          chunks.map((_chunk, i) => {
            const pick = randomInt(64);
            return {
              ordinal: first + i,
              vector: packed[pick] ?? Buffer.alloc(0),
              code: signCode(vectors[pick] ?? fakeVector()).map(
                (word) => word ^ (randomInt(2 ** 32) & randomInt(2 ** 32)),
              ),
            };
          }),
        );
      if (state.bundledChunks >= bundledChunks) await flushBundles(tx, key, state);
    });
    while (await db.begin((tx) => mergeSegments(tx, key)));
  }
  // Ingestion never leaves more than a few documents unsorted.
  await db.begin(async (tx) => {
    const state = await lockIndex(tx, key);
    if (state) await flushBundles(tx, key, state);
  });
}

async function copySource(db: Database, from: string, to: string): Promise<void> {
  const [offset] = await db<{ segment: number }[]>`select nextval('knowledge_segment_numbers') + 1000000 as segment`;
  await db`select setval('knowledge_segment_numbers', ${(offset?.segment ?? 0) + 1_000_000})`;
  const add = offset?.segment ?? 0;
  await db`delete from knowledge_indexes where source_id = ${to}`;
  await db`insert into knowledge_indexes select app_id, ${to}::uuid, language, first_ordinal, next_ordinal, chunk_count, word_count, bundled_documents, bundled_chunks, vector_version from knowledge_indexes where source_id = ${from}`;
  await db`insert into knowledge_segments select app_id, ${to}::uuid, segment + ${add}, level, first_ordinal, last_ordinal from knowledge_segments where source_id = ${from}`;
  await db`insert into knowledge_bundles select app_id, ${to}::uuid, first_ordinal, chunk_count, content from knowledge_bundles where source_id = ${from}`;
  await db`insert into knowledge_postings select app_id, segment + ${add}, term, postings, positions from knowledge_postings where segment in (select segment from knowledge_segments where source_id = ${from})`;
  await db`insert into knowledge_vectors select app_id, ${to}::uuid, ordinal, model, content from knowledge_vectors where source_id = ${from}`;
  await db`insert into knowledge_codes select app_id, ${to}::uuid, model, first_ordinal, chunk_count, version, content from knowledge_codes where source_id = ${from}`;
}

function percentile(sorted: number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

async function measure(name: string, concurrency: number, one: () => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  const cpu = process.cpuUsage();
  let left = searches;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (left-- > 0) {
        const start = performance.now();
        await one();
        times.push(performance.now() - start);
      }
    }),
  );
  times.sort((a, b) => a - b);
  console.log(
    `${name.padEnd(34)} ${String(concurrency).padStart(2)} concurrent  p50 ${percentile(times, 0.5).toFixed(1).padStart(7)} ms  p95 ${percentile(times, 0.95).toFixed(1).padStart(7)} ms  processor ${cpuMs(cpu).toFixed(1).padStart(6)} ms a search`,
  );
}

function cpuMs(since: NodeJS.CpuUsage): number {
  const used = process.cpuUsage(since);
  return (used.user + used.system) / 1000 / searches;
}

function fakeQuery(): string {
  return Array.from({ length: 3 + randomInt(6) }, () => `w${zipfRank()}`).join(' ');
}

const directory = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
const log = createLogger('warn');
const postgres = await startEmbeddedPostgres({ dataDir: directory, log });
try {
  const db = openDatabase(postgres.address, { poolSize: 10, applicationName: 'bench' });
  await migrate(db);
  const developer = newUuid();
  await db`insert into developers (id, name) values (${developer}, 'bench')`;
  await db`insert into apps (id, developer_id, name, capability_key) values (${appId}, ${developer}, 'bench', '')`;
  await db`insert into sandboxes (app_id, id, name) values (${appId}, ${production}, '') on conflict do nothing`;
  const first = await createSource(db);
  let start = performance.now();
  await fillSource(db, first);
  console.log(`filled ${chunksPerSource} chunks in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  start = performance.now();
  await learnSources({ db, log, learnMemoryMb: 1024 }, appId, undefined);
  const [model] = await db<{ dimensions: number; words: number; mib: number }[]>`
    select dimensions, word_count as words, ((select sum(octet_length(content)) from knowledge_model_codes)
      + (select sum(octet_length(vector) + octet_length(term)) from knowledge_model_terms)) / 1048576 as mib
    from knowledge_models where version > 0`;
  console.log(`learned in ${((performance.now() - start) / 1000).toFixed(1)} s: ${JSON.stringify(model)}`);
  start = performance.now();
  for (let i = 1; i < sourceCount; i++) await copySource(db, first, await createSource(db));
  await db`vacuum analyze`;
  const [size] = await db<{ size: string }[]>`select pg_size_pretty(pg_database_size(current_database())) as size`;
  console.log(
    `copied to ${sourceCount} sources in ${((performance.now() - start) / 1000).toFixed(1)} s, database ${size?.size}`,
  );
  const index = openSearchIndex(db, inLanes(embedder), {
    cacheBytesMax: Number(values.cache) * 2 ** 20,
    queryEmbeddingMs: 60_000,
  });
  const request = (mode: SearchMode, documents?: Parameters<typeof index.search>[0]['documents']) => ({
    appId,
    sources: db`s.id = ${first}`,
    documents,
    query: fakeQuery(),
    mode,
    shape: { maxResults: 20, onePerDocument: false, facets: [], contextChunks: 0, highlights: false },
    rerank: false,
    minSimilarity: -1,
  });
  for (const mode of withVectors ? (['fulltext', 'vector', 'hybrid'] as const) : (['fulltext', 'hybrid'] as const)) {
    start = performance.now();
    await index.search(request(mode));
    console.log(`${mode} first search ${(performance.now() - start).toFixed(1)} ms`);
    for (const concurrency of [1, 8]) await measure(mode, concurrency, () => index.search(request(mode)));
  }
  const cold = () => openSearchIndex(db, inLanes(embedder), { cacheBytesMax: 1_000, queryEmbeddingMs: 60_000 });
  for (const concurrency of [1, 8])
    await measure('fulltext, nothing cached', concurrency, () => cold().search(request('fulltext')));
  for (const concurrency of [1, 8])
    await measure('fulltext, filtered to a tenth', concurrency, () =>
      index.search(request('fulltext', db`d.metadata @> '{"shelf": 3}'`)),
    );
  if (withVectors) await measureBareCodes(db);
  console.log(`memory ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB`);
  await db.end();
} finally {
  await postgres.stop();
  rmSync(directory, { recursive: true, force: true });
}

async function measureBareCodes(db: Database): Promise<void> {
  await db`create table bare_codes (id int primary key, code bit(1024))`;
  await db`insert into bare_codes select i, (select string_agg((random() < .5)::int::text, '') from generate_series(1, 1024) where i > 0)::bit(1024) from generate_series(1, ${chunksPerSource}) i`;
  await db`vacuum analyze bare_codes`;
  const [code] = await db<{ code: string }[]>`select code::text from bare_codes limit 1`;
  for (const concurrency of [1, 8])
    await measure(
      'bare SQL bit_count',
      concurrency,
      () => db`
      select id from bare_codes order by bit_count(code # ${code?.code ?? ''}::text::bit(1024)) limit 300`,
    );
}
