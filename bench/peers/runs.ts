import { startOwnServer } from './own-server.ts';
import { percentile, type Row, type RunsPeer } from './row.ts';
import { startDbos } from './runs-dbos.ts';
import { startQuarryRuns } from './runs-quarry.ts';

const rounds = 3;
const latencies = 100;

/** Runs of three steps, each of which writes one row exactly once, by two engines over one PostgreSQL. */
export async function measureRuns(count: number): Promise<Row[]> {
  const server = await startOwnServer();
  const peers: RunsPeer[] = [];
  try {
    for (const start of [startQuarryRuns, ...startDbos]) peers.push(await start(server));
    const rates = new Map(peers.map((peer) => [peer, [] as number[]]));
    const times = new Map(peers.map((peer) => [peer, [] as number[]]));
    for (let round = 0; round <= rounds; round++)
      for (const peer of peers) {
        const rate = await measureRate(peer, round === 0 ? count / 4 : count);
        const took = await measureLatencies(peer, round === 0 ? 20 : latencies);
        // The first round only warms up.
        if (round > 0) rates.get(peer)?.push(rate);
        if (round > 0) times.get(peer)?.push(...took);
      }
    for (const peer of peers) await peer.check();
    return peers.map((peer) => {
      const sorted = (times.get(peer) ?? []).sort((a, b) => a - b);
      const rate = percentile(
        (rates.get(peer) ?? []).sort((a, b) => a - b),
        0.5,
      );
      const [p50, p95] = [percentile(sorted, 0.5).toFixed(1), percentile(sorted, 0.95).toFixed(1)];
      const { program, version, guarantees } = peer;
      const figures = { runs: `${rate.toFixed(0)}/s`, 'one at a time': `p50 ${p50} ms, p95 ${p95} ms` };
      return { program, version, guarantees, figures };
    });
  } finally {
    for (const peer of peers) await peer.close();
    await server.stop();
  }
}

/** Runs per second, from the first start to the end of the last run, started by 16 callers. */
async function measureRate(peer: RunsPeer, count: number): Promise<number> {
  const startedAt = performance.now();
  await peer.runMany(count);
  return count / ((performance.now() - startedAt) / 1_000);
}

/** Milliseconds from the start of a run until its result is here. */
async function measureLatencies(peer: RunsPeer, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const startedAt = performance.now();
    await peer.runOne();
    times.push(performance.now() - startedAt);
  }
  return times;
}
