import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { InstalledPackage } from '../support/installed-package.ts';
import { projectRoot } from '../support/source.ts';

/*
 * The npm package: what it contains, with the packages that it names. `npm run prove -- --only package` packs and installs
 * it with npm, and tests add-ons and bundles.
 */
const run = promisify(execFile);
const it = new InstalledPackage();
const { project, installed, env } = it;

before(() => it.assemble());
after(() => it.close());

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

test('a feature without its add-on says which command installs it, and nothing else breaks', async () => {
  const settings = {
    QUARRY_RENDERER: 'http://127.0.0.1:1',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
    QUARRY_BLOB_STORE: 's3',
    QUARRY_S3_BUCKET: 'files',
  };
  const { stdout } = await it.quarryWith(settings, 'doctor').catch((error: { stdout: string }) => error);
  for (const name of ['ocr', 'renderer', 's3', 'tracing']) assert.match(stdout, new RegExp(`\`quarry add ${name}\``));
  assert.match(stdout, /^ok +parsers/m);
  const { OTEL_EXPORTER_OTLP_ENDPOINT: _, ...withBucket } = settings;
  await assert.rejects(it.quarryWith(withBucket, 'serve'), ({ stderr }: { stderr: string }) => {
    assert.match(stderr, /The add-on "s3".*run `quarry add s3`/);
    return true;
  });
});

test('a bundle names its platforms', async () => {
  await assert.rejects(it.quarry('bundle', '--platform', 'linux-riscv64'), /Platforms: linux-arm64, linux-x64/);
});

test('the command serves the console, reads documents and computes expressions', async () => {
  await it.withServer(async (url) => {
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    const page = await fetch(`${url}/console/`);
    assert.match(await page.text(), /<script type="module"/);
    assert.equal((await fetch(`${url}/docs/`)).status, 200);

    writeFileSync(join(project, 'report.html'), '<h1>Report</h1><p>All is well.</p>');
    const { stdout } = await it.quarry('extract', 'report.html');
    assert.equal(stdout.trim(), '# Report\n\nAll is well.');

    writeFileSync(join(project, 'sum.yaml'), automation);
    const ended = await it.quarry('automations', 'run', 'sum.yaml', '--payload', '{"a": 20, "b": 22}');
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
