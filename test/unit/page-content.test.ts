import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ParsedPage, parsePage } from '../../src/content/parse/html/page.ts';

const sentence = (about: string): string =>
  `The ${about} of the harbour was built in the last century, after ten years of quarrels about its place, its cost and its name.`;
const paragraphs = (about: string, count: number): string =>
  Array.from({ length: count }, (_unused, at) => `<p>${sentence(`${about} number ${at + 1}`)}</p>`).join('');

function read(html: string, url = 'https://site.test/blog/2024/the-old-harbour-and-its-many-ships'): ParsedPage {
  return parsePage({ bytes: Buffer.from(html), contentType: 'text/html; charset=utf-8', url });
}

function article(inner: string, after = ''): string {
  return `<html><head><title>The old harbour</title><meta property="og:type" content="article"></head><body>
    <nav><a href="/">Home</a></nav><article><h1>The old harbour</h1>${inner}</article>${after}<footer>© Site</footer></body></html>`;
}

function includes(markdown: string, wanted: string[], unwanted: string[] = []): void {
  for (const text of wanted) assert.ok(markdown.includes(text), `should hold "${text}":\n${markdown}`);
  for (const text of unwanted) assert.ok(!markdown.includes(text), `should not hold "${text}":\n${markdown}`);
}

test('comments below an article are left out, even where they are longer than the article', () => {
  const comments = Array.from(
    { length: 12 },
    (_unused, at) =>
      `<li class="comment"><b>Reader ${at}</b><p>${sentence(`opinion ${at}`)} ${sentence('quay')}</p></li>`,
  ).join('');
  const { markdown } = read(
    article(paragraphs('pier', 6), `<section id="comments" class="comments-area"><ol>${comments}</ol></section>`),
  );
  includes(markdown, ['pier number 1', 'pier number 6'], ['opinion 3', 'Reader 4']);
});

test('a class name that only contains a telling word does not drop the text', () => {
  const { markdown } = read(
    article(`<div class="elementor-widget elementor-widget-text-editor">${paragraphs('widget', 3)}</div>
      <div class="field field--label-hidden field-label-hidden">${paragraphs('field', 3)}</div>
      <div class="hidden-xs visible-md">${paragraphs('column', 3)}</div><div class="hidden md:block">${paragraphs('wide', 2)}</div>`),
  );
  includes(markdown, ['widget number 1', 'field number 2', 'column number 3', 'wide number 2']);
});

test('every row of a page builder is kept, and bodies in several containers are joined', () => {
  const rows = ['mole', 'dock', 'crane', 'lamp']
    .map((about) => `<div class="et_pb_row"><div class="et_pb_text">${paragraphs(about, 2)}</div></div>`)
    .join('');
  const parts = ['first', 'second', 'third']
    .map((about) => `<section><div class="wrap"><div class="text">${paragraphs(about, 2)}</div></div></section>`)
    .join('<div class="ad-slot">Buy a boat</div>');
  includes(read(article(rows)).markdown, ['mole number 1', 'dock number 2', 'crane number 1', 'lamp number 2']);
  const split = `<html><head><title>The old harbour</title></head><body><h1>The old harbour</h1>${parts}</body></html>`;
  includes(read(split).markdown, ['first number 1', 'second number 2', 'third number 2'], ['Buy a boat']);
});

test('a line that points elsewhere is removed, and the text after it stays', () => {
  const { markdown } = read(
    article(`${paragraphs('pier', 2)}<p><strong>Read also:</strong> <a href="/x">Another harbour that you must see</a></p>
      ${paragraphs('quay', 2)}<div>Related</div>${paragraphs('mole', 2)}`),
  );
  includes(markdown, ['pier number 2', 'quay number 1', 'mole number 2'], ['Another harbour']);
});

test('a post that an article quotes stays', () => {
  const quote = `<blockquote class="twitter-tweet"><p>${sentence('lighthouse')}</p>&mdash; A. Pilot (@pilot) <a href="https://t.test/1">May 1</a></blockquote>`;
  includes(read(article(paragraphs('pier', 3) + quote + paragraphs('quay', 3))).markdown, [
    'The lighthouse of',
    'A. Pilot',
  ]);
});

