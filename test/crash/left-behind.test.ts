import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findCluster } from '../../src/db/embedded.ts';
import { findPostmaster } from '../../src/db/postmaster.ts';
import { readProcessFile } from '../support/processes.ts';
import { until } from '../support/until.ts';

const program = fileURLToPath(new URL('../fixtures/serving-tests.ts', import.meta.url));
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-left-behind-'));
after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));
/** Nobody may have asked yet how an orphan ended. */
const isRunning = (pid: number) => /\) [^ZX] /.test(readProcessFile(`/proc/${pid}/stat`));

const skip = process.platform !== 'linux';

test('a killed process of tests leaves neither its server nor the PostgreSQL of that behind', { skip }, async () => {
  const tests = spawn(process.execPath, [program, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed] = (await once(tests.stdout, 'data')) as [Buffer];
  const server = Number(printed.toString());
  const postmaster = findPostmaster(findCluster(dataDir));
  assert.ok(postmaster && isRunning(server) && isRunning(postmaster.pid));
  tests.kill('SIGKILL');
  await until(() => !isRunning(server) && !isRunning(postmaster.pid));
});
