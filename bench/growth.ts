/**
 * How the time of a request grows with the rows of its app, and with the number of apps: medians of sequential requests
 * through HTTP, with a secret key. Prints tables, and draws docs/charts/growth-rows.svg and growth-apps.svg with --draw.
 *
 *   node bench/growth.ts [--rows 1000,10000,100000,1000000] [--apps 1,10,100,1000,10000] [--samples 61] [--draw]
 *   node bench/growth.ts --apps none --points FILE    one part; FILE keeps its points beside those of other runs
 *
 * Users are a hundredth of the rows, because the index of their search takes a millisecond to fill for each.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { drawGrowth, type Line } from './growth/chart.ts';
import { type Filled, fillApps, fillRows } from './growth/fill.ts';
import { startBenchServer } from './support.ts';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000,10000,100000,1000000' },
    apps: { type: 'string', default: '1,10,100,1000,10000' },
    samples: { type: 'string', default: '61' },
    draw: { type: 'boolean', default: false },
    points: { type: 'string' },
  },
});
const samples = Number(values.samples);
/** A request that takes longer than this is repeated less often. */
const slowMs = 200;
const slowSamples = 7;

type Request = {
  method?: 'GET' | 'PUT' | 'POST';
  path(filled: Filled, n: number): string;
  body?(filled: Filled, n: number): object;
};

const any = <T>(list: readonly T[], n: number): T => list[(n * 7_919) % list.length] as T;
const requests: Record<string, Request> = {
  'GET /kv/{key}': { path: ({ user, keys }, n) => `/kv/${any(keys, n)}?user=${user}` },
  'PUT /kv/{key}': {
    method: 'PUT',
    path: ({ keys }, n) => `/kv/${any(keys, n)}`,
    body: ({ user }, n) => ({ value: String(n), user }),
  },
  'GET /kv, first page': { path: () => '/kv' },
  'GET /kv, one user': { path: ({ user }) => `/kv?user=${user}` },
  'GET /files/{file}': { path: ({ files }, n) => `/files/${any(files, n)}` },
  'GET /files, first page': { path: () => '/files' },
  'POST /files': {
    method: 'POST',
    path: () => '/files',
    body: (_filled, n) => ({ filename: `${n}.txt`, content_type: 'text/plain', data: 'VGV4dC4=' }),
  },
  'GET /users/{user}': { path: ({ users }, n) => `/users/${any(users, n)}` },
  'GET /users, first page': { path: () => '/users' },
  'GET /users, by search': { path: (_filled, n) => `/users?search=person-${n % 50}@` },
  'GET /automation_runs/{run}': { path: ({ runs }, n) => `/automation_runs/${any(runs, n)}` },
  'GET /automation_runs, first page': { path: () => '/automation_runs' },
  'GET /knowledge_documents/{document}': { path: ({ documents }, n) => `/knowledge_documents/${any(documents, n)}` },
  'GET /knowledge_documents, first page': { path: ({ source }) => `/knowledge_documents?source=${source}` },
  'GET /audit, first page': { path: () => '/audit' },
};

const server = await startBenchServer({ QUARRY_AUDIT: 'off' });
try {
  const measured: Record<string, Line[]> = readPoints();
  if (values.rows !== 'none')
    measured.rows = await measureEach('rows in the app', values.rows, (count) => fillRows(server, count));
  if (values.apps !== 'none')
    measured.apps = await measureEach('apps of 100 rows', values.apps, (count) => fillApps(server, count));
  if (values.points !== undefined) writeFileSync(values.points, `${JSON.stringify(measured)}\n`);
  if (values.draw)
    for (const [part, lines] of Object.entries(measured)) {
      const by = part === 'rows' ? 'rows in its app' : 'number of apps';
      writeFileSync(`docs/charts/growth-${part}.svg`, drawGrowth(`Milliseconds a request, by ${by}`, lines));
    }
} finally {
  await server.close();
}

function readPoints(): Record<string, Line[]> {
  if (values.points === undefined || !existsSync(values.points)) return {};
  return JSON.parse(readFileSync(values.points, 'utf8'));
}

async function measureEach(what: string, counts: string, fill: (count: number) => Promise<Filled>): Promise<Line[]> {
  const lines: Line[] = Object.keys(requests).map((name) => ({ name, points: [] }));
  const sizes = counts.split(',').map(Number);
  for (const size of sizes) {
    const start = performance.now();
    const filled = await fill(size);
    await server.db`vacuum analyze`;
    console.error(`${size} ${what}: filled in ${((performance.now() - start) / 1_000).toFixed(1)} s`);
    for (const line of lines) line.points.push({ at: size, ms: await measure(requests[line.name] as Request, filled) });
  }
  console.log(`\n${['median ms by', what, ...sizes, 'ratio'].join(' | ')}`);
  for (const { name, points } of lines) {
    const ratio = (points.at(-1)?.ms ?? Number.NaN) / (points[0]?.ms ?? Number.NaN);
    console.log(
      `${name.padEnd(38)} ${[...points.map(({ ms }) => ms), ratio].map((x) => x.toFixed(2).padStart(9)).join('')}`,
    );
  }
  return lines;
}

async function measure({ method = 'GET', path, body }: Request, filled: Filled): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < samples + 3; n++) {
    const start = performance.now();
    const response = await fetch(`${server.baseUrl}/api/v1${path(filled, n)}`, {
      method,
      headers: { 'x-api-key': filled.key, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body(filled, n)) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path(filled, n)} is ${response.status}: ${text}`);
    // The first requests prepare the statements.
    if (n >= 3) times.push(performance.now() - start);
    if (times.length >= slowSamples && (times[0] ?? 0) > slowMs) break;
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}
