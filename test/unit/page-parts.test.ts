import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ParsedPage, parsePage } from '../../src/content/parse/html/page.ts';

/** Parts of a page that look like menus, filters, sliders or hidden boxes, and are text. */

const sentence = (about: string): string =>
  `The ${about} of the harbour was built in the last century, after ten years of quarrels about its place, its cost and its name.`;
const paragraphs = (about: string, count: number): string =>
  Array.from({ length: count }, (_unused, at) => `<p>${sentence(`${about} number ${at + 1}`)}</p>`).join('');

function read(html: string, url: string, type: string): string {
  const page: ParsedPage = parsePage({ bytes: Buffer.from(html), contentType: 'text/html; charset=utf-8', url });
  assert.equal(page.pageType, type);
  return page.markdown;
}

function includes(markdown: string, wanted: string[], unwanted: string[] = []): void {
  for (const text of wanted) assert.ok(markdown.includes(text), `should hold "${text}":\n${markdown}`);
  for (const text of unwanted) assert.ok(!markdown.includes(text), `should not hold "${text}":\n${markdown}`);
}

const readArticle = (inner: string): string =>
  read(
    `<html><head><title>The old harbour</title><meta property="og:type" content="article"></head><body>
      <article><h1>The old harbour</h1>${inner}</article></body></html>`,
    'https://site.test/blog/2024/the-old-harbour',
    'article',
  );

const readManual = (inner: string): string =>
  read(
    `<html><head><title>Mooring API reference</title><meta name="generator" content="Docusaurus v3"></head><body>
      <main><article><h1>Mooring API</h1>${paragraphs('endpoint', 6)}${inner}</article></main></body></html>`,
    'https://docs.port.test/docs/mooring',
    'documentation',
  );

const chrome = '<header><nav><a href="/">Home</a><a href="/cart">Cart</a></nav></header>';

const readService = (inner: string): string =>
  read(
    `<html><head><title>Harbour services</title><meta property="og:type" content="website"></head><body>${chrome}<main>
      <h1>Everything for your ship</h1>${['Pilotage', 'Towing', 'Mooring', 'Repairs']
        .map((name) => `<section><h2>${name}</h2><p>We do ${name.toLowerCase()} day and night.</p></section>`)
        .join('')}${inner}</main></body></html>`,
    'https://port.test/services/',
    'service',
  );

test('the closed panels of tabs are read, in articles and in manuals', () => {
  const tabs = `<div role="tablist"><button role="tab" aria-controls="land">By land</button></div>
    <section role="tabpanel">${paragraphs('sea', 2)}</section><section role="tabpanel" hidden>${paragraphs('land', 2)}</section>
    <div><button aria-controls="trains">More</button></div><div id="trains" style="display:none">${paragraphs('rail', 2)}</div><div hidden>${sentence('secret')}</div>`;
  for (const markdown of [readArticle(paragraphs('pier', 6) + tabs), readManual(tabs)])
    includes(markdown, ['sea number 1', 'land number 2', 'rail number 2'], ['secret of']);
});

test('a closed part of a service page is read when a button of the text opens it, but no menu, dialog or news', () => {
  const markdown = readService(`
    <div><button aria-expanded="false" aria-controls="item-1">Do you work on Sundays, too?</button><div id="item-1" hidden>${sentence('answer')}</div></div>
    <div><a data-bs-toggle="collapse" data-bs-target="#item-2">Prices</a><div id="item-2" style="display:none">${sentence('price list')}</div></div>
    <div class="cookie-policy"><button aria-controls="item-5">Cookies</button><div id="item-5" hidden>${sentence('biscuit')}</div></div>
    <div class="latest-news"><p>${sentence('launch')}</p></div>
    <div class="faq-tabs-menu"><div><h3>Is it safe to moor here?</h3><div>${sentence('question')}</div></div></div>
    <button aria-haspopup="dialog" aria-expanded="false" aria-controls="item-3">Call us</button><div id="item-3" hidden>${sentence('dialog')}</div>
    <nav><button aria-expanded="false" aria-controls="item-4">More</button></nav><div id="item-4" hidden>${sentence('menu')}</div>
    <div class="footer-menu">${sentence('imprint')}</div>`);
  includes(
    markdown,
    ['answer of the harbour', 'price list of', 'question of the harbour'],
    ['dialog of', 'menu of', 'imprint of', 'biscuit of', 'launch of'],
  );
});

