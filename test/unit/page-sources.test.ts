import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ParsedPage, parsePage } from '../../src/content/parse/html/page.ts';

/* Where the text of a page may stand in addition to its visible main element, and cards of pages that are lists. */

const sentence = (about: string): string =>
  `The ${about} was made in the last century, after ten years of quarrels about its shape, its cost and its name.`;

function read(html: string, url: string): ParsedPage {
  return parsePage({ bytes: Buffer.from(html), contentType: 'text/html; charset=utf-8', url });
}

function includes(markdown: string, wanted: string[], unwanted: string[] = []): void {
  for (const text of wanted) assert.ok(markdown.includes(text), `should hold "${text}":\n${markdown}`);
  for (const text of unwanted) assert.ok(!markdown.includes(text), `should not hold "${text}":\n${markdown}`);
}

const chrome = '<header><nav><a href="/">Home</a><a href="/cart">Cart</a></nav></header>';

test('a product that is described by microdata is read with its facts', () => {
  const page = read(
    `<html><head><title>Rope</title></head><body>${chrome}<main itemscope itemtype="https://schema.org/Product">
      <h1 itemprop="name">Hemp rope</h1><div itemprop="description"><p>${sentence('rope')}</p></div>
      <div itemprop="offers" itemscope itemtype="https://schema.org/Offer"><span itemprop="price" content="5.20">5,20 €</span>
      <meta itemprop="priceCurrency" content="EUR"></div><span itemprop="sku">R-7</span><button>Add to cart</button></main></body></html>`,
    'https://shop.test/products/rope',
  );
  assert.equal(page.pageType, 'product');
  const { type, name, price, currency, sku } = page.structured;
  assert.deepEqual(
    { type, name, price, currency, sku },
    { type: 'Product', name: 'Hemp rope', price: '5.20', currency: 'EUR', sku: 'R-7' },
  );
  includes(page.markdown, ['Hemp rope', 'The rope was made', '5,20 €']);
});

test('a product that is only in the state of its application is read from there', () => {
  const product = {
    id: 7,
    title: 'Hemp rope',
    descriptionHtml: ['rope', 'strand', 'fibre', 'knot'].map((about) => `<p>${sentence(about)}</p>`).join(''),
    price: '5.20',
  };
  const page = read(
    `<html><head><title>Hemp rope</title><meta property="og:type" content="product"><meta property="og:title" content="Hemp rope">
      <meta property="product:price:amount" content="5.20"><meta property="product:price:currency" content="EUR"></head>
      <body><div id="__next"></div><script id="__NEXT_DATA__" type="application/json">${JSON.stringify({ props: { pageProps: { product } } })}</script>
      <script src="/app.js"></script></body></html>`,
    'https://shop.test/products/rope',
  );
  assert.equal(page.needsBrowser, false);
  assert.deepEqual([page.structured.price, page.structured.currency], ['5.20', 'EUR']);
  includes(page.markdown, ['The rope was made', 'The strand was made', 'The knot was made']);
});

const productPage = (data: object, shown: string): ParsedPage =>
  read(
    `<html><head><title>Shop</title><meta property="og:type" content="product">
      <script type="application/ld+json">${JSON.stringify({ '@type': 'Product', ...data })}</script></head>
      <body>${chrome}<main>${shown}<button>Add to cart</button></main></body></html>`,
    'https://shop.test/products/bench',
  );

test('JSON-LD with entities or tags is read as text, and what the page shows of it is written once', () => {
  const shown = `The bench isn't painted. ${sentence('bench')}`;
  const page = productPage(
    { name: 'Bench &amp; table', description: `&lt;p&gt;The bench isn&#39;t painted. ${sentence('bench')}&lt;/p&gt;` },
    `<h1>Bench & table</h1><div><p>${shown}</p></div>`,
  );
  assert.equal(page.structured.name, 'Bench & table');
  assert.equal(page.structured.description, shown);
  assert.equal(page.markdown.split('Bench & table').length, 2, page.markdown);
  assert.equal(page.markdown.split('painted').length, 2, page.markdown);
});

