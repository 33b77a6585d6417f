import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { openDatabase } from '../../../src/db/database.ts';
import { writeBatch } from '../../support/batch-program.ts';
import { createTestDatabase } from '../../support/database.ts';
import { poolerVariable, startPooler } from '../../support/pooler.ts';
import { projectRoot } from '../../support/source.ts';

/*
 * Debian's PgBouncer 1.18 in transaction mode in front, which knows no prepared statements: QUARRY_PREPARE=off, and
 * LISTEN and session locks on a direct connection. `npm run test:pgbouncer` runs all of test/api behind it.
 */
const selection = ['kv/kv', 'automations/waiting', 'idempotency/idempotency'].map((name) => `test/api/${name}.test.ts`);

const directory = mkdtempSync(join(tmpdir(), 'quarry-pgbouncer-'));
const { target, drop } = await createTestDatabase();
const pooler = await startPooler(target);
after(async () => {
  await pooler.close();
  await drop();
  rmSync(directory, { recursive: true });
});

test('the pooler gives a connection to each transaction, not to each client', async () => {
  assert.ok(typeof target !== 'string');
  const address = { ...target, host: '127.0.0.1', port: pooler.port };
  const [one, other] = [1, 2].map(() =>
    openDatabase(address, { poolSize: 1, applicationName: 'test', prepare: false }),
  );
  assert.ok(one && other);
  try {
    const backendOf = async (db: typeof one) => (await db`select pg_backend_pid() as pid`)[0]?.pid;
    const first = await backendOf(one);
    await other.begin(async (tx) => {
      const [row] = await tx`select pg_backend_pid() as pid`;
      assert.equal(row?.pid, first);
      assert.notEqual(await backendOf(one), first);
    });
  } finally {
    await Promise.all([one.end({ timeout: 1 }), other.end({ timeout: 1 })]);
  }
});

test('requests, jobs and streams work behind PgBouncer in transaction mode', async () => {
  // With NODE_TEST_CONTEXT, the runner would take this for one of its own test files.
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const env = { ...inherited, [poolerVariable]: String(pooler.port) };
  const program = join(directory, 'behind-pgbouncer.test.mjs');
  writeBatch(program, selection);
  const run = promisify(execFile)(process.execPath, ['--test', program], { cwd: projectRoot, env });
  const { stdout } = await run.catch((error: { stdout?: string }) => assert.fail(error.stdout ?? String(error)));
  assert.match(stdout, /^ℹ fail 0$/m);
});
