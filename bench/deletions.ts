/**
 * Deletes owners of many rows: a user with key-value entries, a source with documents, a team with files and an
 * automation with runs. Prints how long each request took, and the longest wait of a new event stream of the app meanwhile.
 *   node bench/deletions.ts [--entries 1000000] [--documents 100000] [--files 100000] [--runs 100000] [--directly]
 * With `--directly`, the row is deleted in SQL, and everything else with it, in one transaction.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Database, openDatabase } from '../src/db/database.ts';
import { findEmbeddedPostgres } from '../src/db/embedded.ts';
import { parseId } from '../src/lib/ids.ts';
import { startServe } from '../test/support/serve.ts';

const { values } = parseArgs({
  options: {
    entries: { type: 'string', default: '1000000' },
    documents: { type: 'string', default: '100000' },
    files: { type: 'string', default: '100000' },
    runs: { type: 'string', default: '100000' },
    directly: { type: 'boolean', default: false },
  },
});
const production = '00000000-0000-0000-0000-000000000000';
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
const server = await startServe({
  QUARRY_DATA_DIR: dataDir,
  QUARRY_LOG_LEVEL: 'error',
});
try {
  const { app, secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    app: string;
    secret_key: string;
  };
  const address = findEmbeddedPostgres(dataDir);
  if (address === undefined) throw new Error('The embedded database does not run.');
  const db = openDatabase(address, { poolSize: 2, applicationName: 'bench' });
  const appId = parseId('app', app) ?? '';
  const send = (method: string, path: string, body?: object) =>
    fetch(`${server.baseUrl}/api/v1${path}`, {
      method,
      headers: { 'x-api-key': key, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  const post = async (path: string, body: object) => {
    const response = await send('POST', path, body);
    if (response.status !== 201) throw new Error(`${path} returned ${response.status}: ${await response.text()}`);
    return ((await response.json()) as { id: string }).id;
  };

  /** Opens event streams one after another. Returns the longest wait for one, in milliseconds, when it is stopped. */
  function watch(): () => Promise<number> {
    let isOver = false;
    let longest = 0;
    const watching = (async () => {
      while (!isOver) {
        const began = performance.now();
        const abort = new AbortController();
        const response = await fetch(`${server.baseUrl}/api/v1/events/stream`, {
          headers: { 'x-api-key': key },
          signal: abort.signal,
        });
        longest = Math.max(longest, performance.now() - began);
        if (response.status !== 200) console.log(`A stream was refused: ${response.status}`);
        abort.abort();
        await wait(20);
      }
    })();
    return async () => {
      isOver = true;
      await watching;
      return longest;
    };
  }

  async function remove(path: string, table: string, id: string): Promise<void> {
    if (values.directly) return void (await db`delete from ${db(table)} where app_id = ${appId} and id = ${id}`);
    const { status } = await send('DELETE', path);
    if (status !== 204) throw new Error(`${path} returned ${status}.`);
  }

  async function measure(name: string, path: string, table: string, id: string): Promise<void> {
    await db`checkpoint`;
    const stop = watch();
    await wait(500);
    const began = performance.now();
    await remove(path, table, id);
    const seconds = (performance.now() - began) / 1_000;
    const streamMs = await stop();
    const load = loadavg()[0]?.toFixed(1);
    console.log(`${name}: ${seconds.toFixed(1)} s, a stream waited ${Math.round(streamMs)} ms at most (load ${load})`);
  }

  await measureAll(db, { appId, post, measure, remove });
  await db.end({ timeout: 5 });
} finally {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
}

type Bench = {
  appId: string;
  post(path: string, body: object): Promise<string>;
  measure(name: string, path: string, table: string, id: string): Promise<void>;
  remove(path: string, table: string, id: string): Promise<void>;
};

async function measureAll(db: Database, { appId, post, measure, remove }: Bench): Promise<void> {
  const times: number[] = [];
  for (let n = 0; n < 200; n++) {
    const small = await post('/users', { email: `small-${n}@example.test`, name: 'Small' });
    const began = performance.now();
    await remove(`/users/${small}`, 'users', parseId('user', small) ?? '');
    times.push(performance.now() - began);
  }
  console.log(`A user with nothing: ${times.toSorted((a, b) => a - b)[100]?.toFixed(1)} ms (median of 200)`);

  const user = await post('/users', { email: 'bench@example.test', name: 'Bench' });
  const userId = parseId('user', user) ?? '';
  await db`
    insert into kv_entries (app_id, user_id, key, sandbox_id, id, value)
    select ${appId}, ${userId}, 'key/' || n, ${production}, gen_random_uuid(), repeat('v', 20)
    from generate_series(1, ${Number(values.entries)}) n`;
  await measure(`A user with ${values.entries} entries`, `/users/${user}`, 'users', userId);

  const org = await post('/orgs', { name: 'Bench' });
  const source = await post('/knowledge_sources', { type: 'knowledge/documents', org });
  const sourceId = parseId('source', source) ?? '';
  await db`
    insert into knowledge_documents (app_id, id, sandbox_id, source_id, title, bytes_hash, content_hash, total_lines,
      total_size, first_ordinal, chunk_count, word_count)
    select ${appId}, gen_random_uuid(), ${production}, ${sourceId}, 'Document ' || n, sha256(n::text::bytea),
      sha256(n::text::bytea), 40, 2000, n, 1, 300
    from generate_series(1, ${Number(values.documents)}) n`;
  await db`
    insert into knowledge_texts (app_id, document_id, content)
    select app_id, id, repeat('0123456789', 200)::bytea from knowledge_documents where source_id = ${sourceId}`;
  await measure(
    `A source with ${values.documents} documents`,
    `/knowledge_sources/${source}`,
    'knowledge_sources',
    sourceId,
  );

  const team = await post('/teams', { name: 'Bench' });
  const teamId = parseId('team', team) ?? '';
  await db`
    insert into files (app_id, id, sandbox_id, filename, content_type, size, checksum, blob_key, team_id)
    select ${appId}, gen_random_uuid(), ${production}, 'f' || n, 'text/plain', 10, sha256(n::text::bytea),
      ${appId} || '/' || n, ${teamId}
    from generate_series(1, ${Number(values.files)}) n`;
  await measure(`A team with ${values.files} files`, `/teams/${team}`, 'teams', teamId);

  const automation = await post('/automations', {
    ...{ name: 'b', type: 'invoked' },
    workflow: { kind: 'WorkflowGraph', version: 1, start_node: 'done', nodes: [{ id: 'done', kind: 'complete' }] },
  });
  const automationId = parseId('automation', automation) ?? '';
  await db`
    insert into automation_runs (app_id, id, sandbox_id, automation_id, type, status, payload, sequence, completed_at)
    select ${appId}, gen_random_uuid(), ${production}, ${automationId}, 'invoked', 'completed', '{}', 5, now()
    from generate_series(1, ${Number(values.runs)})`;
  await db`
    insert into automation_run_entries (app_id, run_id, sequence, id, type, record)
    select app_id, id, n, gen_random_uuid(), 'node_started', '{"payload": {}}'
    from automation_runs, generate_series(1, 5) n where automation_id = ${automationId}`;
  await measure(
    `An automation with ${values.runs} runs of 5 entries`,
    `/automations/${automation}`,
    'automations',
    automationId,
  );
}
