import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ParsedPage, parsePage } from '../../src/content/parse/html/page.ts';
import { collect, parseHtml, textLength, textOf } from '../../src/content/parse/html/tree.ts';

const url = 'https://site.test/blog/post.html';
const prose =
  'The harbour was built in 1874, after ten years of quarrels about its place, its cost and its name. Ships of every size came, and with them traders, sailors and a good many people who were neither.';

function parse(html: string | Uint8Array, contentType = 'text/html'): ParsedPage {
  return parsePage({ bytes: typeof html === 'string' ? Buffer.from(html) : html, contentType, url });
}

function article(inner: string): string {
  return `<html><head><title>The old harbour | Site</title></head><body><nav><a href="/">Home</a></nav><article><h1>The old harbour</h1><p>${prose}</p>${inner}<p>${prose}</p></article><footer>© Site, all rights reserved</footer></body></html>`;
}

test('the main text is kept, and its surroundings are removed', () => {
  const page = parse(
    `<html lang="en-GB"><head><title>The old harbour | Site</title><meta name="description" content="On harbours."><meta property="article:published_time" content="2024-03-01T10:00:00+01:00"><link rel="canonical" href="/blog/post"></head>
    <body><div class="cookie-banner">We use cookies, accept all of them, please.</div><header><nav><ul><li><a href="/">Home</a></li></ul></nav></header>
    <main><h1>The old harbour</h1><p>${prose}</p><h2>Later</h2><p>${prose}</p><div class="share-buttons">Share on Facebook</div>
    <p>Read more: <a href="/other">Another harbour that you must see</a></p>
    <div class="related-posts"><h3>You may also like</h3><p><a href="/x">Something else entirely, with a long title</a></p></div></main>
    <aside>Subscribe to our newsletter for more.</aside><footer>Imprint and all rights reserved</footer></body></html>`,
  );
  assert.equal(page.markdown, `${prose}\n\n## Later\n\n${prose}`);
  assert.equal(page.title, 'The old harbour');
  assert.equal(page.description, 'On harbours.');
  assert.equal(page.language, 'en-GB');
  assert.equal(page.published, '2024-03-01T09:00:00.000Z');
  assert.equal(page.canonical, 'https://site.test/blog/post');
  assert.equal(
    page.links.some((link) => link.url === 'https://site.test/other'),
    true,
  );
});

test('links are absolute, each once, with nofollow kept apart', () => {
  const page = parse(
    '<base href="/docs/"><a href="a">1</a><a href="a#b">2</a><a rel="nofollow" href="n">3</a><a href="mailto:x@y">4</a><a href="javascript:x">5</a><a href="http://[">6</a><a href="//other.test/z">7</a>',
  );
  assert.deepEqual(page.links, [
    { url: 'https://site.test/docs/a', nofollow: false },
    { url: 'https://site.test/docs/a#b', nofollow: false },
    { url: 'https://site.test/docs/n', nofollow: true },
    { url: 'https://other.test/z', nofollow: false },
  ]);
});

test('tables, code, lists, quotes, emphasis, links and images become Markdown', () => {
  const cases: [string, string][] = [
    [
      '<table><tr><th>a</th><th>b</th></tr><tr><td>1|2</td><td><b>x</b></td></tr></table>',
      '| a | b |\n| --- | --- |\n| 1\\|2 | **x** |',
    ],
    [
      '<table><tr><th>a</th><th>b</th></tr><tr><td rowspan="2">1</td><td>2</td></tr><tr><td>3</td></tr></table>',
      '| a | b |\n| --- | --- |\n| 1 | 2 |\n| 1 | 3 |',
    ],
    ['<pre><code class="language-js">let a = 1;\n\n  b();</code></pre>', '```js\nlet a = 1;\n\n  b();\n```'],
    ['<pre>a ``` b</pre>', '````\na ``` b\n````'],
    ['<ol start="3"><li>one<ul><li>two</li></ul></li><li>three</li></ol>', '3. one\n    - two\n4. three'],
    ['<blockquote><p>one</p><p>two</p></blockquote>', '> one\n>\n> two'],
    ['<p>A <b> bold </b>word, <em>light</em> and <code>a`b</code>.</p>', 'A **bold** word, *light* and ``a`b``.'],
    [
      '<p>See <a href="../x y?a=(1)">this page</a> on it.</p>',
      'See [this page](https://site.test/x%20y?a=%281%29) on it.',
    ],
    ['<p><img data-src="/i.png" src="data:x" alt="A *ship*"></p>', '![A \\*ship\\*](https://site.test/i.png)'],
    ['<p>1. not a list, # nor *this* &lt;b&gt;</p>', '1\\. not a list, # nor \\*this\\* &lt;b>'],
    ['<dl><dt>Term</dt><dd>Meaning</dd></dl>', '- **Term**\n    - Meaning'],
    ['<p>one<br>two</p>', 'one  \ntwo'],
    ['<p>one<br><br>two</p>', 'one\n\ntwo'],
    ['<p>For more <a href="/a">see [1]</a> on it.</p>', 'For more [see \\[1\\]](https://site.test/a) on it.'],
    ['<p><ruby>漢字<rp>(</rp><rt>かんじ</rt><rp>)</rp></ruby>を書く</p>', '漢字を書く'],
  ];
  for (const [html, markdown] of cases) {
    const text = parse(article(html)).markdown;
    assert.equal(text, `${prose}\n\n${markdown}\n\n${prose}`, html);
  }
});