test('the promotion at the end of an article is left out', () => {
  const tail = `<div class="cta-box"><h3>Subscribe to our newsletter</h3><p>Get the best harbours in your inbox every week.</p></div>
    <h3>You may also like</h3><ul><li><a href="/a">Ten harbours</a></li><li><a href="/b">Nine lakes</a></li></ul>
    <p>Follow us on Facebook</p>`;
  includes(
    read(article(paragraphs('pier', 6) + tail)).markdown,
    ['pier number 6'],
    ['in your inbox', 'Ten harbours', 'Follow us'],
  );
});

test('parts that a streaming server sends hidden are read', () => {
  const html = `<html><head><title>The old harbour</title></head><body><h1>The old harbour</h1><div id="B:0"></div>
    <div hidden id="S:0"><article>${paragraphs('pier', 6)}</article></div><script>$RC("B:0","S:0")</script></body></html>`;
  includes(read(html).markdown, ['pier number 6']);
});

const forum = 'https://forum.test/t/the-old-harbour/42';
const posts = ['Ada', 'Ben', 'Cleo']
  .map(
    (name, at) => `<article class="post" id="post_${at + 100}"><a class="username" href="/u/${name}">${name}</a>
      <time datetime="2024-05-0${at + 1}">May ${at + 1}, 2024</time><div class="post-body"><p>${sentence(`view of ${name}`)}</p></div>
      <div class="signature">Sent from my boat</div><div class="post-actions"><a href="#">Like</a><a href="#">Reply</a></div></article>`,
  )
  .join('');

test('a thread keeps every post under its author and time, without signatures and buttons', () => {
  const page = read(
    `<html><head><title>The old harbour</title></head><body><h1>The old harbour</h1><div class="posts">${posts}</div><div class="sidebar"><a href="/x">Popular topics</a></div></body></html>`,
    forum,
  );
  assert.equal(page.pageType, 'forum');
  includes(
    page.markdown,
    ['### Ada, May 1, 2024', 'view of Ada', '### Cleo, May 3, 2024', 'view of Cleo'],
    ['Sent from my boat', 'Reply', 'Popular topics'],
  );
});

test('a thread has a quoted post, the title of its replies and a repeated signature only once', () => {
  const quote = (text: string): string =>
    `<blockquote><div class="quote-title">Ada said:</div><div>${text}</div><div class="js-expandLink expand-link"><a>Click to expand...</a></div></blockquote>`;
  const bodies = [
    `<p>${sentence('view of Ada')}</p>`,
    `${quote(sentence('view of Ada'))}<p>${sentence('view of Ben')}</p>`,
    `<h3>Re: The old harbour</h3>${quote('Harbours are never as old as the people who remember them.')}<p>${sentence('view of Cleo')}</p>`,
  ].map(
    (body, at) => `<article class="post" id="post_${at + 100}"><a class="username" href="/u/${at}">Sailor ${at}</a>
      <div class="post-body">${body}<p>Sent from my very own boat</p></div></article>`,
  );
  const { markdown } = read(
    `<html><head><title>The old harbour</title></head><body><h1>The old harbour</h1>${bodies.join('')}</body></html>`,
    forum,
  );
  includes(
    markdown,
    ['view of Ben', 'Ada said:', 'Harbours are never as old', 'view of Cleo'],
    ['Click to expand', 'Re: The old harbour', 'Sent from my very own boat'],
  );
  assert.equal(markdown.split('view of Ada').length, 2);
});

test('a thread that is only in noscript or in preloaded JSON is read from there', () => {
  const head = '<head><title>The old harbour</title><meta name="generator" content="Discourse 3.4"></head>';
  const hidden = `<html>${head}<body><noscript><h1>The old harbour</h1>${posts}</noscript><script src="/app.js"></script></body></html>`;
  includes(read(hidden, forum).markdown, ['### Ben, May 2, 2024', 'view of Ben']);
  const stream = ['Ada', 'Ben'].map((name) => ({
    username: name,
    created_at: '2024-05-01T10:00:00Z',
    cooked: `<p>${sentence(`view of ${name}`)}</p>`,
  }));
  const state = JSON.stringify({ topic_42: JSON.stringify({ post_stream: { posts: stream } }) });
  const preloaded = `<html>${head}<body><div id="data-preloaded" data-preloaded="${state.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')}"></div><script src="/app.js"></script></body></html>`;
  includes(read(preloaded, forum).markdown, ['### Ada, 2024-05-01T10:00:00Z', 'view of Ada', 'view of Ben']);
});

