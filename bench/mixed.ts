/**
 * Mixed work of one app on a separate server: 70 % key-value (half of it writes), 10 % files, 10 % search, 5 % runs
 * and their journals, 5 % ingestion, while 1,000 readers watch key-value entries. Requests are sent at a fixed rate,
 * and a request's time counts from the moment when it was due, so a stall delays all that follow. Prints the times of
 * each kind, and each minute the memory, the open files and the delay of the event loop of the server.
 *
 *   node bench/mixed.ts [--minutes 10] [--rate 200] [--streams 1000] [--cache 32] The search cache has so many MiB:
 *   it fills early, and what grows after that is not cache.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { EventStream } from '../test/support/event-stream.ts';
import { type ServedProcess, startServe } from '../test/support/serve.ts';
import { type Kind, prepareWork } from './mixed/work.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '200' },
    streams: { type: 'string', default: '1000' },
    cache: { type: 'string', default: '32' },
  },
});
const [minutes, rate, streamCount] = [Number(values.minutes), Number(values.rate), Number(values.streams)];
/** The maximum number of requests in flight. Beyond it, the rate cannot be kept. */
const inFlightMax = 2_000;
const megabyte = 1024 * 1024;

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
const server = await startServe({
  ...{ QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'error' },
  QUARRY_SEARCH_CACHE_MB: values.cache,
});
try {
  const credentials = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as Record<string, string>;
  const key = credentials.secret_key ?? '';
  const work = await prepareWork(server.baseUrl, key, streamCount);
  let events = 0;
  const streams: EventStream[] = [];
  for (const user of work.users.slice(0, streamCount)) {
    const stream = await EventStream.open(`${server.baseUrl}/api/v1/kv_watch?user=${user}`, { 'x-api-key': key });
    stream.response.on('data', () => {
      events += 1;
    });
    streams.push(stream);
  }
  console.log(`${streams.length} streams open, ${rate} requests/s for ${minutes} minutes`);
  await readLoopDelayMs(server);

  const times = new Map<Kind, number[]>();
  const perMinute: Sample[] = [];
  let [inFlight, failed, late] = [0, 0, 0];
  const startedAt = performance.now();
  const total = Math.round(minutes * 60 * rate);
  let sampleAt = 60_000;
  const failures = new Set<string>();
  for (let sent = 0; sent < total; sent++) {
    const dueAt = startedAt + (sent / rate) * 1_000;
    const early = dueAt - performance.now();
    if (early > 1) await wait(early);
    if (inFlight >= inFlightMax) {
      late += 1;
      continue;
    }
    inFlight += 1;
    const { kind, send } = work.next();
    void send()
      .then(() => {
        const of = times.get(kind) ?? [];
        times.set(kind, of);
        of.push(performance.now() - dueAt);
      })
      .catch((error: Error) => {
        failed += 1;
        if (failures.size < 5) failures.add(error.message);
      })
      .finally(() => {
        inFlight -= 1;
      });
    if (dueAt - startedAt >= sampleAt) {
      sampleAt += 60_000;
      perMinute.push(await takeSample(server));
      print(perMinute.length, perMinute.at(-1) as Sample);
    }
  }
  while (inFlight > 0) await wait(20);
  perMinute.push(await takeSample(server));
  print(perMinute.length, perMinute.at(-1) as Sample);

  const all = [...times.values()].flat();
  for (const [kind, of] of [...times, ['all', all] as const]) {
    of.sort((a, b) => a - b);
    const at = (share: number) => (of[Math.floor(of.length * share)] ?? Number.NaN).toFixed(1).padStart(7);
    console.log(
      `${kind.padEnd(8)} ${String(of.length).padStart(7)}  p50 ${at(0.5)} ms  p95 ${at(0.95)} ms  p99 ${at(0.99)} ms  p99.9 ${at(0.999)} ms`,
    );
  }
  console.log(`${failed} failed, ${late} not sent, ${events} events read`, ...failures);
  // The first minute fills caches.
  const steady = perMinute.slice(1);
  console.log(
    `memory of the server ${slope(steady.map(({ memoryMb }) => memoryMb)).toFixed(2)} MB a minute after the first`,
  );
  for (const stream of streams) stream.close();
} finally {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

type Sample = { memoryMb: number; openFiles: number; loopDelayMs: number };

function print(minute: number, { memoryMb, openFiles, loopDelayMs }: Sample): void {
  console.log(
    `minute ${minute}: ${memoryMb.toFixed(0)} MB, ${openFiles} open files, event loop p99 ${loopDelayMs.toFixed(1)} ms`,
  );
}

async function takeSample(process: ServedProcess): Promise<Sample> {
  const status = readFileSync(`/proc/${process.pid}/status`, 'utf8');
  return {
    memoryMb: (Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1024) / megabyte,
    openFiles: readdirSync(`/proc/${process.pid}/fd`).length,
    loopDelayMs: await readLoopDelayMs(process),
  };
}

/** The 99th percentile of the event loop's delay since the last reading. */
async function readLoopDelayMs({ baseUrl }: ServedProcess): Promise<number> {
  const text = await (await fetch(`${baseUrl}/metrics`)).text();
  return Number(/^nodejs_eventloop_lag_p99_seconds\S* (\S+)$/m.exec(text)?.[1]) * 1_000;
}

/** The slope of the least-squares line through the values, one value per step. */
function slope(series: readonly number[]): number {
  const middle = (series.length - 1) / 2;
  const mean = series.reduce((sum, value) => sum + value, 0) / series.length;
  const [over, under] = series.reduce(
    ([a, b], value, n) => [a + (n - middle) * (value - mean), b + (n - middle) ** 2],
    [0, 0],
  );
  return under === 0 ? 0 : over / under;
}