test('the charset comes from header, byte order mark, meta and content, in that order of trust', () => {
  const text = 'Größe und Übermaß';
  const latin = Buffer.from(`<p>${text}</p>`, 'latin1');
  const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(`<p>${text}</p>`, 'utf16le')]);
  const japanese = Buffer.concat([
    Buffer.from('<meta charset=shift_jis><p>'),
    Buffer.from([0x93, 0xfa, 0x96, 0x7b]),
    Buffer.from('</p>'),
  ]);
  assert.equal(parse(latin, 'text/html; charset=ISO-8859-1').markdown, text);
  assert.equal(parse(Buffer.concat([Buffer.from('<meta charset="latin1">'), latin])).markdown, text);
  assert.equal(parse(utf16, 'text/html; charset=iso-8859-1').markdown, text);
  assert.equal(parse(Buffer.from(`<p>${text}</p>`), 'text/html; charset=nonsense').markdown, text);
  assert.equal(parse(Buffer.from(`<p>${text}</p>`)).markdown, text);
  assert.equal(parse(japanese).markdown, '日本');
});

test('words of a Chinese title and text are counted, although no spaces separate them', () => {
  const page = (title: string, text: string): ParsedPage =>
    parse(`<html><head><title>${title}</title><script src="/a.js"></script></head><body><p>${text}</p></body></html>`);
  const read = page('港口的历史与建设过程 - 港口新闻网', '港口在上个世纪建成并且开放。');
  assert.deepEqual([read.title, read.needsBrowser], ['港口的历史与建设过程', false]);
  assert.equal(page('港口', '正在加载中，请稍候').needsBrowser, true);
});

test('text in UTF-8 is read as such, whatever encoding a converted page still declares', () => {
  const text = '港口在上个世纪建成，人们争论了十年。';
  const html = `<meta http-equiv="Content-Type" content="text/html; charset=gb2312"><p>${text}</p>`;
  assert.equal(parse(Buffer.from(html)).markdown, text);
  const latin = Buffer.from('<meta charset="latin1"><p>Ã©t Ã©</p>', 'latin1');
  assert.equal(parse(latin).markdown, 'Ã©t Ã©');
});

test('text beside the cells of a table, cells beside its rows and text of an unclosed head are read', () => {
  const shown = (html: string): string => parse(Buffer.from(html)).markdown;
  assert.equal(
    shown('<table><tr><td>1</td><td>2</td></tr><p>Below.</p><td>3</td><td>4</td></table>'),
    'Below.\n\n| 1 | 2 |\n| --- | --- |\n| 3 | 4 |',
  );
  assert.equal(
    shown(
      '<table><form><tr><font><td>1</td></font><td>2</td></tr></form><table><tr><td>a</td><td>b</td></tr></table>After.</table>',
    ),
    '| 1 | 2 |\n| --- | --- |\n\n| a | b |\n| --- | --- |\n\nAfter.',
  );
  assert.equal(
    shown('<html><head><title>Port</title><meta name="a"><div><p>The port is open.</p></div></html>'),
    'The port is open.',
  );
  assert.equal(
    shown('<html><head><title>Port</title><div>First.</div></head><body><p>Second.</p></body></html>'),
    'First.\n\nSecond.',
  );
});