test('a hidden text that follows a heading or a button is read, and what a button opens as a menu or a dialog is not', () => {
  const links = ['north', 'south', 'east'].map((name) => `<a href="/${name}">Piers and moorings in the ${name}</a>`);
  const markdown = readService(`
    <div><h3>Who may moor?</h3><div style="display:none"><p>${sentence('answer')}</p></div></div>
    <div><button>Prices</button> <div hidden><p>${sentence('price list')}</p></div></div>
    <div><button>Places</button><div style="display:none">${links.join('')}</div></div>
    <button aria-haspopup="dialog">Call us</button><div hidden><p>${sentence('dialog')}</p></div>
    <p>Text.</p><div hidden><p>${sentence('secret')}</p></div>`);
  includes(markdown, ['answer of', 'price list of'], ['Piers and', 'dialog of', 'secret of']);
});

test('the answers of an accordion, closed details and the hidden slides of a slider are read, windows that open are not', () => {
  const markdown = readService(`
    <ul class="accordion-items"><li class="accordion-item"><p role="heading">Who may moor?</p><div class="accordion-item__dropdown" role="region"><p>${sentence('dropdown')}</p></div></li></ul>
    <details><summary>Who pays?</summary><div class="content" aria-hidden="true"><p>${sentence('invoice')}</p></div></details>
    <div class="slick-track"><div class="slick-slide"><p>${sentence('first slide')}</p></div><div class="slick-slide" aria-hidden="true"><p>${sentence('second slide')}</p></div>
      <div class="slick-slide slick-slide-clone" aria-hidden="true"><p>${sentence('copied slide')}</p></div></div>
    <div class="z-50 fixed inset-0 flex"><p>${sentence('window')}</p></div>
    <div class="dropdown"><p>${sentence('menu')}</p></div>`);
  includes(
    markdown,
    ['dropdown of', 'invoice of', 'first slide of', 'second slide of'],
    ['copied slide of', 'window of', 'menu of'],
  );
});

test('a manual keeps its pointers to other pages, and chapters about cookies or comments', () => {
  const markdown = readManual(`<section id="cookies"><h2>Cookies</h2><p>${sentence('cookie')}</p></section>
    <p>See also <a href="/docs/ropes">Ropes and knots</a>.</p>
    <div class="comments" id="comments"><h2>Comments</h2><p>${sentence('opinion')}</p></div>
    <h2>See also</h2><ul><li><a href="/docs/anchors">Anchors of every kind</a></li><li><a href="/docs/bollards">Bollards and rings</a></li></ul>`);
  includes(
    markdown,
    ['cookie of the harbour', 'Ropes and knots', 'Anchors of every kind', 'Bollards and rings'],
    ['opinion of'],
  );
});

test('a slider with text about a product is kept, other products and links are not', () => {
  const slides = ['deck', 'mast', 'keel'].map((part) => `<div><h3>${part}</h3><p>${sentence(part)}</p></div>`).join('');
  const others = ['Oak', 'Pine', 'Elm']
    .map((name) => `<a href="/products/${name}">${name} anchor, ${sentence(name)}</a>`)
    .join('');
  const markdown = read(
    `<html><head><title>Sea anchor</title><meta property="og:type" content="product"></head><body>${chrome}<main><h1>Sea anchor</h1>
      <p>$49.50</p><div class="quantity"><label>Sea anchor quantity</label></div><button>Add to cart</button>${paragraphs('anchor', 4)}
      <div class="feature-slider">${slides}</div><div class="product-carousel">${others}</div>
      <div><a href="/brand">Everything else by Harbour and Co</a></div><div class="reviews-slider"><p>${sentence('opinion')}</p></div></main></body></html>`,
    'https://shop.test/products/sea-anchor',
    'product',
  );
  includes(
    markdown,
    ['deck of the harbour', 'keel of the harbour'],
    ['Oak anchor', 'Everything else', 'opinion of', 'quantity'],
  );
});

test('questions below the cards of a collection are kept where they have the name of a filter', () => {
  const cards = ['Oak', 'Pine', 'Steel', 'Iron', 'Brass', 'Copper']
    .map(
      (name, at) =>
        `<li class="product-card"><a href="/products/${name}"><img src="/${name}.jpg" alt=""><h3>${name} anchor</h3></a><span class="price">$${at + 10}.00</span></li>`,
    )
    .join('');
  const markdown = read(
    `<html><head><title>Anchors</title><meta property="og:type" content="product.group"></head><body>${chrome}<h1>Anchors</h1>
      ${paragraphs('anchor', 3)}<div class="filters"><label>Steel grade<input type="checkbox"></label></div><p>16 products</p><ul>${cards}</ul>
      <div><input type="radio" id="b"><label for="b">Brass</label><span>12</span></div><div class="comment-list"><div class="comment"><p>${sentence('remark')}</p></div></div>
      <p><a href="/guide" aria-hidden="true">${sentence('guide')}</a></p><div class="expandable-section filters"><h3>Which one is for me?</h3><p>${sentence('choice')}</p></div></body></html>`,
    'https://shop.test/collections/anchors',
    'collection',
  );
  includes(
    markdown,
    ['Oak anchor', 'choice of the harbour', 'guide of the harbour'],
    ['Steel grade', 'Brass\n', 'remark of'],
  );
});

