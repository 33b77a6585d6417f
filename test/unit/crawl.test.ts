import assert from 'node:assert/strict';
import { test } from 'node:test';
import { normalizeUrl } from '../../src/crawls/page-url.ts';
import { retryAfterMs, retryDelayMs } from '../../src/crawls/retry.ts';
import { checkScope } from '../../src/crawls/scope.ts';
import { outputStem } from '../../src/extractions/names.ts';

test('spellings of the same page become one', () => {
  const same = [
    ...[
      'HTTP://Site.Test:80/a/../b?x=1#part',
      'http://site.test/b?utm_source=q&x=1&fbclid=2',
      'http://site.test./b?x=1',
    ],
    ...['http://site.test/%62?x=1&', 'http://site.test/b;jsessionid=AB12?x=1'],
  ];
  for (const url of same) assert.equal(normalizeUrl(url), 'http://site.test/b?x=1', url);
  assert.equal(normalizeUrl('../x?#', 'http://site.test/a/b/c'), 'http://site.test/a/x');
  assert.equal(normalizeUrl('http://site.test/?b=1&a=2'), 'http://site.test/?b=1&a=2');
  for (const url of ['mailto:a@b', 'javascript:1', 'http://u:p@site.test/', 'http://[', 'data:,x', '', 'http://'])
    assert.equal(normalizeUrl(url), undefined, url);
});

test('the scope is the start host, its paths and its depth', () => {
  const scope = {
    start: 'https://www.site.test/docs/',
    includePaths: [],
    excludePaths: [],
    depthMax: undefined,
    allowSubdomains: false,
  };
  assert.equal(checkScope(scope, 'http://www.site.test/x', 1), undefined);
  assert.equal(checkScope(scope, 'https://site.test/x', 1), 'other_host');
  assert.equal(checkScope(scope, 'https://www.site.test:8443/x', 1), 'other_host');
  const wide = { ...scope, allowSubdomains: true };
  for (const host of ['site.test', 'blog.site.test', 'a.www.site.test'])
    assert.equal(checkScope(wide, `https://${host}/`, 1), undefined);
  for (const host of ['evilsite.test', 'site.test.evil.example'])
    assert.equal(checkScope(wide, `https://${host}/`, 1), 'other_host');
  const narrow = { ...scope, includePaths: ['/docs/'], excludePaths: ['/*/old', '/docs/*.pdf$'], depthMax: 2 };
  assert.equal(checkScope(narrow, 'https://www.site.test/docs/a', 2), undefined);
  assert.equal(checkScope(narrow, 'https://www.site.test/docs/a', 3), 'depth');
  assert.equal(checkScope(narrow, 'https://www.site.test/blog', 1), 'path');
  assert.equal(checkScope(narrow, 'https://www.site.test/docs/old/1', 1), 'path');
  assert.equal(checkScope(narrow, 'https://www.site.test/docs/a.pdf', 1), 'path');
  assert.equal(checkScope(scope, 'https://www.site.test/a.PNG', 1), 'not_a_page');
  assert.equal(checkScope(scope, 'https://www.site.test/a.pdf', 1), undefined);
  assert.equal(checkScope(scope, 'https://www.site.test/a/b/a/b/a/b/a/b/', 1), 'trap');
});

test('pages that generators of documentation write beside the documents are left out, unless a path names them', () => {
  const scope = {
    start: 'https://site.test/',
    includePaths: [] as string[],
    excludePaths: [],
    depthMax: undefined,
    allowSubdomains: false,
  };
  const check = (path: string, includePaths: string[] = []) =>
    checkScope({ ...scope, includePaths }, `https://site.test${path}`, 1);
  for (const path of [
    ...['/en/genindex.html', '/genindex-A.html', '/genindex/', '/py-modindex.html', '/py-modindex/index.html'],
    ...['/_modules/pkg/core.html', '/en/_sources/guide.rst.txt', '/print_page/'],
    ...['/index-all.html', '/index-files/index-3.html', '/allclasses-index.html', '/allclasses.html'],
    ...['/overview-tree.html', '/org/app/package-use.html', '/org/app/class-use/Ship.html'],
    ...['/ship_8hpp_source.html', '/classapp_1_1Ship-members.html', '/dir_081f004b5e2c4589e9450219e4659d4d.html'],
    ...['/ship_8hpp_source.xhtml', '/functions_b.php'],
    ...['/functions_func_b.html', '/functions_a.html', '/globals_defs.html', '/namespacemembers.html'],
  ])
    assert.equal(check(path), 'generated', path);
  for (const path of [
    ...['/', '/index.html', '/api/globals.html', '/functions.html', '/classes.html', '/files.html', '/print.html'],
    ...['/allclasses/', '/annotated.html', '/hierarchy.html', '/modules/', '/sources/a', '/class-members.html'],
    ...['/guide/functions_and_methods.html', '/directory_8.html', '/package-summary.html', '/search.html'],
  ])
    assert.equal(check(path), undefined, path);
  assert.equal(check('/_modules/pkg/core.html', ['/_modules/']), undefined);
  assert.equal(check('/py-modindex.html', ['/guide/', '/py-modindex.html$']), undefined);
  assert.equal(check('/_modules/pkg/core.html', ['/']), 'generated');
});

test('three tries with growing pauses, and never before Retry-After', () => {
  const now = new Date('2026-01-01T00:00:00Z');
  assert.equal(
    retryDelayMs(1, undefined, now, () => 1),
    500,
  );
  assert.equal(
    retryDelayMs(2, undefined, now, () => 1),
    1_000,
  );
  assert.equal(retryDelayMs(3, undefined, now), undefined);
  assert.equal(retryDelayMs(1, '7', now), 7_000);
  assert.equal(retryDelayMs(1, '86400', now), 60_000);
  assert.equal(retryAfterMs('Thu, 01 Jan 2026 00:00:30 GMT', now), 30_000);
  assert.equal(retryAfterMs('soon', now), undefined);
});

test('outputs are named by the path of their page', () => {
  const names: Record<string, string> = {
    '/': 'index',
    '/docs/': 'docs/index',
    '/docs/a.html': 'docs/a',
    '/a.htm?x=1': 'a',
    '/a b/c&d.php': 'a-b/c-d.php',
    '/..%2f..%2fetc/passwd': '..-..-etc/passwd',
    '//x//y': 'x/y',
    '/%ff': '-ff',
    '/stra%C3%9Fe': 'straße',
  };
  for (const [path, name] of Object.entries(names)) assert.equal(outputStem(`http://site.test${path}`), name, path);
});
