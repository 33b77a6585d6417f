import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { describeSchema } from '../../../scripts/describe-schema.ts';
import { Connection } from '../../../src/db/connection.ts';
import { openDatabase } from '../../../src/db/database.ts';
import { largeTables, partitionTables } from '../../../src/db/partition.ts';
import type { Compiled } from '../../../src/db/sql.ts';
import type { Task } from '../../../src/jobs/task.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { runQuarry } from '../../support/command.ts';
import { createTestDatabase } from '../../support/database.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';

/* A server whose large tables are partitions by app. `npm run test:partitions` runs all of the API's tests on one. */
const partitions = 4;
const database = await createTestDatabase();
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-partitions-'));
const secret = randomBytes(32).toString('hex');
const installed = { target: database.target, db: database.db, dataDir, secret };
const proxy = await openTcpProxy(database.target);
const servers: TestServer[] = [];
after(async () => {
  for (const server of servers) await server.close();
  await proxy.close();
  await database.drop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

const partition = () =>
  runQuarry(['partition', '--count', String(partitions)], {
    env: { DATABASE_URL: proxy.url, QUARRY_SECRET: secret, QUARRY_DATA_DIR: dataDir },
  });

/** Where `npm run test:partitions` has already split the tables, there is nothing to move. */
const skip = process.env.QUARRY_TEST_PARTITIONS !== undefined && 'The tables are partitioned already.';

test('quarry partition refuses while a server runs, moves every row, and the hot statements touch one partition', {
  skip,
}, async (context) => {
  const before = await startTestServer({ installed });
  servers.push(before);
  const { app, org, member } = await before.provision.world();
  const key = app.secretKey;
  await work(before);
  const source = await knowledgeOf(before, { key }).createSource({ org: org.id });
  await knowledgeOf(before, { key }).push(source, 'A text about the ibis.');
  const refused = await partition();
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /stop every Quarry process first/);
  await before.close();
  // A pooler keeps the connections of servers that have ended.
  const leftBehind = openDatabase(database.target, { poolSize: 1, applicationName: 'quarry' });
  await leftBehind`select 1`;
  const whole = await describeSchema(database.db);
  const rows = await countRows();
  const done = await partition();
  assert.equal(done.code, 0, done.stderr);
  await leftBehind.end();
  for (const table of largeTables) assert.match(done.stdout, new RegExp(`^ {2}${table}$`, 'm'));
  assert.deepEqual(await partitionTables(database.db, partitions), [], 'Another run has nothing to do.');
  assert.deepEqual(await countRows(), rows);
  assert.deepEqual(linesOf(await describeSchema(database.db)), linesOf(whole));

  const statements = watchStatements();
  const server = await startTestServer({ installed });
  servers.push(server);
  assert.equal((await server.api('GET', `/api/v1/kv/first?user=${member.id}`, { key })).status, 200);
  assert.equal((await knowledgeOf(server, { key }).search(source, 'ibis')).length, 1);
  await work(server);
  // What recurs may run at any time, and so it always runs here.
  const { recurring } = server.server.work;
  const tasks: Record<string, Task> = server.server.work.tasks;
  for (const { task } of recurring) await tasks[task]?.({}, { signal: new AbortController().signal } as never);
  await server.close();
  const seen = statements.stop();
  const touched = await countTouched(seen);
  context.diagnostic(`${touched.length} statements on partitioned tables`);
  assert.ok(touched.length >= 25, `${touched.length} statements`);
  assert.deepEqual(
    touched.filter(({ tables, text }) => tables.some(({ count }) => count > 1) && !sweep.test(text)),
    [],
  );
  const careless = { ...(seen[0] as Compiled), text: 'select count(*) from kv_entries', values: [], types: [] };
  const [found] = await countTouched([careless]);
  assert.deepEqual(found?.tables, [{ table: 'kv_entries', count: partitions }], 'The check must be able to fail.');

  async function work(server: TestServer): Promise<void> {
    const call = async (method: string, path: string, body?: unknown) => {
      const { status, text } = await server.api(method, `/api/v1${path}`, { key, ...(body ? { body } : {}) });
      assert.ok(status < 300, `${method} ${path}: ${text}`);
    };
    const user = member.id;
    for (const name of ['first', 'second', 'a/b'])
      await call('PUT', `/kv/${encodeURIComponent(name)}`, { user, value: 'x' });
    await call('PUT', '/kv/brief', { user, value: 'x', ttl_seconds: 60 });
    await call('POST', '/kv_increment', { user, key: 'counter' });
    await call('POST', '/kv_batch', {
      user,
      operations: [
        { op: 'put', key: 'p', value: '1' },
        { op: 'delete', key: 'p' },
      ],
    });
    await call('GET', `/kv/first?user=${user}`);
    await call('GET', `/kv?user=${user}`);
    await call('GET', `/kv_entries?user=${user}&page_size=10`);
    await call('DELETE', `/kv/second?user=${user}`);
    const knowledge = knowledgeOf(server, { key });
    const source = await knowledge.createSource({ org: org.id });
    const document = await knowledge.push(source, `# Birds\n\n${'A text about the heron. '.repeat(80)}`);
    for (const mode of ['hybrid', 'vector', 'fulltext'])
      assert.ok(
        (await knowledge.search(source, { query: 'heron "a text"', mode, highlights: true, context: 1 })).length > 0,
      );
    await call('GET', `/knowledge_documents/${document}`);
    await call('GET', `/knowledge_documents/${document}/chunks`);
    await call('DELETE', `/knowledge_documents/${document}`);
    await call('DELETE', `/knowledge_sources/${source}`);
    const graph = graphOf(
      { id: 'nap', kind: 'wait', seconds: 0.1, on_success: 'note' },
      { id: 'note', kind: 'kv_set', user, key: 'noted', value: 'x', on_success: 'end' },
      { id: 'end', kind: 'complete', result: {} },
    );
    const automations = new AutomationsClient(server, app);
    const run = await automations.runGraph(graph);
    assert.equal(run.status, 'completed');
    assert.ok((await automations.journal(run.id)).length > 3);
    await call('GET', '/ledger');
    await call('GET', '/ledger/verification');
  }
});

/** Clean-up and ledgers of all apps, which may run at any time and are not part of a request. */
const sweep =
  /^ ?(?:with expired as \( select l\.app_id, l\.user_id, l\.key from kv_entries l where l\.expires_at|select distinct app_id, sandbox_id from "?(?:audit_entries|run_anchors)"? (?:record |e )?where (?:segment is null|at <)|delete from audit_entries where \(app_id, id\) in \( select e\.app_id, e\.id from audit_entries e where e\.at <)/;

/** Records the statements of this process, one of each text. */
function watchStatements(): { stop(): Compiled[] } {
  const seen = new Map<string, Compiled>();
  const { execute } = Connection.prototype;
  Connection.prototype.execute = function (this: Connection, compiled) {
    const text = compiled.text.replace(/^declare \w+ no scroll cursor for /, '');
    if (!seen.has(text)) seen.set(text, { ...compiled, text, once: true });
    return execute.call(this, compiled);
  };
  return {
    stop() {
      Connection.prototype.execute = execute;
      return [...seen.values()];
    },
  };
}

type Plan = {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Loops'?: number;
  Plans?: Plan[];
};
type Touched = { text: string; tables: { table: string; count: number }[] };

/** For each statement on a partitioned table, how many of its partitions it reads. */
async function countTouched(statements: readonly Compiled[]): Promise<Touched[]> {
  const isLarge = new RegExp(`\\b(${largeTables.join('|')})\\b`);
  const connection = await Connection.open(
    { target: database.target, applicationName: 'quarry-test', prepare: false, timeoutMs: 10_000 },
    () => {},
  );
  const explain = async (statement: Compiled, options: string) => {
    await connection.runScript('begin');
    try {
      const text = `explain (${options}, format json) ${statement.text}`;
      const rows = await connection.execute({ ...statement, text });
      return rows.flatMap((row) => row['QUERY PLAN'] as { Plan: Plan }[])[0]?.Plan;
    } finally {
      await connection.runScript('rollback');
    }
  };
  const touched: Touched[] = [];
  for (const statement of statements.filter(
    ({ text }) => isLarge.test(text) && /^\s*(select|with|insert|update|delete)/i.test(text),
  )) {
    // A statement that conflicts with its own first run has a plan nevertheless.
    const plan = await explain(statement, 'analyze, timing off, summary off').catch(() =>
      explain(statement, 'costs off'),
    );
    const read = new Map<string, Set<string>>();
    const visit = (node: Plan): void => {
      const [, table, number] = /^(\w+)_(\d+)$/.exec(node['Relation Name'] ?? '') ?? [];
      if (
        table !== undefined &&
        number !== undefined &&
        node['Actual Loops'] !== 0 &&
        node['Node Type'] !== 'ModifyTable'
      )
        read.set(table, (read.get(table) ?? new Set()).add(number));
      for (const each of node.Plans ?? []) visit(each);
    };
    if (plan !== undefined) visit(plan);
    const tables = [...read].map(([table, numbers]) => ({ table, count: numbers.size }));
    touched.push({ text: statement.text.replaceAll(/\s+/g, ' '), tables });
  }
  await connection.close();
  return touched;
}

/** The schema without what only partitions can have, and without how an index of all partitions is shown. */
function linesOf(schema: string): string[] {
  return schema
    .replaceAll(/^(table \w+) with \(.*\)$/gm, '$1')
    .replaceAll(/^ {2}CREATE (UNIQUE )?INDEX (\w+) ON ONLY \S+ USING /gm, '  $1index $2 ')
    .split('\n');
}

async function countRows(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of largeTables) {
    const [row] = await database.db<{ count: number }[]>`select count(*)::integer as count from ${database.db(table)}`;
    counts[table] = row?.count ?? 0;
  }
  return counts;
}