test('paragraphs that an article has again for another width of screen are read once, a single repeated one stays', () => {
  const markdown = readArticle(
    `<div class="ssr-variant hidden-1a2b3c">${paragraphs('pier', 6)}</div><div class="ssr-variant hidden-4d5e6f">${paragraphs('pier', 6)}</div>
      <p>Rest on Monday, and walk along the quay.</p><p>${sentence('gate')}</p><p>Rest on Monday, and walk along the quay.</p><p>${sentence('lamp')}</p><p>${sentence('gate')}</p>`,
  );
  assert.equal(markdown.match(/pier number 3 of the harbour/g)?.length, 1);
  assert.equal(markdown.match(/Rest on Monday/g)?.length, 2);
  assert.equal(markdown.match(/gate of the harbour/g)?.length, 2);
});

test('names that a page builder gives to every box do not speak against the text in it', () => {
  const markdown = readArticle(`${paragraphs('pier', 4)}
    <div class="elementor-element elementor-widget elementor-widget-text-editor"><div class="elementor-widget-container">${paragraphs('crane', 2)}</div></div>
    <div class="field field--name-field-text field--label-hidden">${paragraphs('field', 2)}</div>
    <div class="elementor-widget elementor-widget-sidebar">${paragraphs('advert', 1)}</div>`);
  includes(markdown, ['crane number 2', 'field number 2'], ['advert number 1']);
});

test('answers that are closed by a class name alone are read, comments and boxes hidden in the same way are not', () => {
  const markdown = readArticle(`${paragraphs('pier', 6)}
    <div class="accordion"><button>Who pays for it?</button><div class="accordion-content hidden">${paragraphs('answer', 2)}</div></div>
    <div class="note-box hidden">${paragraphs('secret', 1)}</div>`);
  includes(markdown, ['answer number 2'], ['secret number 1']);
});

test('an article in the rows of a page builder is whole, and teasers of other pages after it are not part of it', () => {
  const row = (about: string): string =>
    `<div class="row"><div class="col"><div class="inner">${paragraphs(about, 2)}</div></div></div>`;
  const teasers = ['Lakes', 'Rivers', 'Canals', 'Straits'].map(
    (name) => `<div class="item"><h3><a href="/${name}">${name} that you have to see before they freeze over</a></h3>
      <p>${name} freeze in winter, and only a few boats reach the other side before spring.</p></div>`,
  );
  const page = (box: string): string =>
    `<html><head><title>The old harbour</title><meta property="og:type" content="article"></head><body>
      <h1>The old harbour</h1><div class="${box}">${['pier', 'quay', 'mole', 'dock', 'crane'].map(row).join('')}</div>
      <div class="more-of-us">${teasers.join('')}</div></body></html>`;
  for (const box of ['entry-content', 'wp-block-post-content', 'sqs-layout', 'et_builder'])
    includes(
      read(page(box), 'https://site.test/blog/2024/the-old-harbour', 'article'),
      ['pier number 1', 'quay number 2', 'mole number 1', 'dock number 2', 'crane number 2'],
      ['Rivers'],
    );
});

test('a short article stays without its comments, however many there are', () => {
  const comments = Array.from(
    { length: 30 },
    (_unused, at) => `<li class="comment">${paragraphs(`opinion ${at}`, 3)}</li>`,
  );
  const page = `<html><head><title>The old harbour</title><meta property="og:type" content="article"></head><body>
    <div class="post"><h1>The old harbour</h1>${paragraphs('pier', 3)}</div>
    <div id="disqus_thread"><ol class="commentlist">${comments.join('')}</ol></div></body></html>`;
  includes(
    read(page, 'https://site.test/blog/2024/the-old-harbour', 'article'),
    ['pier number 1', 'pier number 3'],
    ['opinion 3', 'opinion 29'],
  );
});

test('shortcodes of a page builder are not text, except in code', () => {
  const row = (inner: string): string =>
    `[vc_row full_width="stretch_row" css=".vc_custom_1{padding: 5px !important;}"][vc_column width="1/2"]${inner}[/vc_column][/vc_row]`;
  const inner = `<div>${row(`[vc_column_text]${sentence('pier')}[/vc_column_text]`)}</div>${paragraphs('quay', 2)}
    <p>Use <code>[vc_row]</code> for a row, as in [1] and [see below].</p>`;
  for (const markdown of [readArticle(inner), readService(`<section>${inner}</section>`)]) {
    includes(markdown, ['The pier of', 'quay number 2', '`[vc_row]`', '[1', 'see below'], ['vc_column', 'full_width']);
  }
});