const card = (name: string, price: number): string =>
  `<li class="product-card"><a href="/products/${name}"><img src="/${name}.jpg" alt=""><h3>${name} anchor</h3></a><span class="price">$${price}.00</span></li>`;
const shopChrome = `<header><nav><a href="/">Home</a><a href="/cart">Cart</a></nav></header>`;

test('a collection keeps every card with its price, without filters', () => {
  const cards = [
    'Alder',
    'Birch',
    'Cedar',
    'Dogwood',
    'Elm',
    'Fir',
    'Gum',
    'Hazel',
    'Ivy',
    'Juniper',
    'Kauri',
    'Larch',
    'Maple',
    'Nut',
    'Oak',
    'Pine',
  ]
    .map((name, at) => card(name, at + 10))
    .join('');
  const page = read(
    `<html><head><title>Anchors</title><meta property="og:type" content="product.group"></head><body>${shopChrome}<main><h1>Anchors</h1><p>${sentence('anchor')}</p>
      <div class="filters"><label>Steel<input type="checkbox"></label><label>Iron<input type="checkbox"></label></div><p>16 products</p><ul>${cards}</ul></main><footer>© Shop</footer></body></html>`,
    'https://shop.test/collections/anchors',
  );
  assert.equal(page.pageType, 'collection');
  includes(page.markdown, ['# Anchors', 'Alder anchor', '$10.00', 'Pine anchor', '$25.00'], ['Steel', '© Shop']);
});

test('a product is read with the facts in its metadata, even where the page shows only those', () => {
  const data = {
    '@type': 'Product',
    name: 'Sea anchor',
    description: sentence('sea anchor'),
    sku: 'A-1',
    brand: { '@type': 'Brand', name: 'Harbour & Co' },
    offers: { '@type': 'Offer', price: 49.5, priceCurrency: 'EUR', availability: 'https://schema.org/InStock' },
    aggregateRating: { ratingValue: '4.5', reviewCount: 12 },
  };
  const page = read(
    `<html><head><title>Sea anchor</title><meta property="og:type" content="product"><script type="application/ld+json">${JSON.stringify(data)}</script></head>
      <body>${shopChrome}<main><h1>Sea anchor</h1><button>Add to cart</button><h2>Specifications</h2><table><tr><th>Weight</th><td>3 kg</td></tr><tr><th>Colour</th><td>red</td></tr></table>
      <section class="related-products"><h2>You may also like</h2><ul>${card('Oak', 9)}${card('Pine', 8)}</ul></section></main></body></html>`,
    'https://shop.test/products/sea-anchor',
  );
  assert.equal(page.pageType, 'product');
  assert.deepEqual(page.structured, {
    type: 'Product',
    name: 'Sea anchor',
    description: sentence('sea anchor'),
    brand: 'Harbour & Co',
    sku: 'A-1',
    price: '49.5',
    currency: 'EUR',
    availability: 'InStock',
    rating: '4.5',
    rating_count: '12',
  });
  includes(page.markdown, ['Sea anchor', sentence('sea anchor'), '49.5', '| Weight | 3 kg |'], ['Oak anchor']);
});

