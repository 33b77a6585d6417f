import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

/*
 * Keeps the code of the newest release and its API tests in test/fixtures/releases/VERSION/source.tar.br: the tests of
 * the next release run it on their own schema.
 *
 * node scripts/record-source.ts [COMMIT]   the commit of the release, by default the current one
 */
const root = join(import.meta.dirname, '..');
const release = JSON.parse(readFileSync(join(root, 'migrations/release.json'), 'utf8')) as { version: string };
const [commit = 'HEAD'] = process.argv.slice(2);
const paths = [
  ...['src', 'migrations', 'scripts', 'package.json', 'openapi.json'],
  ...['test/api', 'test/support', 'test/unit/support', 'test/fixtures'],
];

const { status, stdout, stderr } = spawnSync(
  'git',
  ['archive', '--format=tar', commit, ...paths, ':(exclude)test/fixtures/releases'],
  { cwd: root, maxBuffer: 256 * 1024 * 1024 },
);
if (status !== 0) throw new Error(`git archive failed: ${stderr}`);
const { BROTLI_PARAM_LGWIN, BROTLI_PARAM_SIZE_HINT } = constants;
const compressed = brotliCompressSync(stdout, {
  params: { [BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS, [BROTLI_PARAM_SIZE_HINT]: stdout.length },
});
const releases = join(root, 'test/fixtures/releases');
for (const version of readdirSync(releases)) rmSync(join(releases, version, 'source.tar.br'), { force: true });
const file = `test/fixtures/releases/${release.version}/source.tar.br`;
writeFileSync(join(root, file), compressed);
process.stdout.write(`${file}: ${compressed.length} bytes\n`);
