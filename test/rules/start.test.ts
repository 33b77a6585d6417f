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
  ...['typebox/value', 'undici', 'yaml', 'yauzl'],
];
/** Its import also loads Node's client for fetch and WebSocket. */
const loadedByRequire = ['node:http'];

const sources = new Map(readSources('src').map(({ name, text }) => [name, text]));
const importPattern = /^(?:import|export)\s+(?!type\b)(?:[^;'"]*?\sfrom\s+)?'([^']+)'/gm;

/** The packages that these files import before anything runs, each with the first file that does. */
function findPackages(files: Map<string, string>, entries: string[]): Map<string, string> {
  const packages = new Map<string, string>();
  const seen = new Set<string>();
  for (let waiting = entries; waiting.length > 0; ) {
    const file = waiting.pop() ?? '';
    if (seen.has(file)) continue;
    seen.add(file);
    for (const [, target = ''] of (files.get(file) ?? '').matchAll(importPattern))
      if (target.startsWith('.')) waiting.push(join(file, '..', target));
      else if (!packages.has(target)) packages.set(target, file);
  }
  return packages;
}

test('a server starts without the code of commands, parsers, S3, MCP, sign-in and outgoing requests', () => {
  const packages = findPackages(sources, [
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

  const files = new Map([
    ['src/a.ts', "import type { T } from 'jose';\nimport { b } from './b.ts';\n"],
    ['src/b.ts', "import {\n  request,\n} from 'undici';\n"],
  ]);
  assert.deepEqual([...findPackages(files, ['src/a.ts'])], [['undici', 'src/b.ts']]);
});
