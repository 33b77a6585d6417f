import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { describeConfig, readConfig } from '../../src/config/config.ts';
import { errorCodes } from '../../src/lib/errors.ts';
import { projectRoot, readProjectFile } from '../support/source.ts';

test('docs/errors.md explains every error code with its status, and no other', () => {
  const text = readProjectFile('docs/errors.md');
  const actual = Object.fromEntries(Object.entries(errorCodes).map(([code, { status }]) => [code, status]));
  assert.deepEqual(
    documentedErrors(text),
    actual,
    'Give each code of src/lib/errors.ts one row in docs/errors.md: | `code` | status | …',
  );

  assert.notDeepEqual(documentedErrors(text.replace(/^\| `not_found`.*$/m, '')), actual);
});

function documentedErrors(text: string): Record<string, number> {
  const rows = text.matchAll(/^\| `(\w+)` +\| +(\d{3}) +\|/gm);
  return Object.fromEntries([...rows].map(([, code, status]) => [code, Number(status)]));
}

const settings = describeConfig(readConfig({}), {});

test('docs/configuration.md lists every setting, and no other', () => {
  const text = readProjectFile('docs/configuration.md');
  const actual = settings.map(({ variable }) => variable).sort();
  assert.deepEqual(
    [...documentedDefaults(text).keys()].sort(),
    actual,
    'Give each setting of src/config/config.ts one row in docs/configuration.md: | `NAME` | default | …',
  );

  assert.notDeepEqual([...documentedDefaults(text.replace(/^\| `PORT`.*$/m, '')).keys()].sort(), actual);
});

test('docs/configuration.md gives every simple default as src/config/config.ts has it', () => {
  const text = readProjectFile('docs/configuration.md');
  assert.deepEqual(wrongDefaults(text), []);

  assert.deepEqual(wrongDefaults(text.replace(/^(\| `PORT` +\| )`\d+`/m, '$1`1`')), ['PORT: 8080']);
});

/** What each row says in its second column. */
function documentedDefaults(text: string): Map<string | undefined, string> {
  return new Map([...text.matchAll(/^\| `([A-Z0-9_]+)` +\| (.*?) +\|/gm)].map((row) => [row[1], row[2] ?? '']));
}

function wrongDefaults(text: string): string[] {
  const documented = documentedDefaults(text);
  return settings
    .filter(({ variable, value }) => {
      const written = documented.get(variable) ?? '';
      const [, count, unit] = /^(\d+) ([KMG])iB$/.exec(written) ?? [];
      if (unit !== undefined) return String(Number(count) * 1024 ** ' KMG'.indexOf(unit)) !== value;
      const [, literal] = /^`([^`]*)`$/.exec(written) ?? [];
      if (literal === undefined || literal === 'DATABASE_URL') return written === 'unset' && value !== '';
      return (literal.startsWith('./') ? resolve(literal) : literal) !== value;
    })
    .map(({ variable, value }) => `${variable}: ${value}`);
}

test('every link between our documents leads to a file, and to a heading where it names one', () => {
  const documents = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...markdownIn('docs'), ...markdownIn('skills')];
  assert.deepEqual(
    documents.flatMap((document) => brokenLinks(document, readProjectFile(document))),
    [],
  );

  const text = '[a](errors.md) [b](gone.md) [c](errors.md#gone) [d](#there)\n\n# There';
  assert.deepEqual(brokenLinks('docs/new.md', text), ['docs/new.md: ](gone.md)', 'docs/new.md: ](errors.md#gone)']);
});

function brokenLinks(document: string, markdown: string): string[] {
  return [...markdown.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?[^)]*\)/g)]
    .filter(([, path, anchor]) => {
      const target = path ? join(dirname(document), path) : document;
      if (path && !existsSync(join(projectRoot, target))) return true;
      return anchor !== undefined && !anchorsOf(path ? readProjectFile(target) : markdown).has(anchor);
    })
    .map(([link]) => `${document}: ${link}`);
}

test('docs/README.md lists every guide once', () => {
  const list = readProjectFile('docs/README.md');
  const guides = readdirSync(join(projectRoot, 'docs')).filter((name) => name.endsWith('.md') && name !== 'README.md');
  assert.deepEqual(
    listedGuides(list).sort(),
    guides.sort(),
    'Give the page a line in docs/README.md: - [Title](name.md): what it is for. It becomes the navigation of the site.',
  );

  assert.notDeepEqual(listedGuides(list.replace(/^- \[Search\].*$/m, '')).sort(), guides.sort());
});

function listedGuides(list: string): string[] {
  return [...list.matchAll(/^- \[[^\]]+\]\(([\w-]+\.md)\): \S/gm)].map(([, name = '']) => name);
}

test('every decision has a unique number', () => {
  const names = readdirSync(join(projectRoot, 'docs/decisions'));
  for (const name of names) assert.match(name, /^\d{4}-[a-z0-9-]+\.md$/);
  assert.deepEqual(repeatedNumbers(names), [], 'Give the newer decision the next free number.');

  assert.deepEqual(repeatedNumbers(['0001-a.md', '0002-b.md', '0001-c.md']), ['0001']);
});

function repeatedNumbers(names: string[]): string[] {
  const numbers = names.map((name) => name.slice(0, 4));
  return numbers.filter((number, index) => numbers.indexOf(number) !== index);
}

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