test('small print, labels of cards, notices, dialogs behind buttons and footers of any size are not part of a collection', () => {
  const cards = ['Oak', 'Pine', 'Steel', 'Iron', 'Brass', 'Copper'].map((name, at) => card(name, 10 + at)).join('');
  const { markdown, pageType } = read(
    `<html><head><title>Anchors</title><meta property="og:type" content="product.group"></head><body>${shopChrome}<h1>Anchors</h1>
      <p>${paragraphs('anchor', 5)}</p><p>16 products</p><ul>${cards}<li><div>Quick view</div><div>Regular price:</div><div>Compare</div></li></ul>
      <button>How to anchor<div>${paragraphs('dialog', 3)}</div></button><div role="tooltip">${sentence('tooltip')}</div>
      <div class="bottom-disclaimer">${sentence('disclaimer')}</div><div class="seller-feedback">${sentence('feedback')}</div>
      <div class="Footer-styled__Footer-sc-d11cfc8d-0">${sentence('imprint')}</div>
      <section><h2>Our crew</h2><p>${sentence('crew')}</p><footer>${sentence('footer of a section')}</footer></section>
      <footer>${paragraphs('shop', 40)}</footer></body></html>`,
    'https://shop.test/collections/anchors',
  );
  assert.equal(pageType, 'collection');
  includes(
    markdown,
    ['anchor number 3', 'Oak anchor', 'Copper anchor', 'crew of the harbour'],
    [
      'dialog number',
      'tooltip of',
      'disclaimer of',
      'feedback of',
      'imprint of',
      'footer of a',
      'shop number',
      'Quick view',
      'Regular price',
      'Compare',
    ],
  );
});

test('of several posts on a page only the one with the title of the page is read', () => {
  const other = (at: number): string =>
    `<article class="post"><h2>Another day ${at}</h2>${paragraphs(`mast ${at}`, 5)}</article>`;
  const page = read(article(paragraphs('pier', 6), Array.from({ length: 9 }, (_unused, at) => other(at)).join('')));
  includes(page.markdown, ['pier number 1', 'pier number 6'], ['mast 3', 'Another day']);
});

test('a service page keeps all its sections', () => {
  const sections = ['Pilotage', 'Towing', 'Mooring', 'Repairs', 'Storage', 'Fuel']
    .map(
      (name) =>
        `<section class="feature-section"><h2>${name}</h2><p>We do ${name.toLowerCase()} day and night.</p><a href="/contact">Get started</a></section>`,
    )
    .join('');
  const faq =
    '<div class="faq"><h3><button aria-expanded="false">Do you work on Sundays?</button></h3><div class="faq-answer" style="display:none"><p>Yes, on every day of the year.</p></div></div>';
  const page = read(
    `<html><head><title>Harbour services</title><meta property="og:type" content="website"></head><body>${shopChrome}<main><h1>Everything for your ship</h1>${sections}${faq}</main><footer><a href="/imprint">Imprint</a></footer></body></html>`,
    'https://port.test/services/',
  );
  assert.equal(page.pageType, 'service');
  includes(
    page.markdown,
    ['## Pilotage', 'fuel day and night', 'Do you work on Sundays?', 'on every day of the year'],
    ['Imprint', 'Get started'],
  );
});

test('documentation keeps code, tables and notes, and drops the side navigation', () => {
  const side = Array.from(
    { length: 30 },
    (_unused, at) => `<li><a href="/docs/page-${at}">Page ${at} of the manual</a></li>`,
  ).join('');
  const page = read(
    `<html><head><title>Mooring API reference</title><meta name="generator" content="Docusaurus v3"></head><body><aside class="sidebar"><ul>${side}</ul></aside>
      <main><article><h1>Mooring API</h1>${paragraphs('endpoint', 3)}<pre><code class="language-js">moor(ship);</code></pre>
      <div class="admonition warning"><p>Never moor two ships at one bollard.</p></div><table><tr><th>Field</th><th>Type</th></tr><tr><td>ship</td><td>string</td></tr></table></article></main></body></html>`,
    'https://docs.port.test/docs/mooring',
  );
  assert.equal(page.pageType, 'documentation');
  includes(
    page.markdown,
    ['```js\nmoor(ship);\n```', 'Never moor two ships', '| ship | string |'],
    ['Page 7 of the manual'],
  );
});

