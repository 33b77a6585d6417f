import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { consoleTypes, type OpenApi } from '../../scripts/generate-console-types.ts';
import { projectRoot, readProjectFile } from '../support/source.ts';

const sources = readdirSync(join(projectRoot, 'console/src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.(ts|tsx)$/.test(name))
  .map((name) => ({ name, text: readProjectFile(join('console/src', name)) }));

test('the console’s client has the types of openapi.json', () => {
  const made = consoleTypes(JSON.parse(readProjectFile('openapi.json')) as OpenApi);
  const kept = readProjectFile('console/src/api/generated.ts');
  assert.ok(made === kept, 'The API has changed. Write the types anew: npm run console:types');
});

test('the console’s files are kebab-case and at most 500 lines, and no type is escaped', () => {
  const wrong = sources.filter(
    ({ name, text }) =>
      name !== 'api/generated.ts' &&
      (!/^([a-z0-9-]+\/)*[a-z0-9-]+\.tsx?$/.test(name) ||
        text.split('\n').length > 501 ||
        /@ts-(ignore|expect-error|nocheck)|\bas any\b|\bas never\b/.test(text)),
  );
  assert.deepEqual(
    wrong.map(({ name }) => name),
    [],
  );
});

test('the console makes no HTML of text, and runs none', () => {
  const wrong = sources.filter(({ text }) =>
    /dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML|\beval\(|new Function|rehype-raw|srcDoc/.test(text),
  );
  assert.deepEqual(
    wrong.map(({ name }) => name),
    [],
  );
});

test('the console speaks to the public API by its typed client alone', () => {
  const mayFetch = ['api/client.ts', 'api/stream.ts', 'files/preview.tsx'];
  const wrong = sources.filter(({ name, text }) => /\bfetch\(/.test(text) && !mayFetch.includes(name));
  assert.deepEqual(
    wrong.map(({ name }) => name),
    [],
    'Use call() of console/src/api/client.ts.',
  );
});

test('the pictures of the documents are small, and each is shown somewhere', () => {
  const guide = readProjectFile('docs/console.md');
  for (const name of readdirSync(join(projectRoot, 'docs/images'))) {
    assert.ok(statSync(join(projectRoot, 'docs/images', name)).size < 150_000, `${name} has more than 150 KB`);
    assert.ok(guide.includes(`(images/${name})`), `docs/console.md does not show ${name}`);
  }
});
