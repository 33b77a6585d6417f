import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { namesOf, readSources, type Source } from '../support/source.ts';

/** From the top down. A file imports its own folder and what stands below it, never beside it or above. */
const levels: string[][] = [
  ['main.ts', 'index.ts'],
  ['cli'],
  ['supervisor'],
  ['boot'],
  ['cells'],
  ['backup'],
  ['console', 'openai'],
  ['answers', 'erasures'],
  [
    'agents',
    'apps',
    'audit',
    'automations',
    'configs',
    'extractions',
    'idempotency',
    'identity',
    'installations',
    'knowledge',
    'mcp',
    'models',
    'oauth',
    'orgs',
    'sign-in',
    'teams',
    'threads',
    'uploads',
    'users',
    'webhooks',
  ],
  ['deletions', 'ledger', 'monitoring', 'usage'],
  ['events', 'files', 'groups', 'kv'],
  ['domain.ts'],
  ['http'],
  ['crawls', 'llm'],
  ['content', 'tenancy', 'jobs'],
  ['db', 'blob'],
  ['tracing'],
  ['fairness'],
  ['config', 'lib'],
];

/** Folders of one level that may import each other after all, each with the reason. */
const allowed: Record<string, string> = {
  'extractions -> configs': 'an extraction with destination "config" writes config entries',
  'identity -> users': 'an account on first sight creates a user',
  'sign-in -> users': 'signing in answers with the user, whose shape and rows belong to users',
  'teams -> users': 'a list of members answers with the users',
};

const level = new Map(levels.flatMap((names, index) => names.map((name) => [name, index] as const)));
const sources = readSources('src');

type Import = { file: string; target: string };

/** The file or folder of src that a path belongs to. */
function partOf(path: string): string {
  return path.split('/')[1] ?? '';
}

function importsOf({ name, text }: Source): Import[] {
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+\.ts)'/g)].map((match) => ({
    file: name,
    target: join(name, '..', match[1] ?? ''),
  }));
}

const isUnknown = (part: string) => !level.has(part);

test('every file and folder of src has its level', () => {
  const unknown = [...new Set(namesOf(sources).map(partOf))].filter(isUnknown);
  assert.deepEqual(unknown, [], 'Give each of these its level in test/rules/imports.test.ts and docs/architecture.md.');

  assert.ok(isUnknown(partOf('src/novelties/service.ts')));
});

/** `from -> to` when the import points up, or sideways to another folder. */
function wrongDirection({ file, target }: Import): string | undefined {
  const [from, to] = [partOf(file), partOf(target)];
  return from !== to && (level.get(from) ?? -1) >= (level.get(to) ?? -1) ? `${from} -> ${to}` : undefined;
}

test('imports point down only', () => {
  const wrong = sources.flatMap(importsOf).flatMap((each) => {
    const pair = wrongDirection(each);
    return pair === undefined ? [] : [{ ...each, pair }];
  });
  assert.deepEqual(
    wrong.filter(({ pair }) => !(pair in allowed)),
    [],
    'Move what is shared to a level below both, or pass it in as an argument. Only where neither is simpler, add the pair with its reason to test/rules/imports.test.ts.',
  );
  const used = new Set(wrong.map(({ pair }) => pair));
  assert.deepEqual(
    Object.keys(allowed).filter((pair) => !used.has(pair)),
    [],
    'These exceptions are no longer needed: remove them from test/rules/imports.test.ts.',
  );

  const pairOf = (name: string, text: string) => importsOf({ name, text }).map(wrongDirection);
  assert.deepEqual(pairOf('src/db/database.ts', "import { a } from '../http/route.ts';"), ['db -> http']);
  assert.deepEqual(pairOf('src/kv/service.ts', "await import('../files/service.ts')"), ['kv -> files']);
  assert.deepEqual(pairOf('src/kv/service.ts', "import type { A } from '../db/database.ts';"), [undefined]);
});

const knowsTheServer = ({ text }: Source) =>
  /from '(?:fastify|pg|postgres)[/']|from '(?:\.\.\/)+(?:db|tenancy|http)\//.test(text);

test('content/ knows no tenant, no HTTP server and no SQL', () => {
  const wrong = sources.filter(({ name }) => name.startsWith('src/content/')).filter(knowsTheServer);
  assert.deepEqual(
    namesOf(wrong),
    [],
    'Pass in what these need as arguments: content/ must stay usable without the server.',
  );

  assert.ok(knowsTheServer({ name: 'src/content/a.ts', text: "import { sql } from '../db/database.ts';" }));
  assert.ok(knowsTheServer({ name: 'src/content/a.ts', text: "import Fastify from 'fastify';" }));
});

const importsItsService = ({ name, text }: Source) =>
  name.endsWith('/workflow.ts') && /^import (?!type\b)[^;]*'\.\/service\.ts'/m.test(text);

test('a workflow never imports its service', () => {
  assert.deepEqual(
    namesOf(sources.filter(importsItsService)),
    [],
    'A service starts workflows. What both need belongs in the store or in a file of its own.',
  );

  const text = "import { create } from './service.ts';";
  assert.ok(importsItsService({ name: 'src/kv/workflow.ts', text }));
  assert.ok(!importsItsService({ name: 'src/kv/routes.ts', text }));
});
