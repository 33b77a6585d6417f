/**
 * Builds a web page with navigation, an article, a table and links: enough to run most of the reader once. The words do
 * not matter.
 */
export function samplePage(): Uint8Array {
  const menu = Array.from({ length: 20 }, (_item, at) => `<li class="item"><a href="/menu/${at}">Item ${at}</a></li>`);
  const sentence =
    'The quick brown fox, as was said in 1802, jumps over the lazy dog and <em>rests</em> by the river. ';
  const paragraphs = Array.from({ length: 12 }, (_paragraph, at) => {
    const heading = at % 4 === 3 ? `<h2 id="part-${at}">Part ${at}</h2>` : '';
    return `${heading}<p class="text">${sentence.repeat(4)}<a href="/page/${at}">Page ${at}</a></p>`;
  });
  const rows = Array.from({ length: 6 }, (_row, at) => `<tr><td>${1800 + at}</td><td>${at * 3}</td></tr>`);
  return Buffer.from(`<!doctype html><html lang="en"><head><title>A sample | The site</title>
<meta name="description" content="A sample of a page."></head><body>
<header class="site-header"><nav class="main-nav"><ul>${menu.join('')}</ul></nav></header>
<main><article class="post"><h1>A sample</h1>${paragraphs.join('\n')}
<table><tr><th>Year</th><th>Count</th></tr>${rows.join('')}</table><pre><code>let sample = 1;</code></pre>
<ul><li>One thing</li><li>Another thing</li></ul></article></main>
<aside class="sidebar">${menu.join('')}</aside><footer class="site-footer">All rights reserved</footer></body></html>`);
}