test('a page that only its scripts can draw says so; one that carries its text as data is read', () => {
  const shell =
    '<html><head><title>App</title></head><body><div id="root"></div><noscript>You need to enable JavaScript to run this app.</noscript><script src="/app.js"></script></body></html>';
  assert.equal(read(shell).needsBrowser, true);
  const text = `<p>${sentence('pier')}</p><p>${sentence('quay')}</p><p>${sentence('mole')}</p>`;
  const state = JSON.stringify({ props: { pageProps: { story: { id: 'x1', body: text } } } });
  const carried = `<html><head><title>App</title></head><body><div id="root"></div><script id="__NEXT_DATA__" type="application/json">${state}</script><script src="/app.js"></script></body></html>`;
  const page = read(carried);
  assert.equal(page.needsBrowser, false);
  includes(page.markdown, ['The pier of', 'The quay of', 'The mole of']);
  assert.equal(read('<html><body></body></html>').needsBrowser, false, 'an empty page without scripts is only empty');
});

test('an article’s stated author and dates are returned', () => {
  const data = {
    '@graph': [
      { '@type': 'WebSite', name: 'Site' },
      {
        '@type': 'NewsArticle',
        headline: 'The old harbour',
        author: [{ name: 'A. Pilot' }],
        datePublished: '2024-03-01',
        dateModified: '2024-03-02',
      },
    ],
  };
  const page = read(
    `<html><head><title>The old harbour</title><script type="application/ld+json">${JSON.stringify(data)}</script></head><body><article><h1>The old harbour</h1>${paragraphs('pier', 4)}</article></body></html>`,
  );
  assert.equal(page.pageType, 'article');
  assert.deepEqual(page.structured, {
    type: 'NewsArticle',
    name: 'The old harbour',
    author: 'A. Pilot',
    published: '2024-03-01',
    modified: '2024-03-02',
  });
});

test('text after a stray end of the body is part of the page', () => {
  const { markdown } = read(
    `<html><head><title>The old harbour</title></head><body><nav><a href="/">Home</a></nav><p>Menu</p></body></html>
    <div class="post-body">${paragraphs('pier', 4)}</div></body></html>`,
  );
  includes(markdown, ['pier number 1', 'pier number 4']);
});

test('a hidden box with most of the text is the page, which a script reveals; a small one is not', () => {
  const hidden = '<div style="display:none"><p>Your session has expired, and you must sign in again.</p></div>';
  const page = (inner: string): string =>
    `<html><head><title>Chairs</title></head><body><header><a href="/">Home</a></header>
    <div style="display:none">${inner}</div>${hidden}</body></html>`;
  const cards = Array.from({ length: 12 }, (_unused, at) => `<div><h3>Chair ${at}</h3><p>$${at}5.00</p></div>`).join(
    '',
  );
  const collection = read(page(`<h1>Chairs</h1>${cards}`), 'https://site.test/collections/chairs');
  includes(collection.markdown, ['Chair 3', '$35.00'], ['session has expired']);
  includes(read(page(paragraphs('pier', 5))).markdown, ['pier number 4'], ['session has expired']);
});

test('an article in Chinese among links of a portal is read as an article, as one in English is', () => {
  const places = ['码头', '灯塔', '仓库', '海关', '船坞', '市场'];
  const lines = places.map(
    (place) =>
      `${place}在上个世纪建成，此前人们为它的位置、费用和名称争论了十年，报纸每天都报道双方的意见，市政府召开了三次会议，最后由居民投票决定，结果只差二十票。如今每天有三百艘船经过这里，居民仍然记得当年的争论，老人常常向孩子们讲起那段往事。`,
  );
  const links = Array.from(
    { length: 160 },
    (_unused, at) =>
      `${at % 20 === 0 ? `<h3><a href="/s${at}">第${at}栏目</a></h3><img src="/i${at}.png">` : ''}<li><a href="/n${at}">第${at}条新闻</a></li>`,
  ).join('');
  const { markdown, pageType } = read(
    `<html><head><title>港口的历史</title></head><body><div><ul>${links}</ul></div><div><h1>港口的历史</h1>
    <div>${lines.map((line) => `<p>${line}</p>`).join('')}</div></div><div><ul>${links}</ul></div></body></html>`,
    'about:blank',
  );
  assert.equal(pageType, 'article');
  includes(markdown, lines, ['条新闻']);
});

