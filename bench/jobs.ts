import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Database, openDatabase, type Statement } from '../src/db/database.ts';
import { startEmbeddedPostgres } from '../src/db/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { newUuid } from '../src/lib/ids.ts';
import { createLogger } from '../src/lib/log.ts';
import { stopPostgresWithThisProcess } from '../test/support/left-behind.ts';

/**
 * What it costs to add a job: `add_job` against a function that inserts the payload into a table with a primary key,
 * and wakes nobody. Ten connections add jobs, a transaction each, in turns of `--seconds`; then one transaction adds
 * thousands.
 *
 *   node bench/jobs.ts [--seconds 3] [--rounds 4]
 */
const option = (name: string, usual: number): number => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? usual : Number(process.argv[at + 1]);
};
const seconds = option('seconds', 3);
const rounds = option('rounds', 4);
const connections = 10;
const together = 5_000;

type Add = (db: Database, n: Statement) => Statement;
const bare: Add = (db, n) => db`bare_add(${payload(db, n)})`;
const app = newUuid();
const payload = (db: Database, n: Statement) => db`json_build_object('appId', ${app}::uuid, 'runId', ${n})`;
const cases: Record<string, Add> = {
  'without a key': (db, n) => db`add_job('advance_run', ${payload(db, n)})`,
  'with a new key': (db, n) => db`add_job('advance_run', ${payload(db, n)}, key := 'a' || ${n})`,
  'with the key of one of 100 waiting jobs': (db, n) =>
    db`add_job('advance_run', ${payload(db, n)}, key := 'b' || ${n} % 100)`,
};

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
stopPostgresWithThisProcess(dataDir);
const server = await startEmbeddedPostgres({ dataDir, log: createLogger('error') });
const db = openDatabase(server.address, { poolSize: connections, applicationName: 'bench' });
try {
  await migrate(db);
  await db`create table bare_jobs (app_id uuid, id bigint generated always as identity, payload json, primary key (app_id, id))`;
  await db`create function bare_add(payload json) returns void language sql begin atomic insert into bare_jobs (app_id, payload) values ((payload ->> 'appId')::uuid, payload); end`;
  for (const [name, add] of Object.entries(cases)) {
    await compare(`${name}, a transaction each`, measureRate, add);
    await compare(`${name}, ${together} in one transaction`, measureTogether, add);
  }
} finally {
  await db.end();
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

/** Measures the jobs per second of the function and of the bare one, in turns. */
async function compare(name: string, measure: (add: Add) => Promise<number>, add: Add): Promise<void> {
  const rates: { own: number; bare: number }[] = [];
  for (let round = 0; round < rounds; round++) rates.push({ bare: await measure(bare), own: await measure(add) });
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
  const [own, basis] = [median(rates.map((each) => each.own)), median(rates.map((each) => each.bare))];
  console.log(`${name}: ${own.toFixed(0)} jobs/s, bare ${basis.toFixed(0)}/s, ratio ${(own / basis).toFixed(2)}`);
}

async function measureRate(add: Add): Promise<number> {
  await db`truncate jobs, bare_jobs`;
  let count = 0;
  const end = performance.now() + seconds * 1_000;
  const work = async () => {
    while (performance.now() < end) await db`select ${add(db, db`${count++}::integer`)}`;
  };
  await Promise.all(Array.from({ length: connections }, work));
  return count / seconds;
}

async function measureTogether(add: Add): Promise<number> {
  await db`truncate jobs, bare_jobs`;
  const start = performance.now();
  await db`select count(*) from (select ${add(db, db`n`)} from generate_series(1, ${together}::integer) n) added`;
  return (together * 1_000) / (performance.now() - start);
}
