import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { writeBatch } from '../../support/batch-program.ts';
import { testsCells } from '../../support/cells-of-process.ts';
import { projectRoot } from '../../support/source.ts';

/*
 * Files whose requests name their app in every way: keys, tokens, sessions of the console and its sign-in at an issuer,
 * permanent and signed URLs, links of approvals, paths of the MCP endpoint, and /v1. `npm run test:cells` runs all of
 * test/api and test/crash with two cells.
 */
const selection = ['identity/external-sign-in', 'files/capabilities', 'automations/approvals', 'openai/openai'];

const directory = mkdtempSync(join(tmpdir(), 'quarry-cells-selection-'));
after(() => rmSync(directory, { recursive: true }));

test('requests of every kind work with two cells', {
  timeout: 1_800_000,
  skip: testsCells && 'All of these tests run with two cells already.',
}, async () => {
  // With NODE_TEST_CONTEXT, the runner would take this for one of its own test files.
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const program = join(directory, 'with-cells.test.mjs');
  writeBatch(
    program,
    selection.map((name) => `test/api/${name}.test.ts`),
  );
  const env = { ...inherited, QUARRY_TEST_CELLS: '2' };
  const run = promisify(execFile)(process.execPath, ['--test', program], { cwd: projectRoot, env });
  const { stdout } = await run.catch((error: { stdout?: string }) => assert.fail(error.stdout ?? String(error)));
  assert.match(stdout, /^ℹ fail 0$/m);
});