test('robots directives of the page are read', () => {
  const page = parse('<meta name="robots" content="NOINDEX, nofollow"><p>x</p>');
  assert.deepEqual([page.noindex, page.nofollow], [true, true]);
  assert.equal(parse('<meta name="robots" content="none"><p>x</p>').noindex, true);
  assert.equal(parse('<p>x</p>').noindex, false);
});

test('hostile and broken pages end quickly and give what text they have', () => {
  assert.match(parse(`${'<div>'.repeat(3_000)}deep words here${'</div>'.repeat(3_000)}`).markdown, /deep words here/);
  parse('<b>'.repeat(300_000));
  assert.match(parse(`${'<b>'.repeat(5_000)}deeper words`).markdown, /deeper words/);
  parse('<table><tr><td>'.repeat(20_000));
  parse(`<p>${'<a href=x>'.repeat(20_000)}`);
  parse('<ul><li>'.repeat(2_000));
  parse(`<p ${'a=b '.repeat(50_000)}>x</p>`);
  parse('&'.repeat(200_000));
  parse(Buffer.from([0, 255, 254, 1, 2, 3, 60, 33, 45, 45]));
  assert.equal(parse('').markdown, '');
  assert.equal(parse('<p>cut <b>off <i>text').markdown, 'cut **off *text***');
  assert.equal(parse('plain words only').markdown, 'plain words only');
});

test('a page that is too large to be read whole says what is missing', () => {
  const missing = (inner: string) => parse(article(inner)).truncated;
  assert.equal(missing(''), undefined);
  const links = Array.from({ length: 5_001 }, (_unused, at) => `<a href="/p/${at}">page ${at}</a> `);
  assert.deepEqual(missing(links.join('')), ['links after the first 5000']);
  assert.equal(missing(links.slice(0, 4_000).join('')), undefined);
  assert.equal(parse(article(links.join(''))).links.length, 5_000);
  const wide = `<table><tr><th>Name</th>${'<td>x</td>'.repeat(500)}</tr><tr><td>a</td><td>b</td></tr></table>`;
  assert.deepEqual(missing(wide), ['columns of a table after the first 500']);
  const spans = `<table><tr><th>Name</th></tr>${'<tr><td rowspan="100" colspan="100">x</td></tr>'.repeat(120)}</table>`;
  assert.match(String(missing(spans)), /spanning cells/);
});

test('of a page with more than 200,000 elements the first are read, and the rest is said to be missing', () => {
  const page = parse(article(`<p>The first words. ${'<i>x</i>'.repeat(200_000)}</p><p>The last words.</p>`));
  assert.deepEqual(page.truncated, ['everything after the first 200000 elements']);
  assert.match(page.markdown, /The first words/);
  assert.doesNotMatch(page.markdown, /The last words/);
});

test('a table of more than 50,000 cells is whole', () => {
  const rows = Array.from({ length: 13_000 }, (_unused, at) => `<tr>${`<td>c${at}</td>`.repeat(4)}</tr>`).join('');
  const page = parse(article(`<table><tr><th>A</th><th>B</th><th>C</th><th>D</th></tr>${rows}</table>`));
  assert.equal(page.truncated, undefined);
  assert.match(page.markdown, /\| c12999 \| c12999 \| c12999 \| c12999 \|/);
});

test('the length of an element’s text is that of its text, wherever white space and tags are', () => {
  const pieces = [
    'a',
    ' ',
    '\n\t',
    ' b ',
    '\u00a0',
    '<br>',
    '<p>',
    '</p>',
    '<b>',
    '</b>',
    '<li>',
    'c  d',
    '<div> </div>',
  ];
  for (let seed = 1; seed <= 2_000; seed++) {
    const chosen = Array.from(
      { length: 12 },
      (_unused, at) => pieces[((seed * 7_919 + at * at * 104_729) % 1_000_003) % 13],
    );
    const html = chosen.join('');
    const { root } = parseHtml(html);
    const letters = html.replaceAll(/<[^>]*>|\s/g, '');
    assert.equal(textOf(root).replaceAll(' ', ''), letters, html);
    assert.doesNotMatch(textOf(root), /^\s|\s\s|[^\S ]|\s$/, html);
    for (const element of [root, ...collect(root, () => true)])
      assert.equal(textLength(element), textOf(element).length, html);
  }
});