test('the title of an article in JSON-LD is read without its entities', () => {
  const data = { '@type': 'NewsArticle', headline: 'Ships &amp; harbours: what the town&#39;s plan says' };
  const page = read(
    `<html><head><script type="application/ld+json">${JSON.stringify(data)}</script></head>
      <body><article><p>${sentence('ship')}</p><p>${sentence('harbour')}</p></article></body></html>`,
    'https://news.test/ships',
  );
  assert.equal(page.title, "Ships & harbours: what the town's plan says");
});

test('the description of a product in JSON-LD is added only if the page does not show most of it', () => {
  const description = `New this year. ${sentence('bench')}`;
  const elsewhere = productPage({ name: 'Bench', description }, `<h1>Bench</h1><p>${sentence('bench')}</p>`);
  includes(elsewhere.markdown, ['The bench was made'], ['New this year']);
  const absent = productPage(
    { name: 'Bench', description },
    `<h1>Bench</h1><p>${'Oak, oiled by hand. '.repeat(8)}</p>`,
  );
  includes(absent.markdown, ['New this year', 'The bench was made']);
});

const streamed = (rows: string): string =>
  [rows.slice(0, 90), rows.slice(90)]
    .map((piece) => `<script>self.__next_f.push(${JSON.stringify([1, piece]).replaceAll('<', '\\u003c')})</script>`)
    .join('');

test('a page that is streamed to its scripts as components is read from the stream', () => {
  const markup = `<p>${sentence('rope’s end')}</p><script>alert(1)</script>`;
  const rows = [
    '1:I[123,["chunks/app.js"],"Layout"]',
    `0:${JSON.stringify({
      b: 'build-of-the-page',
      f: [
        ['route', 'notes', ['$', '$L1', null, { children: '$L2', notFound: ['$', 'h1', null, { children: '404' }] }]],
      ],
    })}`,
    `2:${JSON.stringify([
      ['$', 'nav', null, { children: ['$', 'a', null, { href: '/', children: 'Home' }] }],
      ['$', 'article', null, { className: 'post', children: ['$L3', '$L4', '$2'] }],
    ])}`,
    `3:${JSON.stringify([
      ['$', 'h1', null, { children: 'Bridges' }],
      ['$', 'p', null, { children: [sentence('bridge'), ' It cost ', ['$', 'b', null, { children: '$$400' }], '.'] }],
      ['$', 'p', null, { children: ['See ', ['$', 'a', null, { href: '/arch', children: 'the arch' }], '.'] }],
      ['$', 'ul', null, { children: ['oak', 'elm'].map((wood) => ['$', 'li', wood, { children: wood }]) }],
    ])}`,
    `4:${JSON.stringify(['$', 'div', null, { dangerouslySetInnerHTML: { __html: '$5' } }])}`,
    `5:T${Buffer.byteLength(markup).toString(16)},${markup}6:"$undefined"`,
  ].join('\n');
  const page = read(
    `<html><head><title>Bridges</title></head><body>${chrome}<div>Loading…</div><script>(self.__next_f=self.__next_f||[]).push([0])</script>${streamed(rows)}</body></html>`,
    'https://notes.test/bridges',
  );
  assert.equal(page.needsBrowser, false);
  includes(
    page.markdown,
    [
      'The bridge was made',
      'It cost **$400**',
      '[the arch](https://notes.test/arch)',
      '- oak',
      'The rope’s end was made',
    ],
    ['build-of', '404', 'alert', 'Home', 'Loading', 'undefined', 'Layout'],
  );
});

test('the visible text of a page comes before its stream', () => {
  const row = `0:${JSON.stringify(['$', 'p', null, { children: `${sentence('stream')} ${sentence('brook')}` }])}`;
  const page = read(
    `<html><head><title>Bridges</title></head><body><article><h1>Bridges</h1><p>${sentence('bridge')}</p><p>${sentence('arch')}</p></article>${streamed(row)}</body></html>`,
    'https://notes.test/bridges',
  );
  includes(page.markdown, ['The bridge was made', 'The arch was made'], ['stream']);
});

