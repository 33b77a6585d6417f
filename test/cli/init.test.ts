import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { installClientPackage } from '../support/client-packages.ts';
import { basicEnvironment, callQuarry } from '../support/command.ts';
import { runPython } from '../support/python.ts';
import { startTestServer } from '../support/server.ts';

/* `quarry init` writes a starter, which is then used as its README says. */

const server = await startTestServer();
const root = mkdtempSync(join(tmpdir(), 'quarry-init-test-'));
after(async () => {
  await server.close();
  rmSync(root, { recursive: true, force: true });
});

/** Writes the starter and applies its files to an app of its own. */
async function start(language: string) {
  const directory = join(root, language);
  const made = await callQuarry(['init', directory, '--language', language]);
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /quarry dev/);
  for (const name of ['.gitignore', '.env', 'README.md', 'app/sources/handbook.yaml', 'handbook/hours.md'])
    assert.ok(existsSync(join(directory, name)), name);
  const { secretKey } = await server.provision.app();
  const env = { QUARRY_API_URL: server.baseUrl, QUARRY_API_KEY: secretKey };
  const applied = await callQuarry(['apply', join(directory, 'app')], { env });
  assert.equal(applied.code, 0, applied.stderr);
  assert.match(applied.stderr, /3 to create/);
  const again = await callQuarry(['apply', join(directory, 'app'), '--dry-run'], { env });
  assert.deepEqual([again.code, again.stdout], [0, ''], again.stderr);
  return { directory, env };
}

test('the starter in TypeScript answers a question, and its test passes', async () => {
  const { directory, env } = await start('typescript');
  installClientPackage('typescript', join(directory, 'node_modules'));
  const options = { cwd: directory, env: { ...basicEnvironment(), ...env } };
  const run = promisify(execFile);
  for (let round = 0; round < 2; round++) {
    const { stdout } = await run(process.execPath, ['src/main.ts', 'When does the shop open?'], options);
    assert.match(stdout, /^hours: .*opens at nine/s);
    assert.equal(stdout.match(/opens at nine/g)?.length, 1, 'a second run adds nothing');
  }
  const { scripts } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as {
    scripts: { test: string };
  };
  assert.equal(scripts.test, 'node --test "test/*.test.ts"');
  const tested = await run(process.execPath, ['--test', 'test/*.test.ts'], options);
  assert.match(tested.stdout, /pass 2\n/);
});

test('the starter in Python answers a question, and its test passes', async () => {
  const { directory, env } = await start('python');
  const inDirectory = { ...env, PYTHONPATH: directory };
  const shell = `import os, runpy, sys; os.chdir(${JSON.stringify(directory)}); sys.argv = ["main.py", "When does the shop open?"]; runpy.run_path("main.py")`;
  const asked = await runPython(['-c', shell], inDirectory);
  assert.match(asked.output, /^hours: .*opens at nine/s, asked.errors);
  const unittest = `import os, unittest; os.chdir(${JSON.stringify(directory)}); unittest.main(module="tests.test_look_up")`;
  const tested = await runPython(['-c', unittest], inDirectory);
  assert.equal(tested.code, 0, tested.errors);
  assert.match(tested.errors, /Ran 2 tests/);
});

test('a file that exists is never overwritten', async () => {
  const directory = join(root, 'taken');
  assert.equal((await callQuarry(['init', directory, '--language', 'python'])).code, 0);
  writeFileSync(join(directory, 'README.md'), 'Mine.\n');
  const refused = await callQuarry(['init', directory, '--language', 'typescript']);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /exists\. Name a directory without it/);
  assert.equal(readFileSync(join(directory, 'README.md'), 'utf8'), 'Mine.\n');
  assert.ok(!existsSync(join(directory, 'package.json')));
  assert.equal((await callQuarry(['init', join(root, 'other'), '--language', 'cobol'])).code, 2);
});
