import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { installClientPackage } from '../../support/client-packages.ts';
import { projectRoot, readProjectFile } from '../../support/source.ts';

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'quarry-client-package-'));
after(() => rmSync(directory, { recursive: true, force: true }));
installClientPackage('typescript', join(directory, 'node_modules'));
const { exports } = JSON.parse(readProjectFile('clients/typescript/package.json')) as {
  exports: Record<string, unknown>;
};
const entries = Object.keys(exports).filter((name) => name !== './package.json');

/** The compressed size in bytes of a bundle for browsers with these lines as its program. */
async function bundledBytes(name: string, program: string): Promise<number> {
  const input = join(directory, `${name}.js`);
  writeFileSync(input, program);
  const result = await build({
    ...{ root: directory, configFile: false, logLevel: 'silent', publicDir: false },
    build: {
      write: false,
      target: 'es2023',
      minify: 'oxc',
      lib: { entry: input, formats: ['es'], fileName: name },
    },
  });
  const [output] = Array.isArray(result) ? result : [result];
  assert.ok(output && 'output' in output);
  const code = output.output.map((chunk) => ('code' in chunk ? chunk.code : '')).join('');
  assert.ok(!/from\s*["']|require\(/.test(code), 'nothing is imported from elsewhere');
  return gzipSync(code).length;
}

test('a bundle holds what it uses: a group in 5 KB, workflows in 6 KB, functions that serve them in 10 KB, the connection in 5 KB, everything in 30 KB', async () => {
  const sizes: Record<string, number> = {};
  for (const entry of entries) {
    const name = entry === '.' ? 'index' : entry.slice(2);
    // A group without the connection, which all groups of a bundle share.
    const program = `export * from '@quarry/client${entry.slice(1)}';`;
    sizes[name] = await bundledBytes(name, program);
  }
  const { index = 0, ...parts } = sizes;
  const larger: Record<string, number> = { workflows: 6_000, serve: 10_000 };
  assert.ok(index > 0 && index <= 30_000, `everything: ${index} bytes`);
  assert.deepEqual(
    Object.entries(parts).filter(([name, bytes]) => bytes > (larger[name] ?? 5_000)),
    [],
  );
});

test('a program imports every entry from the package, and has its types without those of Node', async () => {
  const imports = entries.map((entry, at) => `import * as e${at} from '@quarry/client${entry.slice(1)}';`);
  const uses = entries.map((_, at) => `e${at}`).join(', ');
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }');
  writeFileSync(
    join(directory, 'program.ts'),
    `${imports.join('\n')}
import { Quarry } from '@quarry/client';
const quarry = new Quarry({ baseUrl: 'http://127.0.0.1:1', retries: 0 });
const name: Promise<string> = quarry.users.get('usr_1').then((user) => user.id).catch(() => 'unreachable');
console.log([${uses}].every((module) => Object.keys(module).length > 0), await name);
`,
  );
  const lib = ['--lib', 'es2023,dom,dom.iterable,dom.asynciterable', '--types', ''];
  const tsc = join(projectRoot, 'node_modules/.bin/tsc');
  const options = ['--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--target', 'es2023', ...lib];
  await run(tsc, [...options, 'program.ts'], { cwd: directory }).catch(({ stdout }) => assert.fail(stdout));
  const { stdout } = await run(process.execPath, ['program.js'], { cwd: directory });
  assert.equal(stdout, 'true unreachable\n');
});

test('the package has no dependencies, no scripts at install time, and ships its licence', () => {
  const manifest = JSON.parse(readProjectFile('clients/typescript/package.json')) as Record<string, object>;
  for (const kind of ['dependencies', 'peerDependencies', 'optionalDependencies']) assert.ok(!(kind in manifest), kind);
  for (const name of ['preinstall', 'install', 'postinstall']) assert.ok(!(name in (manifest.scripts ?? {})), name);
  assert.match(readFileSync(join(projectRoot, 'clients/typescript/LICENSE'), 'utf8'), /Apache License/);
});
