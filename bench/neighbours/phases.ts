import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { readProcessorUse } from '../../src/content/parse/pool/deadline.ts';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { findEmbeddedPostgres } from '../../src/db/embedded.ts';
import type { ServedProcess } from '../../test/support/serve.ts';
import { type Observed, observedPrefix, startedPrefix } from './observe.ts';

const sampleMs = 5;
const slowestShown = 4;

/** What the server and its database did during a measurement, and where its slowest requests spent their time. */
type Phases = {
  /** Forgets what was seen so far. */
  start(): Promise<void>;
  /** What was seen since then, in lines. */
  summary(): Promise<string[]>;
  stop(): Promise<void>;
};

type Sample = { at: number; events: string[] };
type Io = { object: string; syncs: number; syncMs: number; bytes: number };
type Use = { ranMs: number; waitedMs: number };

/** @param server runs with `observe.ts` loaded, on a database in `dataDir` */
export async function openPhases(server: ServedProcess, dataDir: string): Promise<Phases> {
  const address = findEmbeddedPostgres(dataDir);
  if (address === undefined) throw new Error('The database of the server was not found.');
  const db = openDatabase(address, { poolSize: 2, applicationName: 'bench' });
  await db`alter system set track_wal_io_timing = on`;
  await db`select pg_reload_conf()`;
  let samples: Sample[] = [];
  let isOver = false;
  const sampling = (async () => {
    while (!isOver) {
      samples.push(await takeSample(db));
      await wait(sampleMs);
    }
  })();
  let outputFrom = 0;
  let ioBefore: Io[] = [];
  let useBefore = new Map<string, Use>();
  return {
    async start() {
      samples = [];
      outputFrom = server.output().length;
      ioBefore = await readIo(db);
      useBefore = readUse(server.pid);
    },
    async summary() {
      const lines = server.output().slice(outputFrom).split('\n');
      const after = (prefix: string) =>
        lines.filter((line) => line.startsWith(prefix)).map((line) => line.slice(prefix.length));
      const started = after(startedPrefix).map(Number);
      const observed = after(observedPrefix).map((line) => JSON.parse(line) as Observed);
      return [
        ...describeIo(ioBefore, await readIo(db)),
        ...describeUse(useBefore, readUse(server.pid)),
        `${started.length} processes started: ${Math.max(0, ...started)} ms at most, ${sumOf(started).toFixed(0)} in all`,
        ...describeSlowest(observed, samples),
      ];
    },
    async stop() {
      isOver = true;
      await sampling;
      await db.end();
    },
  };
}

function describeIo(before: Io[], now: Io[]): string[] {
  return now.map(({ object, ...io }) => {
    const then = before.find((one) => one.object === object) ?? { syncs: 0, syncMs: 0, bytes: 0 };
    const syncs = io.syncs - then.syncs;
    const each = (io.syncMs - then.syncMs) / Math.max(1, syncs);
    return `${object}: ${syncs} syncs of ${each.toFixed(2)} ms, ${((io.bytes - then.bytes) / 1e6).toFixed(1)} MB`;
  });
}

function describeUse(before: Map<string, Use>, now: Map<string, Use>): string[] {
  const seconds = (ms: number) => (ms / 1_000).toFixed(2);
  return [...now].map(([name, { ranMs, waitedMs }]) => {
    const then = before.get(name) ?? { ranMs: 0, waitedMs: 0 };
    return `${name}: ran for ${seconds(ranMs - then.ranMs)} s, waited for a processor for ${seconds(waitedMs - then.waitedMs)} s`;
  });
}

function describeSlowest(observed: Observed[], samples: Sample[]): string[] {
  const kindOf = ({ method, path }: Observed) => `${method} ${path.replace(/key-\d+|key|[a-z]+_\w{20,}/g, '…')}`;
  return [...Map.groupBy(observed, kindOf)].flatMap(([kind, all]) => [
    `${kind}: ${all.length} slow`,
    ...all
      .toSorted((a, b) => b.ms - a.ms)
      .slice(0, slowestShown)
      .map(({ at, ms, turns, descheduled, database, disk, collecting, longestMs, longest }) => {
        const events = samples.filter((one) => one.at >= at && one.at <= at + ms).flatMap((one) => one.events);
        const counts = [...Map.groupBy(events, (event) => event)].map(([event, { length }]) => `${event} ${length}`);
        return `  ${ms} ms: turns ${turns} (collecting ${collecting}), descheduled ${descheduled}, database ${database}, disk ${disk}; longest ${longestMs} ${longest}; sampled ${counts.join(', ')}`;
      }),
  ]);
}

/** What the sessions of the database are doing now. */
async function takeSample(db: Database): Promise<Sample> {
  const at = performance.timeOrigin + performance.now();
  const rows = await db<{ event: string }[]>`
    select coalesce(wait_event, 'active') as event from pg_stat_activity
    where pid <> pg_backend_pid() and state = 'active'`;
  return { at, events: rows.map(({ event }) => event) };
}

async function readIo(db: Database): Promise<Io[]> {
  return db<Io[]>`
    select object, sum(fsyncs)::float8 as syncs, sum(fsync_time)::float8 as sync_ms, sum(write_bytes)::float8 as bytes
    from pg_stat_io group by object having sum(coalesce(fsyncs, 0) + coalesce(writes, 0)) > 0 order by object`;
}

/** How long the server, its children and the processes of its database have run and waited for a processor. */
function readUse(server: number): Map<string, Use> {
  const processes = listProcesses();
  const kindOf = (pid: number, parent: number): string | undefined => {
    if (pid === server) return 'server';
    if (parent === server) return processes.get(pid)?.name === 'postgres' ? 'postgres' : 'children';
    return processes.get(parent)?.parent === server ? kindOf(parent, server) : undefined;
  };
  const sums = new Map<string, Use>();
  for (const [pid, { parent }] of processes) {
    const kind = kindOf(pid, parent);
    if (kind === undefined) continue;
    const { ranMs, waitedMs } = sums.get(kind) ?? { ranMs: 0, waitedMs: 0 };
    const use = readProcessorUse(pid);
    sums.set(kind, { ranMs: ranMs + use.ranMs, waitedMs: waitedMs + use.waitedMs });
  }
  return sums;
}

function listProcesses(): Map<number, { parent: number; name: string }> {
  const found = new Map<number, { parent: number; name: string }>();
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      const [, name = '', parent = ''] = /^\d+ \((.*)\) \S (\d+)/s.exec(stat) ?? [];
      found.set(Number(entry), { name, parent: Number(parent) });
    } catch {
      // It has ended.
    }
  return found;
}

function sumOf(numbers: number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
