import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePage } from '../../src/content/parse/html/page.ts';

const sentence = (about: string): string =>
  `The ${about} of the harbour was built in the last century, after ten years of quarrels about its place, its cost and its name.`;

const heads: [string, string, string][] = [
  ['article', 'blog/2024/01/the-old-harbour-of-the-town', '<meta property="og:type" content="article">'],
  ['documentation', 'docs/api/reference/harbour/', '<meta name="generator" content="Docusaurus 3">'],
  ['service', 'services/', '<script type="application/ld+json">{"@type": "Service", "name": "Port"}</script>'],
];

/** The same text as an article, as documentation and as a page of a service. */
function readAsEach(inner: string): string[] {
  return heads.map(([type, path, head]) => {
    const body = `<main><article><h1>The old harbour</h1><p>${sentence('pier')}</p>${inner}<p>${sentence('quay')}</p></article></main>`;
    const html = `<html><head><title>The old harbour${type === 'documentation' ? ' API documentation' : ''}</title>${head}</head><body>${body}</body></html>`;
    const page = parsePage({
      bytes: Buffer.from(html),
      contentType: 'text/html; charset=utf-8',
      url: `https://${type === 'documentation' ? 'docs' : 'www'}.site.test/${path}`,
    });
    assert.equal(page.pageType, type);
    return page.markdown;
  });
}

test('a heading stays whatever its id and class are, and its small tools go', () => {
  const ids = ['what-is-social-shopping', 'comments', 'related-work', 'cookies', 'advertising', 'navigation', 'tags'];
  const headings = ids.map(
    (id) => `<h2 id="${id}" class="anchorWithStickyNavbar_LWe7 footer">Chapter ${id}
      <span class="mw-editsection noprint">[edit]</span></h2><p>${sentence(id)}</p>
      <h3><span id="${id}-share" class="mw-headline">Part ${id}</span></h3><p>${sentence(`${id} part`)}</p>`,
  );
  for (const markdown of readAsEach(headings.join('')))
    for (const id of ids) {
      assert.ok(markdown.includes(`## Chapter ${id}\n`), `${id}: ${markdown}`);
      assert.ok(markdown.includes(`### Part ${id}\n`), `${id}: ${markdown}`);
    }
});

test('comments in highlighted code stay, and buttons and line numbers do not', () => {
  const code = `<pre><button class="copy">Copy</button><code class="language-js hljs"><span class="hljs-comment">// Opens the gate.</span>
<span class="line-number" aria-hidden="true">2</span><span class="token comment">/* Then waits. */</span>
<span class="ln">3</span><span style="user-select: none">$ </span><span class="hljs-title hidden sidebar">open</span>(<span class="token tag widget">gate</span>)
</code></pre>`;
  for (const markdown of readAsEach(code))
    assert.match(markdown, /```js\n\/\/ Opens the gate\.\n\/\* Then waits\. \*\/\nopen\(gate\)\n```/);
});

test('numbers that are part of a listing stay', () => {
  const listing = `<pre><code><span class="ln">1</span><span class="token number">10</span> PRINT "ahoy"
<span class="ln">2</span><span class="token number">20</span> GOTO 10</code></pre><p>Use <code class="sidebar menu">quay.comment</code> here.</p>`;
  for (const markdown of readAsEach(listing)) {
    assert.match(markdown, /```\n10 PRINT "ahoy"\n20 GOTO 10\n```/);
    assert.ok(markdown.includes('`quay.comment`'), markdown);
  }
});
