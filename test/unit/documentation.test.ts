import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePage } from '../../src/content/parse/html/page.ts';
import { convertPage, listPages, type PageScores, readTruths, scorePage } from '../support/documentation/pages.ts';
import { measures, type Structure } from '../support/documentation/structure.ts';

const truths = readTruths();
/** One page of each theme: those that no rule was written for. */
const pages = listPages().filter(({ id, aside }) => aside && id.endsWith('-guide'));
const scores = pages.map((page): PageScores => scorePage(page, convertPage(page).markdown, truthOf(page.truth)));

function truthOf(key: string): Structure {
  const truth = truths[key];
  assert.ok(truth, key);
  return truth;
}

function mean(measure: keyof Structure): number {
  const known = scores.map((one) => one[measure]).filter((one) => one !== undefined);
  return known.reduce((sum, one) => sum + one, 0) / known.length;
}

for (const measure of measures)
  test(`pages of documentation keep their ${measure} in themes that no rule was written for`, () => {
    assert.ok(mean(measure) >= (measure === 'codeWithLanguage' ? 0.95 : 0.97), `${measure} ${mean(measure)}`);
  });

test('the score of a page falls with each part that its text lacks', () => {
  const [page] = pages.filter(({ truth }) => truth === 'guide');
  assert.ok(page);
  const { markdown } = convertPage(page);
  const scoreOf = (text: string): PageScores => scorePage(page, text, truthOf('guide'));
  const whole = scoreOf(markdown);
  const damaged: [keyof Structure, RegExp, string][] = [
    ['headings', /^## (.*)$/m, '## $1 ¶'],
    ['code', /^\/\/ Copies.*$/m, ''],
    ['codeWithLanguage', /```typescript/, '```'],
    ['tables', /\| hour \|/, '| day |'],
    ['lists', /^ {4}- /m, '- '],
    ['links', /\]\(https:\/\/kiln/, '](https://other'],
    ['admonitions', /^> \[!NOTE\]/m, '> Note'],
    ['tabs', /^\*\*npm\*\*$/m, 'npm'],
    ['definitions', /^- \*\*queued\*\*$/m, '- queued'],
    ['footnotes', /\[\^1\](?!:)/, ''],
    ['formulas', /\$w = q \/ n\$/, 'w = q / n'],
  ];
  for (const [measure, from, to] of damaged) {
    assert.match(markdown, from, measure);
    const worse = scoreOf(markdown.replace(from, to))[measure] ?? 0;
    assert.ok(worse < (whole[measure] ?? 0), `${measure}: ${worse}, whole ${whole[measure]}`);
  }
});

function markdownOf(body: string): string {
  const prose = `<p>${'A sentence of ordinary text, which says what follows. '.repeat(8)}</p>`;
  const html = `<html><head><title>T</title></head><body><main><h1>T</h1>${prose}${body}${prose}</main></body></html>`;
  const bytes = Buffer.from(html);
  const { markdown } = parsePage({ bytes, contentType: 'text/html; charset=utf-8', url: 'https://docs.example/a/' });
  return markdown.replaceAll(/(?:^|\n\n)A sentence of ordinary.*(?:\n|$)/g, '').trim();
}

test('a comment and every line stay in a numbered listing, without its numbers and its button', () => {
  const table =
    '<table class="highlighttable"><tr><td class="linenos"><pre><span class="normal">1</span>\n<span class="normal">2</span></pre></td>' +
    '<td class="code"><div><pre><code><span class="hljs-comment"># counts 1 2</span>\nfor i in 1 2\n</code></pre></div></td></tr></table>';
  const box = `<div class="highlight-bash"><button>Copy</button>${table}</div>`;
  assert.equal(markdownOf(box), '```bash\n# counts 1 2\nfor i in 1 2\n```');
  const spans =
    '<pre><code class="language-js"><span class="line"><span class="ln">1</span>let a;</span><span class="line"><span class="ln">2</span>// b</span></code><button>copy</button></pre>';
  assert.equal(markdownOf(spans), '```js\nlet a;\n// b\n```');
});

test('a table of numbers stays a table', () => {
  const table = '<table><tr><td>1 2</td><td>3</td></tr><tr><td>4</td><td>5</td></tr></table>';
  assert.match(markdownOf(table), /\| 1 2 \| 3 \|\n\| --- \| --- \|\n\| 4 \| 5 \|/);
});

test('code in an item of a list belongs to the item and keeps its indentation', () => {
  const list =
    '<ol><li>Run it:<pre><code class="language-python">if a:\n    b()</code></pre><p>Then wait.</p></li><li>Stop.</li></ol>';
  assert.equal(
    markdownOf(list),
    '1. Run it:\n\n   ```python\n   if a:\n       b()\n   ```\n\n   Then wait.\n\n2. Stop.',
  );
});

test('a heading of an accordion keeps the text of its button, and loses its permalink', () => {
  const heading =
    '<h2 id="x">Steps <a class="headerlink" href="#x" title="Permalink">¶</a></h2><p>Text of the steps.</p>';
  assert.equal(markdownOf(heading), '## Steps\n\nText of the steps.');
  const accordion =
    '<h3><button aria-expanded="true">How long does it take to be delivered?</button></h3><p>Two days.</p>';
  assert.doesNotMatch(markdownOf(`${accordion}`), /¶/);
});

test('panels within a row of tabs stay where they are', () => {
  const accordion =
    '<div role="tablist"><h3 role="tab" id="t1" aria-controls="p1">First question</h3><div role="tabpanel" id="p1" aria-labelledby="t1"><p>First reply to it.</p></div></div>';
  assert.equal(markdownOf(accordion), '### First question\n\nFirst reply to it.');
});

test('code of which each line is a box is one block, without line numbers', () => {
  const lines = ['int main(void)', '{', '    return 0;', '}'].map(
    (code, at) => `<div class="line"><a id="l${at}"></a><span class="lineno">    ${at + 1}</span>${code}</div>`,
  );
  assert.equal(
    markdownOf(`<div class="fragment">${lines.slice(0, 1).join('')}
      <div class="foldopen">${lines.slice(1).join('\n')}</div></div>`),
    '```\nint main(void)\n{\n    return 0;\n}\n```',
  );
});

test('a section within an item of a list is written below its heading, and not as an item', () => {
  const section = (name: string): string =>
    `<li><section class="detail"><h3>${name}</h3><div>Reads the <i>log</i>.</div><dl><dt>Returns:</dt><dd>a page</dd></dl></section></li>`;
  const written = (name: string): string => `### ${name}\n\nReads the *log*.\n\n- **Returns:**\n    - a page`;
  assert.equal(
    markdownOf(`<ul><li><section><h2>Methods</h2><ul>${section('read')}${section('skip')}</ul></section></li></ul>`),
    `## Methods\n\n${written('read')}\n\n${written('skip')}`,
  );
});

test('a date that only its style sets apart from the heading before it is a word of its own', () => {
  assert.equal(
    markdownOf(
      '<h2 id="v12">harbour 1.2.0<small>2026-03-01</small><a class="anchor" href="#v12"></a></h2><p>Faster.</p>',
    ),
    '## harbour 1.2.0 2026-03-01\n\nFaster.',
  );
});

test('a manual keeps the types and the notes that it names more than once', () => {
  const method = (type: string, name: string): string =>
    `<div class="col-first"><code><a href="${type}.html">${type}</a></code></div>
     <div class="col-second"><code><a href="#${name}">${name}</a>()</code></div>
     <div class="col-last">Returns a copy, so that changes of the caller are not seen.</div>`;
  const html = `<html><head><title>Ship (Harbour 2.1 API)</title><meta name="generator" content="javadoc/JavadocWriter"></head>
    <body><main><h1>Class Ship</h1><p>${'A ship lies at one berth at a time. '.repeat(60)}</p><section><h2>Method Summary</h2><div class="summary-table">
    ${method('Mast', 'mast') + method('Anchor', 'bower') + method('Anchor', 'kedge')}</div></section>
    <section class="promotion-rules"><h2>Promotion rules</h2><p>${'A ship of the second class moves up after a year. '.repeat(20)}</p></section>
    <section><h2>Example</h2><pre>Ship ship = harbour.find("Sigrid", Flag.NORWAY);</pre><p>Again, with another flag:</p>
    <pre>Ship ship = harbour.find("Sigrid", Flag.NORWAY);</pre></section></main></body></html>`;
  const { markdown, pageType } = parsePage({
    bytes: Buffer.from(html),
    contentType: 'text/html; charset=utf-8',
    url: 'https://docs.example/api/Ship.html',
  });
  assert.equal(pageType, 'documentation');
  assert.deepEqual(
    ['`Mast`', '`Anchor`', 'changes of the caller', 'harbour.find', '## Promotion rules'].map(
      (text) => markdown.split(text).length - 1,
    ),
    [1, 2, 3, 2, 1],
    markdown,
  );
});

test('a table drawn with boxes is a table, by its roles or as Javadoc names its cells, unless there is text beside the cells', () => {
  const cell = (role: string, text: string): string => `<div><div role="${role}">${text}</div></div>`;
  const row = (role: string, ...texts: string[]): string =>
    `<div role="row">${texts.map((text) => cell(role, text)).join('')}</div>`;
  const rows = (role: string): string =>
    `<div role="rowgroup">${row(role, 'Kiln', 'Degrees')}</div>${row('cell', 'Old', '900')}${row('cell', 'New', '1300')}`;
  const table = '| Kiln | Degrees |\n| --- | --- |\n| Old | 900 |\n| New | 1300 |';
  assert.equal(markdownOf(`<div role="table">${rows('columnheader')}</div>`), table);
  assert.equal(markdownOf(`<div role="grid">${rows('columnheader')}</div>`), table);
  // Cards of a shop are a grid, too.
  assert.doesNotMatch(markdownOf(`<div role="grid">${rows('gridcell')}</div>`), /\|/);
  assert.match(markdownOf(`<div role="table">${rows('columnheader')}<p>Before 1990.</p></div>`), /Before 1990/);
  const merged = row('cell', 'Both', '').replace('"cell"', '"cell" aria-colspan="2"');
  assert.match(markdownOf(`<div role="table">${rows('columnheader')}${merged}</div>`), /\n\| Both \| Both \|/);

  const summary = (first: string, last: string, header = ''): string =>
    `<div class="${header}col-first"><code>${first}</code></div><div class="col-last even-row-color"><div class="block">${last}</div></div>`;
  const boxes = `${summary('Method', 'Description', 'table-header ')}${summary('fire()', 'Lights it.')}`;
  const written = '| `Method` | Description |\n| --- | --- |\n| `fire()` | Lights it. |';
  assert.equal(markdownOf(`<div class="summary-table two-column-summary">${boxes}</div>`), written);
  assert.match(markdownOf(`<div class="summary-table">${boxes}<p>Since version 2.</p></div>`), /Since version 2/);
});

test('a section that is named like the summary under a title is written once, even where its captions are left out', () => {
  const summary = `<section class="summary"><h2>Fields</h2><div class="caption">Fields of a kiln</div><p>The hottest temperature of a kiln, in degrees, is 1300.</p></section>`;
  const markdown = markdownOf(`<section class="class-description">${summary}</section>`);
  assert.equal(markdown.split('The hottest temperature').length - 1, 1, markdown);
});

test('a function, a term and a figure lose their permalinks, and a paragraph keeps its other signs', () => {
  const mark = '<a class="headerlink" href="#quad" title="Permalink to this definition">¶</a>';
  const body =
    `<dl><dt id="quad">quad(f)${mark}</dt><dd><p>Integrates.<a class="anchor" href="#p">¶</a></p></dd></dl>` +
    '<figure><figcaption>A curve<a class="headerlink" href="#fig" title="Link to this image">\uf0c1</a></figcaption></figure>' +
    '<p>See ¶ 4 and <a href="#five">§</a>.</p>';
  assert.equal(markdownOf(body), '- **quad(f)**\n    - Integrates.\n\nA curve\n\nSee ¶ 4 and §.');
});

test('headings of a wiki lose their links for editing in any language', () => {
  const edit =
    '<span class="mw-editsection"><span>[</span><a href="/e">Bearbeiten</a> | <a href="/q">Quelltext</a><span>]</span></span>';
  const body = `<h2>Leben${edit}</h2><p>Er lebte.</p><div class="mw-heading"><h3 id="w">Werk</h3>${edit}</div><p>Er schrieb.</p>`;
  assert.equal(markdownOf(body), '## Leben\n\nEr lebte.\n\n### Werk\n\nEr schrieb.');
});

test('a term leads to its place, and terms do not take the place of headings', () => {
  const terms = Array.from({ length: 1_100 }, (_, at) => `<dt id="f${at}">f<b>${at}</b>()</dt><dd>Does ${at}.</dd>`);
  const html = `<title>T</title><dl>${terms.join('')}<dt>none</dt><dd>Nothing.</dd></dl><h2 id="end">End</h2><p>It ends here.</p>`;
  const { fragments } = parsePage({ bytes: Buffer.from(html), contentType: 'text/html', url: 'https://docs.example/' });
  assert.deepEqual(fragments.slice(0, 2), [
    ['End', 'end'],
    ['f**0**()', 'f0'],
  ]);
  assert.equal(fragments.length, 1_000);
});

test('the title of a page is its heading without a permalink, and not the heading with the name of the manual', () => {
  const titleOf = (title: string, headings: string[]): string | undefined => {
    const body = headings.map((text) => `<h1>${text}</h1>`).join('');
    const bytes = Buffer.from(`<html><head><title>${title}</title></head><body>${body}<p>Text.</p></body></html>`);
    return parsePage({ bytes, contentType: 'text/html; charset=utf-8', url: 'https://docs.example/a/' }).title;
  };
  const mark = '<a class="headerlink" href="#a" title="Permalink to this heading">¶</a>';
  const manual = '<a href="/">Kiln 3.2 documentation</a>';
  assert.equal(titleOf('Firing — Kiln 3.2 documentation', [manual, `Firing${mark}`]), 'Firing');
  assert.equal(titleOf('The first firing — Kiln 3.2 documentation', [`The first firing${mark}`]), 'The first firing');
  assert.equal(titleOf('Kiln 3.2 documentation — Glazes and clays', [manual, 'Glazes and clays']), 'Glazes and clays');
  assert.equal(titleOf('glazes [The kiln wiki]', ['<a href="/start">The kiln wiki</a>']), 'glazes [The kiln wiki]');
});

test('lines of links that a page shows twice, and its own contents, are left out, what a text has twice is not', () => {
  const chapters = ['Top', '1', '2', '3'].map((name) => `[ <a href="chap-${name}.html">${name}</a> ]`).join(' ');
  const contents =
    '<h3 id="siteSub">From Kilnwiki</h3><table id="toc" class="toc"><tr><td><h2>Contents</h2><ul>' +
    ['one', 'two', 'three']
      .map((name) => `<li><a href="https://docs.example/a/#${name}">Part ${name}</a></li>`)
      .join('') +
    '</ul></td></tr></table>';
  const links = ['Clay', 'Glaze', 'Fire'].map((name) => `<a href="/${name}">${name}</a>`).join(' · ');
  const code = `<pre>${links}</pre>`;
  const wanted = `${code}<p>Between.</p>${code}<p>${links}</p><p>See <a href="/a/#two">part two</a> and <a href="/b/#two">b</a>.</p>`;
  const line = 'Clay · Glaze · Fire';
  assert.equal(
    markdownOf(`<div>Chapters: ${chapters}</div>${contents}${wanted}<div>Chapters: ${chapters}</div>`),
    `\`\`\`\n${line}\n\`\`\`\n\nBetween.\n\n\`\`\`\n${line}\n\`\`\`\n\n` +
      '[Clay](https://docs.example/Clay) · [Glaze](https://docs.example/Glaze) · [Fire](https://docs.example/Fire)\n\n' +
      'See part two and [b](https://docs.example/b/#two).',
  );
});

test('a title across a table is written once, and a cell across some of its rows or columns in each of them', () => {
  const table =
    '<table><tr><th colspan="3">Glazes</th></tr><tr><td rowspan="2">matt</td><td colspan="2">dry</td></tr><tr><td>1</td><td>2</td></tr></table>';
  assert.equal(markdownOf(table), '| Glazes |  |  |\n| --- | --- | --- |\n| matt | dry | dry |\n| matt | 1 | 2 |');
});

test('notices and code of Confluence, cells of a notebook, and code without a language keep what they are', () => {
  const notice = (kind: string, title = ''): string =>
    `<div class="confluence-information-macro confluence-information-macro-${kind}">${title}<span class="aui-icon confluence-information-macro-icon"></span><div class="confluence-information-macro-body"><p>Keep out.</p></div></div>`;
  const listing =
    '<div class="code panel"><div class="codeContent"><pre class="syntaxhighlighter-pre" data-syntaxhighlighter-params="brush: py; gutter: false">def fire(): ...</pre></div></div>';
  assert.equal(
    markdownOf(`${notice('warning')}${notice('information', '<p class="title">Heat</p>')}${listing}`),
    '> [!WARNING]\n> Keep out.\n\n> [!NOTE]\n> **Heat**\n>\n> Keep out.\n\n```py\ndef fire(): ...\n```',
  );
  const cell =
    '<div class="jp-InputArea"><div class="jp-InputPrompt jp-InputArea-prompt">In [1]:</div><div class="highlight hl-ipython3"><pre>fire()</pre></div></div>';
  assert.equal(markdownOf(cell), '```python\nfire()\n```');
});

test('a note that starts with an anchor, or stands within its sentence, is a footnote', () => {
  const anchored =
    '<p>It burns<sup><a href="#fn__1" id="fnt__1" class="fn_top">1)</a></sup>.</p><div class="footnotes"><div class="fn"><sup><a href="#fnt__1" id="fn__1" class="fn_bot">1)</a></sup> <div class="content">In winter.</div></div></div>';
  assert.equal(markdownOf(anchored), 'It burns[^1].\n\n[^1]: In winter.');
  const within =
    '<p class="ltx_p">It burns<span class="ltx_note ltx_role_footnote"><sup class="ltx_note_mark">2</sup><span class="ltx_note_outer"><span class="ltx_note_content"><sup class="ltx_note_mark">2</sup><span class="ltx_tag ltx_tag_note">2</span>In <em>summer</em>.</span></span></span>.</p>';
  assert.equal(markdownOf(within), 'It burns[^2].\n\n[^2]: In *summer*.');
});

test('an equation that a table aligns is one formula with its number', () => {
  const math = (tex: string): string =>
    `<td class="ltx_eqn_cell"><math display="inline"><semantics><mi>x</mi><annotation encoding="application/x-tex">${tex}</annotation></semantics></math></td>`;
  const table = `<table class="ltx_equation ltx_eqn_table"><tbody><tr><td></td>${math('a')}${math('=b+c')}<td></td><td rowspan="1"><span class="ltx_tag">(7)</span></td></tr></tbody></table>`;
  assert.equal(markdownOf(table), '$$\na =b+c \\tag{7}\n$$');
});

test('a function of an interface has its operation, its responses and its JSON as code', () => {
  const button = (inner: string): string => `<div><button class="sc-x"><svg></svg>${inner}</button></div>`;
  const row = (text: string): string => `<li><div class="hoverable">${text}</div></li>`;
  const json =
    '<div class="redoc-json"><code><button class="collapser"></button><span>{</span><ul>' +
    `${row('<span>"name"</span>: <span>"x"</span>,')}${row('<span>"tags"</span>: <span>[</span><ul><li>1</li></ul><span>]</span>')}</ul><span>}</span></code></div>`;
  const body =
    `<h3>Responses</h3>${button('<strong>200 </strong><div><p>Created</p></div>')}${button('<strong>404 </strong>')}` +
    `${button('<span class="http-verb">post</span><span>/users/{id}</span>')}${button('Try it')}<h3>Sample</h3>${json}`;
  const code = '```json\n{\n  "name": "x",\n  "tags": [\n    1\n  ]\n}\n```';
  const operation = '`POST /users/{id}`';
  assert.equal(
    markdownOf(body),
    `### Responses\n\n**200**\n\nCreated\n\n**404**\n\n${operation}\n\n### Sample\n\n${code}`,
  );
});

test('the kind of a term stands apart from it, and terms of one list stand at one level', () => {
  const term = (name: string): string =>
    `<dt><strong>${name}</strong><span class="classifier">int</span></dt><dd><p>Says ${name}.</p></dd>`;
  const list = `<dl><dt>Parameters</dt><dd><dl>${term('left')}${term('right')}</dl></dd></dl>`;
  assert.equal(
    markdownOf(list),
    '- **Parameters**\n    - **left** : int\n        - Says left.\n    - **right** : int\n        - Says right.',
  );
  assert.equal(markdownOf('<ul><li>One</li><li><ul><li>Two</li></ul></li></ul>'), '- One\n- Two');
});

test('asides that are notes of a reference are quotes', () => {
  const body = '<aside class="notice">Replace the <code>key</code>.</aside><aside class="success">Well done.</aside>';
  assert.equal(markdownOf(body), '> [!NOTE]\n> Replace the `key`.\n\n> [!TIP]\n> Well done.');
});

test('a page is documentation if only a generator of manuals makes it, and what a generator of blogs too makes is not', () => {
  const typeOf = (head: string, path: string): string => {
    const text =
      '<p>In 2019, the harbour was opened by Anna Berg, after ten years of quarrels about its cost.</p>'.repeat(20);
    const html = `<title>Harbours of the north</title>${head}<body><h1>Harbours of the north</h1>${text}</body>`;
    return parsePage({ bytes: Buffer.from(html), contentType: 'text/html', url: `https://site.example${path}` })
      .pageType;
  };
  const generator = (name: string): string => `<meta name="generator" content="${name}">`;
  for (const name of ['xml2rfc 3.12.0', 'Bikeshed version 1', 'ReSpec 24', 'Docutils 0.18: https://docutils.example/'])
    assert.equal(typeOf(generator(name), '/TR/2019/harbours-of-the-north/'), 'documentation', name);
  const sphinx = '<link rel="stylesheet" href="../_static/pygments.css?v=1">';
  assert.equal(typeOf(sphinx, '/2019/harbours-of-the-north.html'), 'documentation');
  assert.equal(typeOf(generator('Docusaurus v3'), '/blog/harbours-of-the-north'), 'article');
  assert.equal(typeOf('', '/2019/harbours-of-the-north.html'), 'article');
});

test('a short heading is the title even where the page calls itself by the name of its site', () => {
  const titleOf = (named: string, whole: string, heading: string): string | undefined => {
    const html = `<meta property="og:title" content="${named}"><title>${whole}</title><h1>${heading}</h1>`;
    return parsePage({ bytes: Buffer.from(html), contentType: 'text/html', url: 'https://docs.example/a' }).title;
  };
  assert.equal(titleOf('Kiln', '功能 | Kiln 文档', '功能'), '功能');
  assert.equal(titleOf('Kiln', 'Options | Kiln', 'Options'), 'Options');
  assert.equal(
    titleOf('How the old kiln was built', 'Kiln | How the old kiln was built', 'Kiln'),
    'How the old kiln was built',
  );
});
