/**
 * How much work a streaming replica takes off the primary: processor time of all of the primary's processes for a
 * search and for a list, with and without DATABASE_REPLICA_URL, in turns in one run.
 *   node bench/replica.ts [--rounds 3] [--requests 600] [--documents 300] [--writes 20] Two servers over one primary
 *   and its asynchronous replica, 16 requests at a time, while another app writes a few entries a second. Ratios are
 *   comparable between machines; times are not. About two minutes.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { knowledgeOf } from '../test/support/knowledge.ts';
import { startPostgresPair } from '../test/support/postgres-pair.ts';
import { startTestServer, type TestServer } from '../test/support/server.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    requests: { type: 'string', default: '600' },
    documents: { type: 'string', default: '300' },
    writes: { type: 'string', default: '20' },
  },
});
const atOnce = 16;
/** The kernel counts in hundredths of a second. */
const tickMs = 10;
const words = 'river bridge stone market winter garden engine letter copper signal harvest window'.split(' ');

const pair = await startPostgresPair({ synchronous: false });
const dataDir = await mkdtemp(join(tmpdir(), 'quarry-bench-'));
const { host, port, database, username } = pair.standby.address;
const replica = {
  DATABASE_URL: 'postgres://unused',
  DATABASE_REPLICA_URL: `postgres://${username}@${host}:${port}/${database}`,
};
const secret = '0f7c1a94d7c35e28b0f4a1c96d82e735';
const installed = { target: pair.primary.address, db: pair.primary.db, dataDir, secret };
// A cache of the smallest size: what is measured is reading the database.
const env = { QUARRY_SEARCH_CACHE_MB: '1', QUARRY_RATE_READS: '0', QUARRY_RATE_SEARCH: '0', QUARRY_RATE_WRITES: '0' };
const without = await startTestServer({ installed, env });
const withReplica = await startTestServer({ beside: without, env: { ...env, ...replica } });
try {
  await measure();
} finally {
  await withReplica.close();
  await without.close();
  await pair.close();
  await rm(dataDir, { recursive: true, force: true });
}

async function measure(): Promise<void> {
  const { app, org, member } = await without.provision.world();
  const key = app.secretKey;
  const knowledge = knowledgeOf(without, { key });
  const source = await knowledge.createSource({ org: org.id });
  for (let n = 0; n < Number(values.documents); n++) {
    const text = Array.from({ length: 300 }, (_, i) => words[(n * 7 + i * i) % words.length]).join(' ');
    await knowledge.push(source, `# Document ${n}\n\n${text}`);
  }
  for (let n = 0; n < 100; n++)
    await without.api('PUT', `/api/v1/kv/entry-${n}`, { key, body: { user: member.id, value: words } });
  const other = await without.provision.world();
  let writes = 0;
  const writer = setInterval(() => {
    const body = { user: other.member.id, value: writes };
    void without.api('PUT', `/api/v1/kv/tick-${writes++ % 50}`, { key: other.app.secretKey, body });
  }, 1_000 / Number(values.writes));
  const loads: Record<string, (server: TestServer, n: number) => Promise<{ status: number; text: string }>> = {
    search: (server, n) =>
      server.api('POST', `/api/v1/knowledge_sources/${source}/search`, {
        ...{ key, body: { query: `${words[n % words.length]} ${words[(n * 5 + 1) % words.length]}` } },
      }),
    list: (server) => server.api('GET', `/api/v1/kv?user=${member.id}&page_size=100`, { key }),
  };
  for (const [name, load] of Object.entries(loads)) {
    const spent = { without: 0, with: 0, replica: 0 };
    for (let round = 0; round < Number(values.rounds); round++)
      for (const server of [without, withReplica]) {
        const before = { primary: processorMs(pair.primary.pid), standby: processorMs(pair.standby.pid) };
        await runLoad((n) => load(server, n));
        spent[server === without ? 'without' : 'with'] += processorMs(pair.primary.pid) - before.primary;
        if (server === withReplica) spent.replica += processorMs(pair.standby.pid) - before.standby;
      }
    const each = (ms: number) => (ms / (Number(values.requests) * Number(values.rounds))).toFixed(2);
    const off = 1 - spent.with / spent.without;
    console.log(
      `${name}: primary ${each(spent.without)} ms without and ${each(spent.with)} ms with a replica, which takes ${each(spent.replica)} ms: ${(100 * off).toFixed(0)} % off the primary`,
    );
  }
  clearInterval(writer);
  const outcomes = /^quarry_replica_reads_total.*$/gm;
  for (const line of (await withReplica.services.metrics.text()).match(outcomes) ?? []) console.log(line);
}

async function runLoad(load: (n: number) => Promise<{ status: number; text: string }>): Promise<void> {
  let n = 0;
  const send = async () => {
    while (n < Number(values.requests)) {
      const { status, text } = await load(n++);
      if (status !== 200) throw new Error(text);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, send));
}

/** The processor time of a postmaster and all of its processes, including ended ones. */
function processorMs(pid: number): number {
  const own = readTicks(pid);
  let ticks = own.own + own.ended;
  for (const child of readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
  ))
    ticks += readTicks(Number(child)).own;
  return ticks * tickMs;
}

function readTicks(pid: number): { own: number; ended: number } {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15);
    return { own: user + system, ended: endedUser + endedSystem };
  } catch {
    return { own: 0, ended: 0 };
  }
}
