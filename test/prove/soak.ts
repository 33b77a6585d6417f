import { mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { sendRequest } from '../support/request.ts';
import { type ServedProcess, startServe } from '../support/serve.ts';
import { drawPlot, judge, type Series } from './slopes.ts';

/** The pause between two requests of a client: the server is busy but not overloaded. */
const paceMs = 50;
const sampleMs = 5_000;
/** The first part of the time fills caches, pools and tables. */
const warmUpShare = 1 / 3;
/** Full within minutes at this pace, so that whatever grows later is not this cache. */
const searchCacheMb = '8';
const collectGarbage = new URL('collect-garbage.ts', import.meta.url).href;

/**
 * Runs a mixed load on one server with its embedded database for this many minutes. The load deletes what it creates,
 * so memory, handles, connections and the age of the queue should stay flat. Writes a plot, and returns whether all
 * of them were flat.
 */
export async function soak(minutes: number, plotFile: string): Promise<boolean> {
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-soak-'));
  const env = {
    ...{ QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'error', QUARRY_PARSE_WORKERS: '1' },
    QUARRY_SEARCH_CACHE_MB: searchCacheMb,
    NODE_OPTIONS: `--import=${collectGarbage}`,
  };
  const server = await startServe(env);
  try {
    const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
      secret_key: string;
    };
    const end = performance.now() + minutes * 60_000;
    const counts = { requests: 0, failures: 0 };
    const load = runLoad(server, key, counts, () => performance.now() >= end);
    const series = await sample(server, dataDir, () => performance.now() >= end);
    await load;
    const verdicts = series.map((each) => judge(each, warmUpShare));
    writeFileSync(plotFile, drawPlot(series, verdicts));
    console.log(`${minutes} minutes, ${counts.requests} requests, ${counts.failures} failed`);
    for (const { name, unit, start, last, perHour, isFlat, isJudged } of verdicts)
      console.log(
        `${name.padEnd(14)} ${start} to ${last} ${unit}, ${perHour} ${unit} an hour  ${isJudged ? (isFlat ? 'flat' : 'NOT FLAT') : ''}`,
      );
    console.log(`Plot: ${plotFile}`);
    return counts.failures === 0 && verdicts.every(({ isFlat, isJudged }) => isFlat || !isJudged);
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

type Counts = { requests: number; failures: number };

async function runLoad(server: ServedProcess, key: string, counts: Counts, isOver: () => boolean): Promise<void> {
  const send = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await sendRequest<T>(server.baseUrl, method, `/api/v1${path}`, {
      ...{ key, ...(body === undefined ? {} : { body }) },
    });
    counts.requests += 1;
    if (response.status >= 400) {
      counts.failures += 1;
      console.log(`${method} ${path}: ${response.text}`);
    }
    return response.body;
  };
  type Made = { id: string };
  const user = (await send<Made>('POST', '/users', { email: 'soak@example.test', name: 'Soak' })).id;
  const org = (await send<Made>('POST', '/orgs', { name: 'Soak' })).id;
  const source = (await send<Made>('POST', '/knowledge_sources', { type: 'knowledge/documents', org })).id;
  const automation = (
    await send<Made>('POST', '/automations', {
      ...{ name: 'Soak', type: 'invoked' },
      workflow: {
        ...{ kind: 'WorkflowGraph', version: 1, start_node: 'nap' },
        nodes: [
          { id: 'nap', kind: 'wait', seconds: 0.1, on_success: 'end' },
          { id: 'end', kind: 'complete', result: {} },
        ],
      },
    })
  ).id;
  await send('POST', `/automations/${automation}/activate`);
  const until = async (path: string, ended: string[]): Promise<void> => {
    for (;;) {
      const { status, state } = await send<{ status?: string; state?: string }>('GET', path);
      if (ended.includes(status ?? state ?? '')) return;
      await wait(paceMs);
    }
  };
  const actors: ((n: number) => Promise<void>)[] = [
    async (n) => {
      await send('PUT', `/kv/soak-${n % 50}`, { user, value: `value ${n}`, ttl_seconds: 60 });
      await send('GET', `/kv?user=${user}&page_size=25`);
    },
    async (n) => {
      const data = Buffer.from(`# File ${n}\n\n${'Some words. '.repeat(n % 200)}`).toString('base64');
      const { id } = await send<Made>('POST', '/files', { filename: 'a.md', content_type: 'text/markdown', data });
      const extraction = await send<Made>('POST', '/extractions', { file: id, destination_kind: 'storage' });
      await send('DELETE', `/extractions/${extraction.id}`);
      const files = await send<{ data: Made[] }>('GET', '/files?page_size=10');
      for (const file of files.data) await send('DELETE', `/files/${file.id}`);
    },
    async (n) => {
      const content = { data: `# Soak ${n}\n\n${'Text to be found. '.repeat(60)}` };
      const ingestion = await send<Made>('POST', `/knowledge_sources/${source}/ingest`, {
        title: `Title ${n}`,
        content,
      });
      await until(`/knowledge_ingestions/${ingestion.id}`, ['succeeded', 'failed']);
      await send('POST', `/knowledge_sources/${source}/search`, { query: 'text to be found' });
      const documents = await send<{ data: Made[] }>('GET', `/knowledge_documents?page_size=10`);
      for (const document of documents.data) await send('DELETE', `/knowledge_documents/${document.id}`);
    },
    async (n) => {
      const run = await send<Made>('POST', `/automations/${automation}/invoke`, { payload: { n } });
      await until(`/automation_runs/${run.id}`, ['completed', 'failed', 'cancelled']);
    },
  ];
  await Promise.all(
    actors.map(async (act) => {
      for (let n = 0; !isOver(); n++) {
        await act(n);
        await wait(paceMs);
      }
    }),
  );
}

/** Measures everything that is watched, every few seconds, each time after a garbage collection. */
async function sample({ baseUrl, pid }: ServedProcess, dataDir: string, isOver: () => boolean): Promise<Series[]> {
  const series: Series[] = [
    { name: 'memory', unit: 'MB', floor: 24, isJudged: true, points: [] },
    // Objects and buffers that are in use.
    { name: 'heap', unit: 'MB', floor: 4, isJudged: true, points: [] },
    { name: 'handles', unit: 'handles', floor: 8, isJudged: true, points: [] },
    { name: 'connections', unit: 'connections', floor: 6, isJudged: true, points: [] },
    { name: 'age of jobs', unit: 's', floor: 2, isJudged: true, points: [] },
    // Journals, the audit log and usage are kept for days.
    { name: 'disk', unit: 'MB', floor: 0, isJudged: false, points: [] },
  ];
  const started = performance.now();
  const free = () => {
    const { bfree, bsize } = statfsSync(dataDir);
    return bfree * bsize;
  };
  const freeAtStart = free();
  while (!isOver()) {
    process.kill(pid, 'SIGUSR2');
    const metrics = (await sendRequest(baseUrl, 'GET', '/metrics')).text;
    const fds = readdirSync(`/proc/${pid}/fd`);
    const values = [
      residentMb(pid),
      heapMb(metrics),
      fds.length,
      connections(metrics),
      oldestJob(metrics),
      (freeAtStart - free()) / 2 ** 20,
    ];
    const seconds = (performance.now() - started) / 1_000;
    for (const [index, value] of values.entries()) series[index]?.points.push([seconds, value]);
    await wait(sampleMs);
  }
  return series;
}

function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024;
}

function heapMb(metrics: string): number {
  const names = ['nodejs_heap_size_used_bytes', 'nodejs_external_memory_bytes'];
  return names.flatMap((name) => valuesOf(metrics, name)).reduce((sum, value) => sum + value, 0) / 2 ** 20;
}

function connections(metrics: string): number {
  return valuesOf(metrics, 'quarry_database_connections').reduce((sum, value) => sum + value, 0);
}

function oldestJob(metrics: string): number {
  return Math.max(0, ...valuesOf(metrics, 'quarry_jobs_oldest_seconds', /state="ready"/));
}

function valuesOf(metrics: string, name: string, having = /./): number[] {
  // A metric that was renamed would look flat forever.
  if (!metrics.includes(`# TYPE ${name} `)) throw new Error(`/metrics has no ${name}.`);
  const isSample = (line: string) => line.startsWith(`${name}{`) || line.startsWith(`${name} `);
  const lines = metrics.split('\n').filter((line) => isSample(line) && having.test(line));
  return lines.map((line) => Number(line.split(' ').at(-1)));
}
