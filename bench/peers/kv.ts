import { cpuOfTree } from '../processes.ts';
import { startEtcd } from './kv-etcd.ts';
import { startNats } from './kv-nats.ts';
import { startQuarryKv } from './kv-quarry.ts';
import { type KvPeer, percentile, type Row } from './row.ts';

const keyCount = 10_000;
const counterCount = 500;
const callers = 64;
const rounds = 3;
const value = 'v'.repeat(100);
const keyAt = (n: number) => `key-${(n * 7_919) % keyCount}`;

const operations: Record<string, (peer: KvPeer, n: number) => Promise<unknown>> = {
  GET: (peer, n) => peer.get(keyAt(n)),
  PUT: (peer, n) => peer.put(keyAt(n), value),
  increment: (peer, n) => peer.increment(`count-${n % counterCount}`),
};

type Result = { rate: number; p99: number; cpu: number };

/** GET, PUT and increments of 64 callers, one server after the other in each of several rounds. */
export async function measureKv(seconds: number): Promise<Row[]> {
  const peers: KvPeer[] = [];
  try {
    for (const start of [startQuarryKv, ...startEtcd, startNats]) peers.push(await start());
    const results = new Map(peers.map((peer) => [peer, new Map<string, Result[]>()]));
    for (const peer of peers) await fill(peer);
    for (const [name, operation] of Object.entries(operations))
      for (let round = 0; round <= rounds; round++)
        for (const peer of peers) {
          const result = await load(peer, operation, round === 0 ? 0.5 : seconds);
          // The first round only warms up.
          const known = results.get(peer)?.get(name) ?? [];
          if (round > 0) results.get(peer)?.set(name, [...known, result]);
        }
    for (const peer of peers) await checkCounters(peer);
    return peers.map(({ program, version, guarantees, ...peer }) => ({
      ...{ program, version, guarantees },
      figures: figuresOf([...results].find(([one]) => one.pids === peer.pids)?.[1] ?? new Map()),
    }));
  } finally {
    for (const peer of peers) await peer.close();
  }
}

async function fill(peer: KvPeer): Promise<void> {
  for (let from = 0; from < keyCount; from += callers)
    await Promise.all(
      Array.from({ length: Math.min(callers, keyCount - from) }, (_, n) => peer.put(`key-${from + n}`, value)),
    );
  if ((await peer.get(keyAt(1))) !== value) throw new Error(`${peer.program} does not return what was written.`);
}

async function load(
  peer: KvPeer,
  operation: (peer: KvPeer, n: number) => Promise<unknown>,
  seconds: number,
): Promise<Result> {
  const times: number[] = [];
  const cpuBefore = cpuOfTree(peer.pids);
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1_000;
  let next = 0;
  const call = async () => {
    for (let now = performance.now(); now < endsAt; ) {
      await operation(peer, next++);
      const then = performance.now();
      times.push(then - now);
      now = then;
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  const took = (performance.now() - startedAt) / 1_000;
  const cpu = ((cpuOfTree(peer.pids) - cpuBefore) / times.length) * 1_000_000;
  counted.set(peer, (counted.get(peer) ?? 0) + (operation === operations.increment ? times.length : 0));
  return {
    rate: times.length / took,
    p99: percentile(
      times.sort((a, b) => a - b),
      0.99,
    ),
    cpu,
  };
}

const counted = new Map<KvPeer, number>();

/** A lost increment would make a server look faster than it is. */
async function checkCounters(peer: KvPeer): Promise<void> {
  let sum = 0;
  for (let n = 0; n < counterCount; n++) sum += Number((await peer.get(`count-${n}`)) ?? 0);
  if (sum !== counted.get(peer)) throw new Error(`${peer.program} counted ${sum} of ${counted.get(peer)} increments.`);
}

function figuresOf(results: ReadonlyMap<string, Result[]>): Row['figures'] {
  return Object.fromEntries(
    [...results].map(([name, all]) => {
      const middle = (pick: (result: Result) => number) =>
        percentile(
          all.map(pick).sort((a, b) => a - b),
          0.5,
        );
      const { rate, p99, cpu } = { rate: middle((r) => r.rate), p99: middle((r) => r.p99), cpu: middle((r) => r.cpu) };
      return [name, `${Math.round(rate)}/s, p99 ${p99.toFixed(1)} ms, ${Math.round(cpu)} µs`];
    }),
  );
}
