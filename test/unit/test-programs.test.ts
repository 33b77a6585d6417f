import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, test } from 'node:test';
import { writeBatch, writeSingle } from '../support/batch-program.ts';
import { projectRoot } from '../support/source.ts';

const directory = mkdtempSync(join(tmpdir(), 'quarry-test-programs-'));
after(() => rmSync(directory, { recursive: true, force: true }));
const program = join(directory, 'program.mjs');

/** A test file with this text; its path is relative to the project, as the runner has it. */
function writeFile(text: string): string {
  const file = join(directory, 'file.mjs');
  writeFileSync(file, text);
  return relative(projectRoot, file);
}

function run(more: Record<string, string> = {}): Promise<{ code: unknown; errors: string }> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Promise((resolve) =>
    execFile(process.execPath, [program], { env: { ...env, ...more } }, (error, _out, errors) =>
      resolve({ code: error?.code, errors }),
    ),
  );
}

test('a process of tests that does not end is ended, and says what is open', async () => {
  const file = writeFile(
    `import { createServer } from 'node:net';
     import { test } from 'node:test';
     test('leaves a server open', () => void createServer().listen(0, '127.0.0.1'));\n`,
  );
  writeSingle(program, file);
  const ended = await run({ TEST_END_MS: '200' });
  assert.equal(ended.code, 1);
  assert.match(ended.errors, /Still open: .*TCPServerWrap/);
});

for (const [kind, write] of [
  ['by itself', (file: string) => writeSingle(program, file)],
  ['in a batch', (file: string) => writeBatch(program, [file])],
] as const)
  test(`a test file that cannot be loaded fails, ${kind}`, async () => {
    for (const text of [
      `import { missing } from 'node:fs';\n`,
      `import './missing.mjs';\n`,
      `throw new Error('at the top');\n`,
      `setImmediate(() => { throw new Error('later'); });\n`,
      `Promise.reject(new Error('rejected'));\n`,
      'not a program\n',
    ]) {
      write(writeFile(text));
      assert.ok(Number((await run()).code) > 0, text);
    }
    write(writeFile(`import { test } from 'node:test';\ntest('passes', () => {});\n`));
    assert.equal((await run()).code, undefined);
  });
