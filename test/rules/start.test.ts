import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { readSources } from '../support/source.ts';

/** Packages that a start has no need for: each is loaded by the first request, job or command that uses it. */
const loadedLater = [
  ...[
    '@aws-sdk/client-s3',
    '@aws-sdk/lib-storage',
    '@hyzyla/pdfium',
    '@modelcontextprotocol/server',
    '@node-rs/argon2',
  ],
  ...['@fastify/swagger', 'commander', 'htmlparser2', 'jose', 'jsonata', 'papaparse', 'playwright-core', 'postal-mime'],
  ...['snowball-stemmers', 'tinyld'],
  ...['typebox', 'typebox/value', 'undici', 'yaml', 'yauzl'],
];
/** The engines of runs and of crawls: the first job that needs one loads it. */
const engines = ['src/automations/engine/advance.ts', 'src/crawls/engine.ts'];
/** Its import also loads Node's client for fetch and WebSocket. */
const loadedByRequire = ['node:http'];

const sources = new Map(readSources('src').map(({ name, text }) => [name, text]));
const importPattern = /^(?:import|export)\s+(?!type\b)(?:[^;'"]*?\sfrom\s+)?'([^']+)'/gm;

/** What is imported before anything runs: the packages, each with the first file that does, and the files. */
function findImported(
  sources: Map<string, string>,
  entries: string[],
): { packages: Map<string, string>; files: Set<string> } {
  const packages = new Map<string, string>();
  const files = new Set<string>();
  for (let waiting = entries; waiting.length > 0; ) {
    const file = waiting.pop() ?? '';
    if (files.has(file)) continue;
    files.add(file);
    for (const [, target = ''] of (sources.get(file) ?? '').matchAll(importPattern))
      if (target.startsWith('.')) waiting.push(join(file, '..', target));
      else if (!packages.has(target)) packages.set(target, file);
  }
  return { packages, files };
}

test('a server starts without the code of commands, parsers, S3, MCP, sign-in and outgoing requests', () => {
  const { packages, files } = findImported(sources, [
    ...['src/main.ts', 'src/cli/run.ts', 'src/cli/operate/serve.ts'],
    ...['src/boot/serving.ts', 'src/supervisor/supervise.ts', 'src/supervisor/child.ts'],
  ]);
  assert.ok(packages.has('fastify') && packages.has('pg'));
  const found = [...loadedLater, ...loadedByRequire].filter((name) => packages.has(name));
  assert.deepEqual(
    found.map((name) => `${name} in ${packages.get(name)}`),
    [],
    'Load it where it is needed: `await import(…)`, or lazyPackage (src/lib/lazy-package.ts) in code that does not wait.',
  );

  for (const engine of engines) assert.equal(sources.has(engine) && !files.has(engine), true, engine);

  const examples = new Map([
    ['src/a.ts', "import type { T } from 'jose';\nimport { b } from './b.ts';\n"],
    ['src/b.ts', "import {\n  request,\n} from 'undici';\n"],
  ]);
  assert.deepEqual([...findImported(examples, ['src/a.ts']).packages], [['undici', 'src/b.ts']]);
});
