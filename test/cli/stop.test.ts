import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { findEmbeddedPostgres } from '../../src/db/embedded.ts';
import { runQuarry } from '../support/command.ts';
import { startServe } from '../support/serve.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-stop-test-'));
after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));
const env = { QUARRY_DATA_DIR: dataDir };

test('`quarry stop` ends a running server, or the PostgreSQL that outlived a killed one', async () => {
  const killed = await startServe(env);
  await killed.kill();
  assert.ok(findEmbeddedPostgres(dataDir), 'PostgreSQL lives on for the next start');
  const orphan = await runQuarry(['stop'], { env });
  assert.equal(orphan.code, 0, orphan.stderr);
  assert.match(orphan.stdout, /that a killed server had left running/);
  assert.equal(findEmbeddedPostgres(dataDir), undefined);

  const running = await startServe(env);
  const stopped = await runQuarry(['stop'], { env });
  assert.match(stopped.stdout, new RegExp(`Stopped the server \\(process ${running.pid}\\)`));
  assert.equal(await running.ended, 0);
  assert.equal(findEmbeddedPostgres(dataDir), undefined);

  assert.match((await runQuarry(['stop'], { env })).stdout, /No server and no PostgreSQL runs/);
});

test('`quarry stop` leaves an external database alone', async () => {
  const external = {
    ...env,
    DATABASE_URL: 'postgres://127.0.0.1:1/quarry',
    QUARRY_SECRET: randomBytes(32).toString('hex'),
  };
  const { code, stderr } = await runQuarry(['stop'], {
    env: external,
  });
  assert.equal(code, 1);
  assert.match(stderr, /Stop the processes with your service manager/);
});
