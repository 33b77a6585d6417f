import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { installClientPackage } from '../support/client-packages.ts';
import { installTimeoutMs, npm } from '../support/npm.ts';
import { startTestServer } from '../support/server.ts';
import { projectRoot } from '../support/source.ts';

const server = await startTestServer();
const packages = join(projectRoot, 'test/prove/runtimes');
const directory = mkdtempSync(join(tmpdir(), 'quarry-runtimes-'));
const script = join(directory, 'script.ts');

before(
  async () => {
    await npm(packages, 'ci', '--ignore-scripts');
    mkdirSync(join(directory, 'node_modules'));
    installClientPackage('typescript', join(directory, 'node_modules'));
    copyFileSync(join(packages, 'script.ts'), script);
    writeFileSync(join(directory, 'package.json'), '{ "type": "module" }');
  },
  { timeout: installTimeoutMs },
);
after(async () => {
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

/** The program in the package of this platform. No script of a package runs, so `.bin` does not lead to it. */
function programOf(scope: string, path: string): string {
  const [platform = ''] = readdirSync(join(packages, 'node_modules', scope));
  return join(packages, 'node_modules', scope, platform, path);
}

const runtimes = {
  Deno: () => [programOf('@deno', 'deno'), 'run', '--allow-all', '--no-remote', '--node-modules-dir=manual', script],
  Bun: () => [programOf('@oven', 'bin/bun'), 'run', script],
};
for (const [name, command] of Object.entries(runtimes))
  test(`the TypeScript client uploads, waits, lists, searches, watches and fails as it should in ${name}`, async () => {
    const app = await server.provision.app();
    const [program = '', ...args] = command();
    const { stdout } = await promisify(execFile)(program, args, {
      cwd: directory,
      env: { ...process.env, BASE: server.baseUrl, KEY: app.secretKey, DENO_DIR: directory, DENO_NO_UPDATE_CHECK: '1' },
    }).catch(({ stdout: printed, stderr }) => assert.fail(`${printed}\n${stderr}`));
    assert.deepEqual(stdout.trim().split('\n'), [
      'uploaded text/html true',
      'extracted # Refunds',
      'listed true',
      'found A refund takes five days.',
      'watched put dark',
      'refused not_found',
    ]);
  });