const readCollection = (inner: string): string =>
  read(
    `<html><head><title>Anchors</title><meta property="og:type" content="website"></head><body class="collection">${chrome}<main>
      <h1>Anchors</h1>${inner}</main></body></html>`,
    'https://shop.test/collections/anchors',
    'collection',
  );

/** Cards with a price each, which make a page a collection. */
const cards = (count: number, write: (name: string) => string): string =>
  Array.from({ length: count }, (_unused, at) => write(`Anchor ${'ABCDEFGHIJKLMN'[at]}`)).join('');

test('entries of a list that are links of a few words are kept, buttons that repeat are not', () => {
  const markdown = readCollection(
    cards(
      9,
      (name) =>
        `<div class="row"><div class="maker"><a href="/${name.at(-1)}">${name}</a></div><div>$35.00</div><p>Holds well in sand and mud.</p><div class="more"><a href="/${name.at(-1)}">Learn more</a></div></div>`,
    ),
  );
  includes(markdown, ['Anchor A', 'Anchor E', 'Anchor I'], ['Learn more']);
});

const plainCards = cards(12, (name) => `<div class="card"><h3>${name} of steel</h3><p>$35.00</p></div>`);

test('cards that are named like boxes beside a text are kept if they are a list, a few such boxes are not', () => {
  const promo = (name: string): string =>
    `<div class="promo"><h3><a href="/${name.at(-1)}">${name} for large ships</a></h3><p>$35.00</p></div>`;
  includes(readCollection(plainCards + cards(10, promo)), ['L of steel', 'A for large ships', 'J for large ships']);
  includes(readCollection(plainCards + cards(3, promo)), ['L of steel'], ['A for large ships']);
});

test('a card is not left out because of the subjects that WordPress writes into its class', () => {
  const post = (name: string): string =>
    `<article class="post-7 product type-product hentry tag-new-partner"><h2>${name} for large ships</h2><p>$35.00</p></article>`;
  includes(readCollection(plainCards + cards(4, post)), ['L of steel', 'A for large ships', 'D for large ships']);
});

test('the part of a product page with its title is kept, whatever its name', () => {
  const markdown = read(
    `<html><head><title>Sea anchor</title><meta property="og:type" content="product"></head><body>${chrome}<main>
      <div class="gallery">${paragraphs('anchor', 6)}</div>
      <div class="sidebar"><h1>Sea anchor</h1><p>$49.50</p><p>Folds into a bag of its own.</p><button>Add to cart</button></div>
      <div class="sidebar"><p>${sentence('newsletter')}</p></div></main></body></html>`,
    'https://shop.test/products/sea-anchor',
    'product',
  );
  includes(markdown, ['anchor number 6', 'Folds into a bag'], ['newsletter of']);
});

test('a condition that several offers share stays in each, but not in copies nor in each entry of a long list', () => {
  const offer = (name: string): string =>
    `<li><h3>${name} for half the price</h3><p>Not valid together with other offers of the harbour.</p></li>`;
  const markdown = readService(`<ul>${offer('Towing')}${offer('Mooring')}${offer('Pilots')}</ul>
    <ul class="for-phones"><li><p>Not valid together with other offers of the harbour.</p></li></ul>`);
  assert.equal(markdown.split('Not valid together').length - 1, 3, markdown);
  const notice = 'Your rating could not be saved, try again later.';
  const list = Array.from({ length: 25 }, (_unused, at) => `<li><h3>Berth number ${at}</h3><p>${notice}</p></li>`);
  const entries = readService(`<ul>${list.join('')}</ul>`);
  includes(entries, ['Berth number 24']);
  assert.equal(entries.split(notice).length - 1, 1, entries);
});

test('a closed menu of a collection is left out even if it is longer than the page, closed questions with links are not', () => {
  const choices = Array.from({ length: 400 }, (_unused, at) => `<a href="/anchors?port=${at}">Port number ${at}</a>`);
  const cards = ['Oak', 'Pine', 'Steel', 'Iron', 'Brass', 'Copper'].map(
    (name) =>
      `<li class="product-card"><a href="/products/${name}"><h3>${name} anchor</h3></a><span>$12.00</span></li>`,
  );
  const markdown = read(
    `<html><head><title>Anchors</title><meta property="og:type" content="product.group"></head><body>${chrome}<h1>Anchors</h1>
      <details class="select-menu"><summary>Port: any</summary><div class="list">${choices.join('')}</div></details><ul>${cards.join('')}</ul>
      <details class="faq-menu"><summary>Who pays?</summary><p><a href="/fees">All ${sentence('fee')}</a></p></details></body></html>`,
    'https://shop.test/collections/anchors',
    'collection',
  );
  includes(markdown, ['Steel anchor', 'fee of the harbour'], ['Port number', 'Port: any']);
});
