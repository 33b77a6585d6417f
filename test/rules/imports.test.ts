import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { projectRoot, readText, sourceFiles } from '../support/source.ts';

/** From the top down. A file imports its own folder and what stands below it, never beside it or above. */
const levels: string[][] = [
  ['main.ts'],
  ['cli'],
  ['server.ts'],
  ['domains.ts'],
  ['node-domains.ts'],
  ['services.ts', 'credentials-file.ts'],
  ['backup'],
  ['console'],
  [
    'agents',
    'apps',
    'audit',
    'auth',
    'automations',
    'configs',
    'extractions',
    'installations',
    'knowledge',
    'mcp',
    'orgs',
    'teams',
    'threads',
    'users',
  ],
  ['monitoring', 'usage'],
  ['crawls', 'files', 'kv'],
  ['http'],
  ['crawls'],
  ['content', 'tenancy', 'jobs'],
  ['db', 'blob'],
  ['clock.ts', 'config.ts', 'contain.ts', 'errors.ts', 'ids.ts', 'limits.ts', 'log.ts', 'private-file.ts'],
];

/** Folders of one level that may import each other after all, each with the reason. */
const allowed: Record<string, string> = {
  'auth -> users': 'signing in answers with the user, whose shape and rows belong to users',
  'extractions -> configs': 'an extraction with destination "config" writes config entries',
  'teams -> users': 'a list of members answers with the users',
};

const level = new Map(levels.flatMap((names, index) => names.map((name) => [name, index] as const)));

function partOf(path: string): string {
  return relative(join(projectRoot, 'src'), path).split('/')[0] ?? '';
}

function importsOf(file: string): string[] {
  const text = readText(file);
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+\.ts)'/g)].map((match) =>
    join(file, '..', match[1] ?? ''),
  );
}

test('every file and folder of src has its level', () => {
  const unknown = [...new Set(sourceFiles('src').map(partOf))].filter((part) => !level.has(part));
  assert.deepEqual(unknown, [], 'Give each of these its level in test/rules/imports.test.ts and docs/architecture.md.');
});

test('imports point down only', () => {
  const wrong: string[] = [];
  const used = new Set<string>();
  for (const file of sourceFiles('src')) {
    for (const target of importsOf(file)) {
      const [from, to] = [partOf(file), partOf(target)];
      if (from === to) continue;
      const pair = `${from} -> ${to}`;
      if ((level.get(from) ?? -1) < (level.get(to) ?? -1)) continue;
      if (pair in allowed) used.add(pair);
      else wrong.push(`${relative(projectRoot, file)} imports ${relative(projectRoot, target)} (${pair})`);
    }
  }
  assert.deepEqual(
    wrong,
    [],
    'Move what is shared to a level below both, or hand it in as an argument. Only where neither is simpler, add the pair with its reason to test/rules/imports.test.ts.',
  );
  assert.deepEqual(
    Object.keys(allowed).filter((pair) => !used.has(pair)),
    [],
    'These exceptions are not needed any more: remove them from test/rules/imports.test.ts.',
  );
});

test('every relative import names a file that exists', () => {
  const missing = sourceFiles('src').flatMap((file) => importsOf(file).filter((target) => !existsSync(target)));
  assert.deepEqual(missing, []);
});

test('content/ knows no tenant, no HTTP server and no SQL', () => {
  const wrong = sourceFiles('src/content').filter((file) =>
    /from 'fastify|from 'postgres'|\/(db|tenancy|http)\//.test(readText(file)),
  );
  assert.deepEqual(
    wrong.map((file) => relative(projectRoot, file)),
    [],
    'Hand in what these need as arguments: content/ must stay usable without the server.',
  );
});

test('a workflow never imports its service', () => {
  const wrong = sourceFiles('src').filter(
    (file) => file.endsWith('/workflow.ts') && /^import (?!type\b)[^;]*'\.\/service\.ts'/m.test(readText(file)),
  );
  assert.deepEqual(
    wrong,
    [],
    'A service starts workflows; what both need belongs into the store or a file of its own.',
  );
});
