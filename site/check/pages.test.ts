import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { test } from 'node:test';
import { findTabs } from '../code-tabs.ts';
import { base, docs, listRecords, readContents, repository, resolveLink } from '../contents.ts';

/* The files of the built site. `npm run site:check` builds it first. */

const dist = join(import.meta.dirname, '../dist');
const names = readdirSync(dist, { recursive: true, encoding: 'utf8' });
const pages = names.filter((name) => name.endsWith('.html') && name !== '404.html');
const read = (name: string) => readFileSync(join(dist, name), 'utf8');
const guides = readContents().flatMap(({ pages }) => pages);

test('every link and file of every page exists, with the heading that it names', () => {
  const anchors = new Map(
    pages.map((name) => [name, new Set([...read(name).matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id))]),
  );
  const wrong = pages.flatMap((page) =>
    [...read(page).matchAll(/\s(?:href|src)="([^"]+)"/g)]
      .map(([, link = '']) => new URL(link.replaceAll('&amp;', '&'), `http://site${base}${page}`))
      .filter(({ host }) => host === 'site')
      .filter(({ pathname, hash }) => {
        const name = fileOf(pathname);
        if (name === undefined) return true;
        return hash !== '' && name !== 'api.html' && !anchors.get(name)?.has(decodeURIComponent(hash.slice(1)));
      })
      .map(({ pathname, hash }) => `${page}: ${pathname}${hash}`),
  );
  assert.deepEqual([...new Set(wrong)], []);
});

/** The file that the server sends for a path. */
function fileOf(pathname: string): string | undefined {
  if (!pathname.startsWith(base)) return undefined;
  const path = pathname.slice(base.length);
  return [path, `${path}.html`, `${path}index.html`].find(
    (name) => /\.\w+$/.test(name) && existsSync(join(dist, name)),
  );
}

test('every page of docs/ is on the site, as a page and as Markdown, and the home page leads to it', () => {
  const sources = readdirSync(docs, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));
  const reached = new Set<string>();
  const follow = (name: string) => {
    if (reached.has(name)) return;
    reached.add(name);
    for (const [, link = ''] of read(name).matchAll(/\shref="([^"#]+)/g)) {
      const { host, pathname } = new URL(link, `http://site${base}${name}`);
      const next = host === 'site' ? fileOf(pathname) : undefined;
      if (next?.endsWith('.html')) follow(next);
    }
  };
  follow('index.html');
  for (const source of sources.map((name) => name.replace('README.md', 'index.md'))) {
    assert.ok(names.includes(source), source);
    assert.ok(reached.has(source.replace(/\.md$/, '.html')), `no link leads to ${source}`);
  }
});

test('llms.txt and llms-full.txt have every guide, and their links exist', () => {
  const list = read('llms.txt');
  assert.match(list, /^# Quarry\n\n> /);
  const links = [...list.matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link);
  for (const { file } of guides) assert.ok(links.includes(base + file), file);
  for (const link of links) assert.ok(existsSync(join(dist, link.slice(base.length))), link);
  const everything = read('llms-full.txt');
  for (const { file } of guides.filter(({ file }) => !file.includes('/'))) {
    const [heading = ''] = readFileSync(join(docs, file), 'utf8').split('\n');
    assert.ok(everything.includes(`<!-- ${base}${file} -->\n\n${heading}\n`), file);
  }
});

test('a link out of docs/ leads to the repository, and one to a page stays', () => {
  assert.equal(resolveLink('self-hosting.md', '../deploy/nginx.conf'), `${repository}/blob/main/deploy/nginx.conf`);
  assert.equal(resolveLink('self-hosting.md', '../deploy/helm/quarry'), `${repository}/tree/main/deploy/helm/quarry`);
  assert.equal(resolveLink('decisions/0001-a.md', '../../CHANGELOG.md#a'), `${repository}/blob/main/CHANGELOG.md#a`);
  assert.equal(resolveLink('files.md', 'limits.md#x'), 'limits.md#x');
  assert.equal(resolveLink('README.md', 'decisions'), 'decisions/index.md');
  for (const name of pages) assert.doesNotMatch(read(name), /href="(?:\.\.\/)+(?:src|test|deploy)/, name);
  assert.match(listRecords('decisions'), /^# Decisions\n\n- \[.+\]\(0001-/);
});

test('expressions in braces are shown as they are written', () => {
  const page = read('automations.html')
    .replaceAll(/<[^>]+>/g, '')
    .replaceAll('&#123;', '{')
    .replaceAll('&quot;', '"');
  for (const text of ['"Hello {{$.name}}"', '{{…}} holds']) assert.ok(page.includes(text), text);
});

test('blocks in different languages become tabs with their outputs, and nothing else does', () => {
  const fence = (info: string, content = '') => ({ type: 'fence', info, content });
  const labels = (...tokens: ReturnType<typeof fence>[]) => findTabs(tokens, 0).tabs.map(({ label }) => label);
  const curl = fence('sh', 'curl -s $BASE/api/v1/files\n');
  const output = fence('text', 'ok\n');
  assert.deepEqual(labels(curl, output, fence('ts'), output, fence('python'), output), [
    'curl',
    'TypeScript',
    'Python',
  ]);
  assert.deepEqual(labels(curl, fence('sh', 'quarry files list\n')), ['curl', 'CLI']);
  for (const tokens of [
    [curl, output],
    [curl, curl],
    [fence('json'), curl],
    [output, fence('ts')],
  ])
    assert.deepEqual(labels(...tokens), []);
  const page = read('key-value.html');
  assert.match(page, /<label [^>]*>curl<\/label><input [^>]*><label [^>]*>TypeScript<\/label>/);
  assert.match(page, /class="copy"/);
  const edit = `${repository}/edit/main/docs/key-value.md`;
  assert.ok(page.includes(edit), edit);
});

test('a search does not find decisions', () => {
  const [index = ''] = names.filter((name) => /localSearchIndex.*\.js$/.test(posix.basename(name)));
  const text = read(index);
  assert.ok(text.includes(`${base}knowledge`));
  assert.doesNotMatch(text, /\/(?:decisions|experiments)\/[\w-]+#/);
});
