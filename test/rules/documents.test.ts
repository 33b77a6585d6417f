import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { describeConfig, readConfig } from '../../src/config.ts';
import { errorCodes } from '../../src/errors.ts';
import { projectRoot, readProjectFile } from '../support/source.ts';

test('docs/errors.md explains every error code with its status, and no other', () => {
  const rows = [...readProjectFile('docs/errors.md').matchAll(/^\| `(\w+)` +\| +(\d{3}) +\|/gm)];
  const documented = Object.fromEntries(rows.map(([, code, status]) => [code, Number(status)]));
  const actual = Object.fromEntries(Object.entries(errorCodes).map(([code, { status }]) => [code, status]));
  assert.deepEqual(
    documented,
    actual,
    'Give each code of src/errors.ts one row in docs/errors.md: | `code` | status | …',
  );
});

test('docs/configuration.md lists every setting, and no other', () => {
  const documented = [...readProjectFile('docs/configuration.md').matchAll(/^\| `([A-Z0-9_]+)` +\|/gm)].map(
    (row) => row[1],
  );
  const actual = describeConfig(readConfig({}), {}).map((setting) => setting.variable);
  assert.deepEqual(
    documented.sort(),
    actual.sort(),
    'Give each setting of src/config.ts one row in docs/configuration.md: | `NAME` | default | …',
  );
});

test('every link between our documents leads somewhere', () => {
  const documents = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...markdownIn('docs')];
  const broken = documents.flatMap((document) =>
    [...readProjectFile(document).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)[^)]*\)/g)]
      .map((match) => match[1] ?? '')
      .filter((link) => !existsSync(join(projectRoot, dirname(document), link)))
      .map((link) => `${document}: ${link}`),
  );
  assert.deepEqual(broken, []);
});

test('every decision has a number of its own', () => {
  const names = readdirSync(join(projectRoot, 'docs/decisions')).sort();
  for (const name of names) assert.match(name, /^\d{4}-[a-z0-9-]+\.md$/);
  const numbers = names.map((name) => name.slice(0, 4));
  const twice = numbers.filter((number, index) => numbers.indexOf(number) !== index);
  assert.deepEqual(twice, [], 'Give the newer decision the next free number.');
});

function markdownIn(directory: string): string[] {
  return readdirSync(join(projectRoot, directory), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(directory, name));
}