test('a text in the properties of a streamed component is read where nothing else is', () => {
  const text = ['rope', 'strand', 'fibre', 'knot'].map((about) => `<p>${sentence(about)}</p>`).join('');
  const row = `0:${JSON.stringify(['$', '$L1', null, { post: { slug: 'rope', body: text } }])}`;
  const page = read(
    `<html><head><title>Rope</title></head><body><div id="root"></div>${streamed(row)}</body></html>`,
    'https://notes.test/rope',
  );
  includes(page.markdown, ['The rope was made', 'The knot was made'], ['slug']);
});

test('state that a script assigns to a variable is read, also from a string of JSON', () => {
  const text = ['rope', 'strand', 'fibre', 'knot'].map((about) => `<p>${sentence(about)}</p>`).join('');
  const state = JSON.stringify({ post: { id: 7, note: `a "}" in ${'long '.repeat(200_000)}`, body: text } }).replaceAll(
    '<',
    '\\u003c',
  );
  for (const script of [
    `window.__INITIAL_STATE__ = ${state};(function(){var s;}());`,
    `window["__APOLLO_STATE__"]=${state}`,
    `window.__PRELOADED_STATE__ = JSON.parse(${JSON.stringify(state).replaceAll('<', '\\u003c')});`,
  ]) {
    const page = read(
      `<html><head><title>Rope</title></head><body><div id="root"></div><script>${script}</script></body></html>`,
      'https://notes.test/rope',
    );
    assert.equal(page.needsBrowser, false, script);
    includes(page.markdown, ['The rope was made', 'The knot was made']);
  }
});

for (const [name, rows] of [
  ['refers to itself', '0:["$","p",null,{"children":["$0","$L0"]}]'],
  ['is cut off', '0:["$","p",null,{"children":["$1"'],
  ['has lengths beyond its end', '0:Tffffffff,abc'],
  ['is nested too deeply', `0:${'["$","div",null,{"children":'.repeat(5_000)}"x"${'}]'.repeat(5_000)}`],
  ['has lines that are not values', '\n\n:x\nzz:1\n0:\n'],
] as const)
  test(`a stream that ${name} gives no text`, () => {
    const page = read(`<html><body><div id="root"></div>${streamed(rows)}</body></html>`, 'https://notes.test/rope');
    assert.equal(page.markdown, '');
    assert.equal(page.needsBrowser, true);
  });

test('a listing keeps every card with its text, and drops the pager and the filters', () => {
  const cards = Array.from(
    { length: 18 },
    (_unused, at) =>
      `<article class="card"><h2><a href="/news/${at}">Headline ${at} of the harbour</a></h2><p>${sentence(`story ${at}`)}</p><time>May ${at + 1}</time></article>`,
  ).join('');
  const page = read(
    `<html><head><title>News</title><meta property="og:type" content="website"></head><body>${chrome}<main><h1>News</h1>
      <div class="cards">${cards}</div><nav class="pagination"><a href="?page=2">Next page</a></nav></main><footer>Imprint</footer></body></html>`,
    'https://port.test/news/',
  );
  assert.equal(page.pageType, 'listing');
  includes(page.markdown, ['Headline 0 of', 'Headline 17 of', 'The story 9 was made'], ['Next page', 'Imprint']);
});

