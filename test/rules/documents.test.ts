import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
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

test('docs/configuration.md gives every simple default as src/config.ts has it', () => {
  const rows = [...readProjectFile('docs/configuration.md').matchAll(/^\| `([A-Z0-9_]+)` +\| (.*?) +\|/gm)];
  const documented = new Map(rows.map(([, variable, written]) => [variable, written ?? '']));
  const wrong = describeConfig(readConfig({}), {})
    .filter(({ variable, value }) => {
      const written = documented.get(variable) ?? '';
      const [, count, unit] = /^(\d+) ([KMG])iB$/.exec(written) ?? [];
      if (unit !== undefined) return String(Number(count) * 1024 ** ' KMG'.indexOf(unit)) !== value;
      const [, literal] = /^`([^`]*)`$/.exec(written) ?? [];
      if (literal === undefined || literal === 'DATABASE_URL') return written === 'unset' && value !== '';
      return (literal.startsWith('./') ? resolve(literal) : literal) !== value;
    })
    .map(({ variable, value }) => `${variable}: ${value}`);
  assert.deepEqual(wrong, []);
});

test('every link between our documents leads to a file, and to a heading where it names one', () => {
  const documents = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...markdownIn('docs')];
  const broken = documents.flatMap((document) =>
    [...readProjectFile(document).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?[^)]*\)/g)]
      .filter(([, path, anchor]) => {
        const target = path ? join(dirname(document), path) : document;
        if (!existsSync(join(projectRoot, target))) return true;
        return anchor !== undefined && !anchorsOf(readProjectFile(target)).has(anchor);
      })
      .map(([link]) => `${document}: ${link.slice(1)}`),
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

/** The anchors of a document's headings, as GitHub makes them. */
function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of markdown.replaceAll(/^```.*?^```/gms, '').matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const anchor = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-');
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count += 1) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}