/** A page of the years before metadata, between three menus: its signals are those of a list. */
function amongMenus(main: string): ParsedPage {
  const menu = (about: string): string =>
    Array.from(
      { length: 20 },
      (_unused, at) =>
        `<tr><td><a href="/${about}/${at}.html">${about} ${at}: what the town says about its harbour</a></td></tr>`,
    ).join('');
  return read(
    `<html><head><title>Old harbour closed</title></head><body><form><input name="q"></form><form><input name="mail"></form>
      ${'<img src="/x.gif">'.repeat(12)}<table><tr><td><table>${menu('news')}</table></td><td><h1>Old harbour closed</h1>${main}
      <table>${menu('sports')}</table></td><td><table>${menu('opinion')}</table></td></tr></table></body></html>`,
    'about:blank',
  );
}

test('text among the menus of a page without address and metadata is read as an article', () => {
  const text = ['mole', 'quay', 'lamp'].map((about) => `<p>${sentence(about)} ${sentence(`${about} light`)}</p>`);
  const { markdown } = amongMenus(text.join(''));
  includes(markdown, ['The mole of', 'The lamp light of'], ['news 3', 'sports 4', 'opinion 5']);
});

test('a page whose texts are links among such menus stays a list', () => {
  const entries = ['mole', 'quay', 'lamp'].map((about) => `<p><a href="/${about}">${sentence(about)}</a></p>`);
  const { markdown, pageType } = amongMenus(entries.join(''));
  assert.equal(pageType, 'listing');
  includes(markdown, ['The mole of', 'The lamp of', 'sports 4']);
});

test('a manual keeps its name and synopsis, and code and captions between its sections', () => {
  const section = (about: string, id: string): string =>
    `<div class="refsect1" id="${id}"><h2>${about}</h2>${paragraphs(about, 8)}</div>`;
  const { markdown } = read(
    `<html><head><title>OPEN HARBOUR</title><meta name="generator" content="DocBook XSL Stylesheets"></head><body>
      <div class="navheader"><a href="/a.html">Prev</a> <a href="/b.html">Next</a></div>
      <div class="refentry"><div class="refnamediv"><h2>OPEN HARBOUR</h2><p>OPEN HARBOUR — lets ships into a harbour again</p></div>
      <div class="refsynopsisdiv"><h2>Synopsis</h2><pre>OPEN HARBOUR name [ UNTIL date ]</pre></div>
      ${section('Description', 'a')}<div><pre>OPEN HARBOUR old</pre></div><figure><figcaption>Figure 1</figcaption></figure>
      ${section('Notes', 'b')}</div><div class="navfooter"><a href="/b.html">CLOSE HARBOUR</a></div></body></html>`,
    'https://docs.site.test/docs/manual/open-harbour.html',
  );
  includes(
    markdown,
    [
      'lets ships into',
      '## Synopsis',
      'UNTIL date',
      'Description number 1',
      'HARBOUR old',
      'Figure 1',
      'Notes number 8',
    ],
    ['Prev', 'CLOSE', '## OPEN'],
  );
});

test('a manual keeps what describes a module above its functions', () => {
  const functions = Array.from(
    { length: 60 },
    (_unused, at) => `<h4>open_${at}(Harbour)</h4><p>${sentence(`gate ${at}`)}</p>`,
  );
  const { markdown } = read(
    `<html><head><title>harbours manual</title></head><body><div id="menu"><a href="/a.html">Guide</a></div><div id="content">
      <h1>harbours</h1><div class="innertube"><h3><div>Summary</div></h3><div>Of ships.</div></div>
      <div class="description"><h3><div>Description</div></h3><p>These functions open and close every harbour of the country, and count its ships.</p>
      <ul><li><p>A ship counts once.</p></li></ul></div><div class="functions"><h3><div>Exports</div></h3>${functions.join('')}</div></div></body></html>`,
    'https://docs.site.test/docs/manual/harbours.html',
  );
  includes(markdown, ['Of ships', 'every harbour of the country', 'counts once', 'open_59', 'gate 59'], ['Guide']);
});
