/**
 * The cost of a hostile tenant for another one, in one run:
 *   node bench/neighbours.ts [--only xlsx] [--seconds 30] [--phases]
 * One app does ordinary work at a steady pace: key-value reads and writes, a small extraction, a run of three nodes, a
 * search. Each attack has its own server: the work is measured alone, and then while another app keeps up the attack.
 * The figure is the p99 during the attack divided by the p99 alone. With --phases, it also prints where the server and
 * its database spent the time of the slowest requests, which costs them some time.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Pool } from 'undici';
import { startInBackground } from '../src/lib/background-process.ts';
import { startServe } from '../test/support/serve.ts';
import type { AttackName } from './neighbours/hostile.ts';
import { openPhases } from './neighbours/phases.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '30' },
    phases: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const settleMs = 3_000;
const attacks: AttackName[] = [
  ...(['expressions', 'run trees', 'long runs', 'xlsx', 'key-value lists', 'large bodies', 'hanging links'] as const),
  'input schemas',
  ...(['bare threads', 'bare transfers'] as const),
];
const workMs = { 'kv get': 40, 'kv put': 40, extraction: 250, run: 200, search: 100 } as const;
type Work = keyof typeof workMs;

for (const attack of attacks.filter((name) => values.only === undefined || name === values.only)) {
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
  const observer = values.phases ? `--import=${new URL('./neighbours/observe.ts', import.meta.url)}` : '';
  const server = await startServe({
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} ${observer}`.trim(),
    QUARRY_DATA_DIR: dataDir,
    QUARRY_LOG_LEVEL: 'fatal',
    QUARRY_FETCH_ALLOW: '127.0.0.1',
  });
  try {
    const credentials = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
      secret_key: string;
      developer_token: string;
    };
    const neighbour = await createNeighbour(server.baseUrl, credentials.secret_key);
    const phases = values.phases ? await openPhases(server, dataDir) : undefined;
    await neighbour.measure(2);
    await phases?.start();
    const alone = await neighbour.measure(seconds);
    const aloneAt = await phases?.summary();
    const key = await createApp(server.baseUrl, credentials.developer_token);
    const hostile = startInBackground((own) =>
      fork(
        new URL('./neighbours/hostile.ts', import.meta.url),
        [JSON.stringify({ base: server.baseUrl, key, attack })],
        own,
      ),
    );
    const [started] = await Promise.race([once(hostile, 'message'), once(hostile, 'exit')]);
    if (started !== 'started') throw new Error(`The attack ended with ${started}.`);
    await wait(settleMs);
    await phases?.start();
    const beside = await neighbour.measure(seconds);
    const besideAt = await phases?.summary();
    await phases?.stop();
    hostile.kill('SIGKILL');
    await once(hostile, 'exit');
    console.log(`\n${attack}`);
    for (const work of Object.keys(workMs) as Work[]) {
      const [before, now] = [percentiles(alone[work]), percentiles(beside[work])];
      console.log(
        `  ${work.padEnd(10)} alone p50 ${ms(before.p50)} p99 ${ms(before.p99)}   beside p50 ${ms(now.p50)} p99 ${ms(now.p99)}   ${(now.p99 / before.p99).toFixed(2)} x`,
      );
    }
    for (const [when, lines] of Object.entries({ alone: aloneAt ?? [], beside: besideAt ?? [] }))
      for (const line of lines) console.log(`  ${when} ${line}`);
    await neighbour.close();
  } finally {
    await server.kill();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}
process.exit(0);

/** Creates another app, and returns its secret key. */
async function createApp(base: string, token: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = async <T>(path: string, body: unknown, more = {}): Promise<T> => {
    const response = await fetch(base + path, {
      method: 'POST',
      headers: { ...headers, ...more },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`POST ${path} returns ${response.status}: ${text}`);
    return JSON.parse(text) as T;
  };
  const app = await post<{ id: string }>('/protected/api/v1/developer/apps', { name: 'Hostile' });
  return (await post<{ full_key: string }>('/api/v1/keys', { type: 'secret' }, { 'x-app': app.id })).full_key;
}

async function createNeighbour(base: string, key: string) {
  const client = new Pool(base, { connections: 16 });
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const { statusCode, body: response } = await client.request({
      method,
      path: `/api/v1${path}`,
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (statusCode >= 300) throw new Error(`${method} ${path} returns ${statusCode}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
  type Made = { id: string };
  const user = await call<Made>('POST', '/users', { email: 'neighbour@example.test', name: 'Neighbour' });
  await call('PUT', '/kv/key', { user: user.id, value: 'value' });
  const html = '<h1>Harbour report</h1><p>Ships came and went, and the pilots were glad of it.</p>';
  const upload = { filename: 'page.html', content_type: 'text/html', data: Buffer.from(html).toString('base64') };
  const file = await call<Made>('POST', '/files', upload);
  const automation = await call<Made>('POST', '/automations', {
    ...{ name: 'three nodes', type: 'invoked' },
    workflow: {
      ...{ kind: 'WorkflowGraph', version: 1, start_node: 'start' },
      nodes: [
        { id: 'start', kind: 'trigger', on_success: 'note' },
        { id: 'note', kind: 'kv_set', user: user.id, key: 'seen', value: 'n{{$.n + 1}}', on_success: 'done' },
        { id: 'done', kind: 'complete', result: { n: '{{$.n}}' } },
      ],
    },
  });
  await call('POST', `/automations/${automation.id}/activate`);
  const source = await call<Made>('POST', '/knowledge_sources', { type: 'knowledge/documents', user: user.id });
  for (let n = 0; n < 20; n++) {
    const content = { data: `Refund number ${n} takes ${n} days after the parcel is back.` };
    const ingestion = await call<Made>('POST', `/knowledge_sources/${source.id}/ingest`, { title: `T${n}`, content });
    while ((await call<{ status: string }>('GET', `/knowledge_ingestions/${ingestion.id}`)).status !== 'succeeded')
      await wait(10);
  }

  const work: Record<Work, (n: number) => Promise<unknown>> = {
    'kv get': () => call('GET', `/kv/key?user=${user.id}`),
    'kv put': (n) => call('PUT', `/kv/key-${n % 100}`, { user: user.id, value: `value ${n}` }),
    extraction: () => call('POST', '/extractions', { file: file.id, destination_kind: 'storage' }),
    async run(n) {
      const { id } = await call<Made>('POST', `/automations/${automation.id}/invoke`, { payload: { n } });
      while ((await call<{ status: string }>('GET', `/automation_runs/${id}`)).status !== 'completed') await wait(5);
    },
    search: () => call('POST', `/knowledge_sources/${source.id}/search`, { query: 'how long until a refund' }),
  };

  /**
   * Sends each kind of work at its pace, whether or not earlier requests have finished. Returns the milliseconds of
   * each.
   */
  async function measure(forSeconds: number): Promise<Record<Work, number[]>> {
    const took: Record<Work, number[]> = { 'kv get': [], 'kv put': [], extraction: [], run: [], search: [] };
    const lines = (Object.keys(workMs) as Work[]).map(async (name) => {
      const pieces: Promise<void>[] = [];
      for (let n = 0; n < (forSeconds * 1_000) / workMs[name]; n++) {
        const startedAt = performance.now();
        pieces.push(work[name](n).then(() => void took[name].push(performance.now() - startedAt)));
        await wait(workMs[name]);
      }
      await Promise.all(pieces);
    });
    await Promise.all(lines);
    return took;
  }

  return { measure, close: () => client.destroy() };
}

function percentiles(took: number[]): { p50: number; p99: number } {
  const sorted = [...took].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

function ms(value: number): string {
  return `${value.toFixed(1).padStart(7)} ms`;
}
