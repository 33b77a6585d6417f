import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeSingle } from '../support/batch-program.ts';

test('a process of tests that does not end is ended, and says what is open', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'quarry-watchdog-'));
  try {
    const [file, program] = [join(directory, 'open.mjs'), join(directory, 'program.mjs')];
    writeFileSync(
      file,
      `import { createServer } from 'node:net';
       import { test } from 'node:test';
       test('leaves a server open', () => void createServer().listen(0, '127.0.0.1'));\n`,
    );
    writeSingle(program, file);
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const ended = await new Promise<{ code: unknown; errors: string }>((resolve) =>
      execFile(process.execPath, [program], { env: { ...env, TEST_END_MS: '200' } }, (error, _out, errors) =>
        resolve({ code: error?.code, errors }),
      ),
    );
    assert.equal(ended.code, 1);
    assert.match(ended.errors, /Still open: .*TCPServerWrap/);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
