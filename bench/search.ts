/**
 * Search at size, through HTTP: one source of `--chunks` chunks of 250 words, filled straight into the tables of the
 * index, with a learned model and, up to 1,000,000 chunks, vectors of the built-in embedder. Prints the first search after
 * a start, p50 and p95 at 1 and at 8 concurrent searches, processor time, the delay of the server's event loop, the size
 * of everything, the memory of all processes,
 * and how many of the exact nearest ten chunks a vector search finds.
 *
 *   node --max-semi-space-size=8 bench/search.ts --chunks 100000 [--directory DIR] [--searches 200] [--cache MB] [--no-vectors] [--modes fulltext,hybrid] [--recall 50]
 *
 * With `--directory`, the filled database stays there, and the next run measures it without filling it again.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { drawQuery, seeded } from './search/corpus.ts';
import { fillSource } from './search/fill.ts';
import { measureRecall } from './search/recall.ts';
import { startBenchServer } from './support.ts';

const { values } = parseArgs({
  options: {
    chunks: { type: 'string', default: '100000' },
    searches: { type: 'string', default: '200' },
    cache: { type: 'string' },
    directory: { type: 'string' },
    modes: { type: 'string', default: 'fulltext,vector,hybrid' },
    recall: { type: 'string', default: '50' },
    'no-vectors': { type: 'boolean', default: false },
  },
});
const chunks = Number(values.chunks);
const searches = Number(values.searches);
const nearest = 10;
const clientEnded = new AbortController();
// As in a real server, whose threads otherwise load a compiler for TypeScript, which takes 60 ms.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../node_modules/.cache/quarry', import.meta.url));
const cache = values.cache === undefined ? {} : { QUARRY_SEARCH_CACHE_MB: values.cache };
const directory = values.directory ?? mkdtempSync(join(tmpdir(), 'quarry-bench-'));
mkdirSync(directory, { recursive: true });
const start = (learnMb: number) => startBenchServer({ QUARRY_LEARN_MEMORY_MB: String(learnMb), ...cache }, directory);

// Does not learn from a source that is only half filled.
let server = await start(0);
try {
  const source = (await findSource()) ?? (await fill());
  // Nothing is cached after a start.
  await restart();
  await learn();
  await printSizes();
  const url = `${server.baseUrl}/api/v1/knowledge_sources/${source}/search`;
  const client = fork(new URL('./search/client.ts', import.meta.url), [url, server.app.secretKey]);
  client.once('exit', () => clientEnded.abort());
  const random = seeded(99);
  for (const mode of values.modes.split(',')) {
    await measure(client, `${mode}, first after a start`, 1, [{ query: drawQuery(chunks, random), mode }]);
    for (const concurrency of [1, 8]) {
      const bodies = Array.from({ length: searches }, () => ({ query: drawQuery(chunks, random), mode }));
      await measure(client, mode, concurrency, bodies);
    }
    console.log(
      `memory of the server's process ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB, with its database and all other processes ${memoryOfServer(client.pid).toFixed(0)} MiB`,
    );
  }
  for (const concurrency of [1, 8]) {
    const bodies = Array.from({ length: searches }, () => ({ query: drawQuery(chunks, random), filter: { shelf: 3 } }));
    await measure(client, 'hybrid, filtered to a tenth', concurrency, bodies);
  }
  client.kill();
  const queries = Array.from({ length: Number(values.recall) }, () => drawQuery(chunks, random));
  if (queries.length > 0 && !values['no-vectors'])
    await timed('compared with the exact cosines', async () => {
      const part = await measureRecall(server.db, queries, nearest, (query) => searchVectors(source, query));
      console.log(`recall of the exact nearest ${nearest} chunks ${part.toFixed(3)}, ${queries.length} queries`);
    });
} finally {
  await server.close();
  if (values.directory === undefined) rmSync(directory, { recursive: true, force: true });
}

async function searchVectors(source: string, query: string): Promise<number[]> {
  const body = { query, mode: 'vector', max_results: nearest, min_similarity: 0 };
  const path = `/api/v1/knowledge_sources/${source}/search`;
  return (await server.post<{ data: { score: number }[] }>(path, body)).data.map(({ score }) => score);
}

async function restart(): Promise<void> {
  await server.close();
  server = await start(1024);
}

async function findSource(): Promise<string | undefined> {
  const [row] = await server.db<{ id: string }[]>`select payload ->> 'bench' as id from knowledge_sources limit 1`;
  return row?.id;
}

async function fill(): Promise<string> {
  const id = await server.makeSource();
  const [row] = await server.db<{ id: string }[]>`select id from knowledge_sources`;
  const key = { appId: server.app.app.uuid, sourceId: row?.id ?? '' };
  await timed(`filled ${chunks} chunks`, async () => {
    const took = await fillSource(server.db, key, chunks, !values['no-vectors']);
    const seconds = (ms: number) => (ms / 1000).toFixed(1);
    console.log(`texts, vectors and codes ${seconds(took.textsMs)} s, postings ${seconds(took.postingsMs)} s`);
  });
  await timed('vacuumed', () => server.db`vacuum analyze`);
  await server.db`update knowledge_sources set payload = jsonb_build_object('bench', ${id}::text)`;
  return id;
}

async function learn(): Promise<void> {
  const [model] = await server.db`select 1 from knowledge_models where version > 0`;
  if (model) return;
  await timed('learned', () => server.learnAll());
  await restart();
}

async function timed(what: string, work: () => Promise<unknown>): Promise<void> {
  const start = performance.now();
  await work();
  console.log(`${what} in ${((performance.now() - start) / 1000).toFixed(1)} s`);
}

async function printSizes(): Promise<void> {
  const [size] = await server.db<Record<string, string>[]>`
    select pg_size_pretty(pg_database_size(current_database())) as database,
      pg_size_pretty(pg_total_relation_size('knowledge_postings')) as postings,
      pg_size_pretty(pg_total_relation_size('knowledge_texts')) as texts,
      pg_size_pretty(pg_total_relation_size('knowledge_vectors')) as vectors,
      pg_size_pretty(pg_total_relation_size('knowledge_codes')) as codes,
      pg_size_pretty(pg_total_relation_size('knowledge_model_codes') + pg_total_relation_size('knowledge_model_terms')) as model,
      (select string_agg(version || ': ' || dimensions || ' dimensions, ' || word_count || ' words', ', ') from knowledge_models) as models`;
  console.log(JSON.stringify(size));
}

async function measure(client: ChildProcess, name: string, concurrency: number, bodies: object[]): Promise<void> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const cpu = process.cpuUsage();
  client.send({ bodies, concurrency });
  const [times] = (await once(client, 'message', { signal: clientEnded.signal })) as [number[]];
  delay.disable();
  times.sort((a, b) => a - b);
  const used = process.cpuUsage(cpu);
  const at = (share: number) => (times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0).toFixed(1);
  console.log(
    `${name.padEnd(30)} ${concurrency} at a time  p50 ${at(0.5).padStart(7)} ms  p95 ${at(0.95).padStart(7)} ms  ` +
      `processor ${((used.user + used.system) / 1000 / bodies.length).toFixed(1).padStart(6)} ms a search  ` +
      `event loop p99 ${(delay.percentile(99) / 1e6).toFixed(1)} ms, max ${(delay.max / 1e6).toFixed(1)} ms`,
  );
}

/** The memory of this process and all below it but one in MiB: shared pages count once. Linux only. */
function memoryOfServer(client: number | undefined): number {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      const [, parent] = /\) \w (\d+)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8')) ?? [];
      parents.set(Number(name), Number(parent));
    } catch {
      // It has ended.
    }
  const isBelow = (pid: number | undefined): boolean =>
    pid === process.pid || (pid !== undefined && pid > 1 && isBelow(parents.get(pid)));
  let kib = 0;
  for (const pid of parents.keys())
    if (pid !== client && isBelow(pid))
      kib += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
  return kib / 1024;
}
