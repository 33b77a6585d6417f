/**
 * What a call of the TypeScript client costs beside plain `fetch`: both in turns, one call at a time, against a server in
 * a process of its own that returns a small JSON at once.
 *   node bench/client.ts [--calls 20000] [--rounds 7]
 */
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { Quarry } from '../clients/typescript/src/index.ts';

const { values } = parseArgs({
  options: { calls: { type: 'string', default: '20000' }, rounds: { type: 'string', default: '7' } },
});
const calls = Number(values.calls);
const entry = { key: 'theme', value: 'dark', created_at: '2026-01-01T00:00:00.000Z' };
const program = `require('node:http').createServer((request, response) => {
  response.setHeader('content-type', 'application/json').end(${JSON.stringify(JSON.stringify(entry))});
}).listen(0, '127.0.0.1', function () { console.log(this.address().port) })`;
const server = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
process.once('exit', () => server.kill());
const port = await new Promise<number>((resolve) => server.stdout.once('data', (text) => resolve(Number(text))));
const baseUrl = `http://127.0.0.1:${port}`;
const quarry = new Quarry({ baseUrl, key: 'sk_bench' });

async function plain(signal: AbortSignal | null): Promise<unknown> {
  const headers = { 'x-api-key': 'sk_bench', accept: 'application/json' };
  const response = await fetch(`${baseUrl}/api/v1/kv/theme`, { headers, signal });
  if (!response.ok) throw new Error(`${response.status}`);
  return response.json();
}

const ways = {
  fetch: () => plain(null),
  // What any call that can be ended costs.
  'fetch with a signal': () => plain(new AbortController().signal),
  'fetch with a deadline': () => plain(AbortSignal.timeout(60_000)),
  client: () => quarry.kv.get('theme'),
};
type Way = keyof typeof ways;
const names = Object.keys(ways) as Way[];

type Cost = { time: number; processor: number };

/** Microseconds of time and of processor time per call. */
async function measure(way: Way): Promise<Cost> {
  const [started, used] = [performance.now(), process.cpuUsage()];
  for (let call = 0; call < calls; call++) await ways[way]();
  const { user, system } = process.cpuUsage(used);
  return { time: ((performance.now() - started) * 1_000) / calls, processor: (user + system) / calls };
}

const median = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
const costs = Object.fromEntries(names.map((name) => [name, [] as Cost[]])) as Record<Way, Cost[]>;
// The first round warms all of them.
for (let round = 0; round <= Number(values.rounds); round++)
  for (const name of names) {
    const cost = await measure(name);
    if (round > 0) costs[name].push(cost);
  }
for (const name of names) {
  const of = (kind: keyof Cost) => median(costs[name].map((cost) => cost[kind])).toFixed(0);
  const ratio = (kind: keyof Cost) =>
    median(costs[name].map((cost, round) => cost[kind] / (costs.fetch[round]?.[kind] ?? Number.NaN))).toFixed(2);
  console.log(
    `${name}: ${of('time')} µs (${ratio('time')} of fetch), processor ${of('processor')} µs (${ratio('processor')})`,
  );
}
process.exit(0);
