import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeRobots, parseRobots } from '../../src/content/parse/web/robots.ts';
import { matchesPathPattern, robotsRules } from '../../src/crawls/robots.ts';

const rulesOf = (robots: string, agent: string) => robotsRules(parseRobots(Buffer.from(robots), agent));

function allows(robots: string, path: string, agent = 'quarry'): boolean {
  return rulesOf(robots, agent).allows(new URL(path, 'http://site.test'));
}

test('the longest matching rule decides, and allow wins a tie', () => {
  const robots = 'User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nDisallow: /t\nAllow: /t';
  assert.equal(allows(robots, '/a'), false);
  assert.equal(allows(robots, '/a/b'), true);
  assert.equal(allows(robots, '/a/b/c'), false);
  assert.equal(allows(robots, '/t'), true);
  assert.equal(allows(robots, '/x'), true);
});

test('the group that names Quarry replaces the general one, and its parts are joined', () => {
  const robots =
    'User-agent: *\nDisallow: /\n\nUser-Agent: QUARRY/2.0\nDisallow: /x\n\nuser-agent: other\nuser-agent: quarry\ndisallow: /y';
  assert.equal(allows(robots, '/'), true);
  assert.equal(allows(robots, '/x'), false);
  assert.equal(allows(robots, '/y'), false);
  assert.equal(allows(robots, '/', 'stranger'), false);
});

test('stars, end marks, escapes, comments and odd line ends are read as the standard requires', () => {
  assert.equal(allows('User-agent:*\rDisallow: /*.gif$ # pictures', '/a/b.gif'), false);
  assert.equal(allows('User-agent:*\r\nDisallow: /*.gif$', '/a/b.gif?x'), true);
  assert.equal(allows('User-agent: *\nDisallow: /ü', '/%C3%BC/x'), false);
  assert.equal(allows('User-agent: *\nDisallow: /a%7Eb', '/a~b'), false);
  assert.equal(allows('User-agent: *\nDisallow: /a%2Fb', '/a/b'), true);
  assert.equal(allows('User-agent: *\nDisallow:', '/'), true);
  assert.equal(allows('User-agent: *\nDisallow: /', '/robots.txt'), true);
  assert.equal(allows('\uFEFFUser-agent: *\nDisallow: /?q=', '/?q=1'), false);
  assert.equal(allows('<html>not found</html>', '/'), true);
  assert.equal(allows('Disallow: /', '/'), true);
});

test('a hostile pattern costs no time', () => {
  assert.equal(matchesPathPattern(`/${'*a'.repeat(5_000)}$`, `/${'a'.repeat(8_000)}b`), false);
});

test('crawl-delay and sitemaps are read', () => {
  const rules = rulesOf('Sitemap: https://x/s.xml\nUser-agent: *\nCrawl-delay: 1.5\nSitemap: /two.xml', 'quarry');
  assert.equal(rules.crawlDelayMs, 1_500);
  assert.deepEqual(rules.sitemaps, ['https://x/s.xml', '/two.xml']);
});

test('robots.txt in UTF-16 is read, with a byte order mark and without', () => {
  const text = 'User-agent: *\nDisallow: /private';
  const little = Buffer.from(text, 'utf16le');
  const big = Buffer.from(little).swap16();
  for (const bytes of [little, big]) assert.equal(decodeRobots(bytes), text);
  for (const bytes of [Buffer.from([0xff, 0xfe, ...little]), Buffer.from([0xfe, 0xff, ...big])])
    assert.equal(allows(decodeRobots(bytes), '/private'), false);
  assert.equal(decodeRobots(Buffer.from(text)), text);
  assert.equal(decodeRobots(Buffer.alloc(0)), '');
});
