/**
 * What rate limits and the counting of credential uses cost a request:
 *   node bench/limits.ts [--seconds 4] [--rounds 5] First the calls themselves, in a loop over one and over many
 *   credentials; then a server with them beside the same server without, on a route that does nothing, each in a
 *   separate process and in turns.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { AuditLog } from '../src/audit/log.ts';
import { openDatabase } from '../src/db/database.ts';
import { startEmbeddedPostgres } from '../src/db/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { systemClock } from '../src/lib/clock.ts';
import { newUuid } from '../src/lib/ids.ts';
import { createLogger } from '../src/lib/log.ts';
import type { UserCaller } from '../src/tenancy/caller.ts';
import { endWithThisProcess, stopPostgresWithThisProcess } from '../test/support/left-behind.ts';
import { benchSecret, createFixture } from './kv/fixture.ts';
import { generousLimiter } from './limits/limiter.ts';
import { keepRatio } from './ratios.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '4' }, rounds: { type: 'string', default: '5' } },
});
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
stopPostgresWithThisProcess(dataDir);
const embedded = await startEmbeddedPostgres({ dataDir, log: createLogger('error') });
const servers: ChildProcess[] = [];
try {
  const db = openDatabase(embedded.address, { poolSize: 4, applicationName: 'bench' });
  await migrate(db);
  const { user } = await createFixture(db);

  const limiter = generousLimiter(db);
  const audit = new AuditLog({ db, directory: db, clock: systemClock, log: createLogger('warn'), keep: 'changes' });
  const credential = { kind: 'user', epoch: 0, sessionId: undefined } as const;
  for (const credentials of [1, 10_000]) {
    const callers = Array.from({ length: credentials }, createCaller);
    // Within the credit, because a loop that never pauses leaves no time to charge.
    const calls = 500_000;
    for (const measured of [false, true]) {
      let waited = 0;
      const startedAt = process.hrtime.bigint();
      for (let i = 0; i < calls; i++) {
        const caller = callers[i % credentials];
        if (caller === undefined) continue;
        if (limiter.take(caller, 'reads') !== undefined) waited += 1;
        audit.count({ identity: caller, credential }, 200);
      }
      const ns = Number(process.hrtime.bigint() - startedAt) / calls;
      if (measured) console.log(`${credentials} credentials: ${ns.toFixed(0)} ns a request, ${waited} waited`);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
  await limiter.close();
  await audit.close();

  const running = { with: await startServer('with'), without: await startServer('without') };
  const results: Record<string, { rate: number; cpu: number }[]> = { with: [], without: [] };
  for (let round = 0; round <= Number(values.rounds); round++)
    for (const [name, server] of Object.entries(running)) {
      const before = cpuSeconds(server.child);
      const { requests, duration, non2xx } = await autocannon({
        url: `${server.url}/nothing`,
        connections: 32,
        duration: round === 0 ? 2 : Number(values.seconds),
        headers: { authorization: `Bearer ${user.token}` },
      });
      if (non2xx > 0) throw new Error(`${non2xx} answers were errors.`);
      const cpu = ((cpuSeconds(server.child) - before) / requests.total) * 1_000_000;
      if (round > 0) results[name]?.push({ rate: requests.total / duration, cpu });
    }
  const middle = (name: string, of: 'rate' | 'cpu') => {
    const sorted = (results[name] ?? []).map((each) => each[of]).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  };
  for (const name of ['without', 'with'])
    console.log(
      `${name.padEnd(8)} ${middle(name, 'rate').toFixed(0).padStart(7)}/s  cpu ${middle(name, 'cpu').toFixed(1)} µs`,
    );
  keepRatio('limits, processor time', middle('without', 'cpu') / middle('with', 'cpu'));
  console.log(
    `ratio ${(middle('with', 'rate') / middle('without', 'rate')).toFixed(3)}, cpu ${(middle('with', 'cpu') / middle('without', 'cpu')).toFixed(3)}`,
  );
  await db.end();
} finally {
  for (const server of servers) server.kill();
  await embedded.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

function createCaller(): UserCaller {
  const scope = { appId: newUuid(), sandboxId: newUuid() };
  return { kind: 'user', ...scope, userId: newUuid(), orgId: undefined, orgRole: undefined, teams: new Map() };
}

/** The processor time of a server so far, from the kernel. Linux only. */
function cpuSeconds({ pid }: ChildProcess): number {
  if (process.platform !== 'linux') return Number.NaN;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function startServer(kind: 'with' | 'without'): Promise<{ child: ChildProcess; url: string }> {
  const child = endWithThisProcess(
    spawn(process.execPath, [fileURLToPath(new URL('./limits/server.ts', import.meta.url)), kind], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env.PATH, BENCH_DATABASE: JSON.stringify(embedded.address), BENCH_SECRET: benchSecret },
    }),
  );
  servers.push(child);
  return new Promise((resolve, reject) => {
    child.stdout?.once('data', (chunk) => resolve({ child, url: String(chunk).trim() }));
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
  });
}
