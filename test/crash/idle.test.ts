import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startServe } from '../support/serve.ts';
import { projectRoot } from '../support/source.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-idle-'));
after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));

/** 130 MB. 119 to 122 MiB were measured. */
const idleMibMax = 124;

test('a server that has nothing to do takes at most 124 MiB', {
  skip: process.platform !== 'linux',
}, async (context) => {
  // As `npm start` and `quarry` start it.
  const env = {
    QUARRY_DATA_DIR: dataDir,
    QUARRY_PARSE_WORKERS: String(Math.min(8, availableParallelism())),
    NODE_COMPILE_CACHE: join(projectRoot, 'node_modules/.cache/quarry'),
  };
  // The first start creates the database, which later ones find.
  const first = await startServe(env);
  assert.equal(await first.stop(), 0);
  const server = await startServe(env);
  try {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8')) ?? [];
    const mib = Number(kib) / 1024;
    context.diagnostic(`${mib.toFixed(0)} MiB`);
    assert.ok(mib > 0 && mib <= idleMibMax, `${mib} MiB`);
  } finally {
    await server.stop();
  }
});
