import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { installClientPackage } from '../support/client-packages.ts';
import { installTimeoutMs, npm } from '../support/npm.ts';
import { projectRoot } from '../support/source.ts';

/* The package of clients/tools as somebody gets it: packed, installed into an empty directory, imported and compiled. */

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'quarry-agent-tools-'));
const modules = join(directory, 'node_modules');
const installed = join(modules, '@quarry', 'tools');
const env = { PATH: [dirname(process.execPath), process.env.PATH].join(delimiter), HOME: directory };

before(
  async () => {
    await npm(join(projectRoot, 'clients/tools'), 'pack', '--pack-destination', directory);
    const [archive = ''] = readdirSync(directory).filter((name) => name.endsWith('.tgz'));
    // Without its peers, nothing comes from a registry.
    await npm(directory, 'install', '--ignore-scripts', '--legacy-peer-deps', '--offline', archive);
  },
  { timeout: installTimeoutMs },
);
after(() => rmSync(directory, { recursive: true, force: true }));

/** Makes packages of this project available to the directory. */
function link(...names: string[]): void {
  for (const name of names) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(projectRoot, 'node_modules', name), join(modules, name));
  }
}

const program = `import { Quarry } from '@quarry/client';
import { createTools, ToolError, toolNames } from '@quarry/tools';
import { quarryTools as aiTools } from '@quarry/tools/ai';
import { quarryTools as langchainTools } from '@quarry/tools/langchain';
import { generateText } from 'ai';

const client = new Quarry({ baseUrl: 'http://127.0.0.1:1', key: 'sk_none', retries: 0 });
const tools = aiTools(client, { tools: ['search', 'kv_get'] });
async function generate(model: Parameters<typeof generateText>[0]['model']): Promise<number | undefined> {
  const { toolResults } = await generateText({ model, tools, prompt: '' });
  const [result] = toolResults;
  return result !== undefined && !result.dynamic && result.toolName === 'kv_get' ? result.output.value.length : 0;
}
const names: string[] = langchainTools(client, { tools: ['read'] }).map(({ name }) => name);
const failure: unknown = await createTools(client, { tools: ['read'] }).read.execute({ id: 'cdo_1' }).catch((e) => e);
const runIsLeftOut: 'run' extends keyof typeof tools ? false : true = true;
console.log(Object.keys(tools), names, failure instanceof ToolError, toolNames.length, runIsLeftOut, generate.name);
`;

test('the package contains compiled code with types, and names neither scripts nor dependencies', () => {
  assert.deepEqual(readdirSync(installed).sort(), ['LICENSE', 'README.md', 'dist', 'package.json']);
  const files = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' });
  for (const name of ['index', 'ai', 'langchain'])
    assert.ok(files.includes(`${name}.js`) && files.includes(`${name}.d.ts`), name);
  assert.ok(files.every((name) => !name.endsWith('.ts') || name.endsWith('.d.ts')));
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Record<string, object>;
  assert.equal(manifest.dependencies, undefined);
  for (const name of ['preinstall', 'install', 'postinstall']) assert.ok(!(name in (manifest.scripts ?? {})), name);
});

test('one framework is enough, and the other is not loaded', async () => {
  link('zod', 'ai');
  const load = (name: string) =>
    run(process.execPath, ['--input-type=module', '-e', `await import('@quarry/tools${name}')`], {
      cwd: directory,
      env,
    });
  await load('');
  await load('/ai');
  await assert.rejects(load('/langchain'), /Cannot find package '@langchain\/core'/);
});

test('a program imports it and has its types', async () => {
  link('@langchain/core');
  installClientPackage('typescript', modules);
  writeFileSync(join(directory, 'program.mts'), program);
  const tsc = join(projectRoot, 'node_modules/.bin/tsc');
  const types = ['--types', 'node', '--typeRoots', join(projectRoot, 'node_modules/@types')];
  const options = ['--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2024', ...types];
  await run(tsc, [...options, 'program.mts'], { cwd: directory, env }).catch(({ stdout }) => assert.fail(stdout));
  const { stdout } = await run(process.execPath, ['program.mjs'], { cwd: directory, env });
  assert.equal(stdout, "[ 'search', 'kv_get' ] [ 'read' ] true 8 true generate\n");
});