test('notes of documentation are kept in whatever element they stand', () => {
  const notes = {
    admonition: '<div class="admonition note"><p class="admonition-title">Note</p><p>Moor by the bow first.</p></div>',
    theme:
      '<div class="theme-admonition theme-admonition-tip alert alert--success"><p>Use two lines at night.</p></div>',
    aside: '<aside class="callout warning"><p>Never moor two ships at one bollard.</p></aside>',
    details: '<details><summary>On ice</summary><p>Keep the hull in motion.</p></details>',
    quote: '<blockquote class="is-info"><p>Tides are given in local time.</p></blockquote>',
  };
  const page = read(
    `<html><head><title>Mooring</title><meta name="generator" content="Docusaurus v3"></head><body>${chrome}<main><article><h1>Mooring</h1>
      <p>${sentence('bollard')}</p><pre><code class="language-sh">moor --bow</code></pre>${Object.values(notes).join(`<p>${sentence('quay')}</p>`)}</article></main></body></html>`,
    'https://docs.port.test/docs/mooring',
  );
  includes(page.markdown, [
    ...['```sh\nmoor --bow\n```', 'Moor by the bow first', 'Use two lines at night', 'Never moor two ships'],
    ...['Keep the hull in motion', 'Tides are given in local time'],
  ]);
});

test('readings beside Japanese characters are not part of the words of an article', () => {
  const ruby =
    '<ruby>汽船<rp>(</rp><rt>きせん</rt><rp>)</rp></ruby>は<ruby>港<rt>みなと</rt></ruby>を出て、北へ向かいました。';
  const page = read(
    `<html lang="ja"><head><title>航海</title><meta property="og:type" content="article"></head><body><nav><a href="/">家</a></nav>
      <article><h1>航海</h1>${`<p>${ruby}船長は天気を書き、風は弱く、波は低く、カモメが鳴いていました。</p>`.repeat(5)}</article></body></html>`,
    'https://port.test/blog/kokai',
  );
  includes(page.markdown, ['汽船は港を出て'], ['きせん', 'みなと']);
});

test('links to source code, buttons and lines of links to the pages around are not part of a reference', () => {
  const { markdown } = read(
    `<html><head><title>Harbour in port - Rust</title><meta name="generator" content="rustdoc"></head><body>
      <div class="header"><p>Next: <a href="mole.html" rel="next">The mole</a>, Up: <a href="index.html" rel="up">The port</a>
        [<a href="toc.html" rel="contents">Contents</a>]</p></div>
      <main><h1>Struct Harbour</h1><span class="sub">1.0.0 · <a class="srclink" href="../src/port/harbour.rs.html#5">source</a> ·
        <a href="javascript:void(0)">[−]</a></span>
      <details open><summary class="hideme"><span>Expand description</span></summary><p>${sentence('harbour')}</p></details>
      <h2>Implementations</h2><section><a href="../src/port/harbour.rs.html#9">Source</a><h4>pub fn open(&amp;self)</h4></section>
      <div class="example-wrap"><pre class="rust rust-example-rendered"><code>harbour.open();</code></pre><a class="test-arrow"
        href="https://play.site.test/?code=harbour.open()">Run</a></div>
      <p>${sentence('gate')} The <a href="https://site.test/log">source</a> of the river is far.</p>
      <p>Read <a href="mole.html" rel="next">the chapter about the mole</a> for the longer story of how it was built and what it cost.</p></main></body></html>`,
    'https://docs.port.test/docs/port/struct.Harbour.html',
  );
  includes(
    markdown,
    ['1.0.0', 'fn open', '```rust\nharbour.open();', '[source](https://site.test/log)', 'the chapter about'],
    ['[source](https://docs', '[Source]', '[−]', '·', 'Expand', 'Run', 'The port', 'Contents'],
  );
});

test('lines of code in a cell of a table stay lines', () => {
  const { markdown } = read(
    `<html><head><title>Ropes</title></head><body><nav><a href="/">Home</a></nav><main><h1>Ropes</h1><p>${sentence('rope')}</p>
      <table><tr><th>Example</th><th>Output</th></tr><tr><td><pre>for rope in ropes:\n    tie(rope)\n\ncut()</pre></td><td><pre>1</pre></td></tr></table>
      <p>${sentence('knot')}</p></main></body></html>`,
    'https://docs.port.test/docs/ropes',
  );
  includes(markdown, ['| `for rope in ropes:`<br>`    tie(rope)`<br>`cut()` | `1` |']);
});
