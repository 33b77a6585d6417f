import type { Theme } from '../generators/generator.ts';
import type { Block, Document } from '../model.ts';
import { escapeHtml, highlight, type Layout, shortHash, writeHtml } from './html.ts';

/*
 * Layouts of sites whose generator is not available as a package. They follow the structure of the public pages; the
 * text and the markup are ours.
 */

const titled = ({ kind, title }: Extract<Block, { type: 'admonition' }>): string =>
  title ?? `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;

const page = (document: Document, site: string, head: string, body: string): string =>
  `<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>${document.title}${site}</title>\n${head}\n<script src="/assets/site.js" defer></script>\n</head>\n${body}\n</html>\n`;

const sidebar = `<ul><li><a href="/guide">Running scheduled tasks</a></li><li><a href="/reference">Reference of the client library</a></li><li><a href="/internals">How claims work</a></li><li><a href="/operate">Operating the scheduler</a></li></ul>`;

const githubSources: Record<string, string> = {
  ...{ bash: 'source-shell', typescript: 'source-ts', javascript: 'source-js', html: 'text-html-basic' },
};

const github: Layout = {
  heading: (level, inner, id) =>
    `<div class="markdown-heading" dir="auto"><h${level} tabindex="-1" class="heading-element" dir="auto">${inner}</h${level}><a id="user-content-${id}" class="anchor" aria-label="Permalink: ${id}" href="#${id}"><svg class="octicon octicon-link" viewBox="0 0 16 16" aria-hidden="true"></svg></a></div>`,
  code: ({ language, text }) =>
    `<div class="highlight highlight-${githubSources[language] ?? `source-${language}`} notranslate position-relative overflow-auto" dir="auto"><pre>${highlight(text, { comment: 'pl-c', string: 'pl-s', keyword: 'pl-k' })}</pre><div class="zeroclipboard-container"><clipboard-copy aria-label="Copy" class="ClipboardButton btn btn-invisible js-clipboard-copy m-2 p-0" tabindex="0" role="button"><svg class="octicon octicon-copy"></svg></clipboard-copy></div></div>`,
  table: (inner) =>
    `<markdown-accessiblity-table><table tabindex="0">\n${inner}\n</table></markdown-accessiblity-table>`,
  admonition: (block, inner) =>
    `<div class="markdown-alert markdown-alert-${block.kind}" dir="auto"><p class="markdown-alert-title" dir="auto"><svg class="octicon octicon-info"></svg>${titled(block)}</p>${inner}\n</div>`,
  inlineFormula: (tex) =>
    `<math-renderer class="js-inline-math" style="display: inline-block">$${tex}$</math-renderer>`,
  formula: (tex) =>
    `<p dir="auto"><math-renderer class="js-display-math" style="display: block">$$\n${escapeHtml(tex)}\n$$</math-renderer></p>`,
  note: (id) =>
    `<sup><a href="#user-content-fn-${id}-${shortHash(id)}" id="user-content-fnref-${id}-${shortHash(id)}" data-footnote-ref="" aria-describedby="footnote-label">${id}</a></sup>`,
  notes: (items) =>
    `<section data-footnotes="" class="footnotes"><h2 id="footnote-label" class="sr-only" dir="auto">Footnotes</h2>\n<ol dir="auto">\n${items
      .map(
        ({ id, inner }) =>
          `<li id="user-content-fn-${id}-${shortHash(id)}">\n<p dir="auto">${inner} <a href="#user-content-fnref-${id}-${shortHash(id)}" data-footnote-backref="" aria-label="Back to reference ${id}" class="data-footnote-backref"><g-emoji class="g-emoji" alias="leftwards_arrow_with_hook">↩</g-emoji></a></p>\n</li>`,
      )
      .join('\n')}\n</ol>\n</section>`,
};

const githubPage = (document: Document): string =>
  page(
    document,
    ' · kiln/kiln · GitHub',
    '<meta property="og:site_name" content="GitHub"><meta property="og:type" content="object">',
    `<body class="logged-out env-production page-responsive"><div class="position-relative header-wrapper js-header-wrapper"><a href="#start-of-content" class="px-2 py-4 show-on-focus js-skip-to-content">Skip to content</a><header class="HeaderMktg" role="banner"><nav aria-label="Global"><ul><li><a href="/features">Features</a></li><li><a href="/pricing">Pricing</a></li></ul></nav></header></div>
<div class="application-main" data-commit-hovercards-enabled><main id="js-repo-pjax-container"><div id="repository-container-header"><nav class="js-repo-nav UnderlineNav" aria-label="Repository"><ul><li><a href="/kiln/kiln">Code</a></li><li><a href="/kiln/kiln/issues">Issues</a></li></ul></nav></div>
<div class="Layout-main"><div class="Box-sc-62in7e-0"><table aria-labelledby="folders-and-files"><thead><tr><th>Name</th><th>Last commit message</th><th>Last commit date</th></tr></thead><tbody><tr><td><a href="/kiln/kiln/tree/main/src">src</a></td><td>Read settings once</td><td>2 months ago</td></tr><tr><td><a href="/kiln/kiln/blob/main/README.md">README.md</a></td><td>Describe claims</td><td>3 months ago</td></tr></tbody></table></div>
<article class="markdown-body entry-content container-lg" itemprop="text"><div class="markdown-heading" dir="auto"><h1 tabindex="-1" class="heading-element" dir="auto">${document.title}</h1><a id="user-content-top" class="anchor" aria-label="Permalink: ${document.title}" href="#top"><svg class="octicon octicon-link"></svg></a></div>
${writeHtml(document, github)}</article></div>
<div class="Layout-sidebar"><h2>About</h2><p>A scheduler of small programs</p><h2>Releases</h2><a href="/kiln/kiln/releases">12</a></div></main></div><footer class="footer" role="contentinfo"><ul><li><a href="/terms">Terms</a></li></ul></footer></body>`,
  );

const gitlab: Layout = {
  ...github,
  heading: (level, inner, id) =>
    `<h${level} id="user-content-${id}" data-sourcepos="1:1-1:9" dir="auto">${inner}<a href="#${id}" aria-label="Link to heading" data-heading-content="${id}" class="anchor"></a></h${level}>`,
  code: ({ language, text }) =>
    `<div class="gl-relative markdown-code-block js-markdown-code">\n<pre data-sourcepos="1:1-9:3" data-canonical-lang="${language}" class="code highlight js-syntax-highlight language-${language}" v-pre="true"><code>${highlight(
      text,
      { comment: 'c1', string: 's2', keyword: 'k' },
    )
      .split('\n')
      .map((line, at) => `<span id="LC${at + 1}" class="line" lang="${language}">${line}</span>`)
      .join('\n')}</code></pre>\n<copy-code></copy-code><insert-code-snippet></insert-code-snippet>\n</div>`,
  table: (inner) => `<table data-sourcepos="1:1-9:3" dir="auto">\n${inner}\n</table>`,
  inlineFormula: (tex) => `<code data-math-style="inline" class="code math js-render-math">${tex}</code>`,
  formula: (tex) =>
    `<div class="gl-relative markdown-code-block js-markdown-code">\n<pre data-canonical-lang="math" data-math-style="display" class="js-render-math code highlight js-syntax-highlight language-math"><code><span id="LC1" class="line" lang="math">${escapeHtml(tex)}</span></code></pre>\n<copy-code></copy-code>\n</div>`,
  note: (id) =>
    `<sup class="footnote-ref"><a href="#fn-${id}-4021" id="fnref-${id}-4021" data-footnote-ref>${id}</a></sup>`,
  notes: (items) =>
    `<section data-footnotes class="footnotes"><ol>\n${items
      .map(
        ({ id, inner }) =>
          `<li id="fn-${id}-4021">\n<p>${inner} <a href="#fnref-${id}-4021" data-footnote-backref aria-label="Back to reference ${id}" class="footnote-backref"><gl-emoji title="leftwards arrow with hook" data-name="leftwards_arrow_with_hook">↩</gl-emoji></a></p>\n</li>`,
      )
      .join('\n')}\n</ol></section>`,
};

const gitlabPage = (document: Document): string =>
  page(
    document,
    ' · Kiln / kiln · GitLab',
    '<meta content="GitLab" property="og:site_name">',
    `<body data-page="projects:show"><div class="layout-page js-page-layout"><aside class="js-super-sidebar super-sidebar"><nav aria-label="Primary navigation">${sidebar}</nav></aside><div class="content-wrapper"><div class="top-bar-fixed"><nav aria-label="Breadcrumbs" class="breadcrumbs"><ul><li><a href="/kiln">Kiln</a></li></ul></nav></div><main class="content" id="content-body" itemscope><div class="file-holder readme-holder limited-width-container"><div class="js-file-title file-title"><strong class="file-title-name">README.md</strong></div><div class="blob-viewer" data-type="rich"><div class="file-content js-markup-content md" itemprop="about"><h1 id="user-content-top" dir="auto">${document.title}<a href="#top" aria-label="Link to heading" class="anchor"></a></h1>\n${writeHtml(document, gitlab)}</div></div></div></main></div></div></body>`,
  );

const hljs = { comment: 'hljs-comment', string: 'hljs-string', keyword: 'hljs-keyword' };

const node: Layout = {
  heading: (level, inner, id) =>
    `<h${level}>${inner}<span><a class="mark" href="#${id}" id="${id}">#</a></span><a aria-hidden="true" class="legacy" id="kiln_${id.replaceAll('-', '_')}"></a></h${level}>`,
  code: ({ language, text }) =>
    `<pre><code class="language-${language}">${highlight(text, hljs)}</code> <button class="copy-button">copy</button></pre>`,
  table: (inner) => `<table>\n${inner}\n</table>`,
  admonition: () => '',
  tabs: ({ tabs }) => {
    const codes = tabs.flatMap((tab) => tab.blocks).filter((block) => block.type === 'code');
    const flavors = ['mjs', 'cjs'];
    return `<pre class="with-45-chars"><input class="js-flavor-toggle" type="checkbox" checked aria-label="Show modern ES modules syntax">${codes
      .map(
        (one, at) => `<code class="language-${one.language} ${flavors[at] ?? ''}">${highlight(one.text, hljs)}</code>`,
      )
      .join('')}<button class="copy-button">copy</button></pre>`;
  },
};

const nodePage = (document: Document): string =>
  page(
    document,
    ' | Node.js v24.2.0 Documentation',
    '<meta property="og:title" content="Documentation"><meta name="nodejs.org:node-version" content="v24.2.0">',
    `<body class="alt apidoc" id="api-section-kiln"><a href="#apicontent" class="skip-to-content">Skip to content</a><div id="content" class="clearfix"><div role="navigation" id="column2" class="interior"><div id="intro" class="interior"><a href="/" title="Go back to the home page">Node.js</a></div>${sidebar}</div><div id="column1" data-id="kiln" class="interior"><header class="header"><div class="header-container"><h1>Node.js v24.2.0 documentation</h1></div><div id="gtoc"><ul><li class="pinned-header">Node.js v24.2.0</li><li class="picker-header"><a href="#toc-picker" aria-controls="toc-picker">Table of contents</a><div class="picker" tabindex="-1"><div class="toc"><ul><li><a href="#a">First part</a></li><li><a href="#b">Second part</a></li></ul></div></div></li></ul></div><hr></header>
<details role="navigation" id="toc" open><summary>Table of contents</summary><ul><li><a href="#a">First part</a></li><li><a href="#b">Second part</a></li></ul></details>
<div role="main" id="apicontent"><h2>${document.title}<span><a class="mark" href="#top" id="top">#</a></span></h2>
${writeHtml(document, node)}</div></div></div></body>`,
  );

const mdnLanguages: Record<string, string> = { javascript: 'js', typescript: 'ts', bash: 'bash' };

const mdn: Layout = {
  heading: (level, inner, id) =>
    `<h${level} id="${id}"><a class="heading-anchor" href="#${id}">${inner}</a></h${level}>`,
  code: ({ language, text }) => {
    const name = mdnLanguages[language] ?? language;
    return `<div class="code-example"><div class="example-header"><span class="language-name">${name}</span><mdn-copy-button><button type="button">Copy</button></mdn-copy-button></div><pre class="brush: ${name} notranslate"><code>${highlight(text, { comment: 'token comment', string: 'token string', keyword: 'token keyword' })}</code></pre></div>`;
  },
  table: (inner) => `<figure class="table-container"><table>\n${inner}\n</table></figure>`,
  admonition: (block, inner) =>
    block.title === undefined
      ? `<div class="notecard ${block.kind}">\n${inner.replace('<p>', `<p><strong>${titled(block)}:</strong> `)}\n</div>`
      : `<div class="notecard ${block.kind}">\n<p><strong>${block.title}</strong></p>\n${inner}\n</div>`,
  term: (inner, id) => `<a href="#${id}">${inner}</a>`,
};

const mdnPage = (document: Document): string =>
  page(
    document,
    ' - Web APIs | MDN',
    '<meta property="og:site_name" content="MDN Web Docs"><meta property="og:type" content="website">',
    `<body><ul class="a11y-menu"><li><a href="#content">Skip to main content</a></li></ul><div class="page-layout__header"><header class="navigation"><nav aria-label="Main"><ul><li><a href="/html">HTML</a></li><li><a href="/css">CSS</a></li></ul></nav></header></div><div class="reference-layout"><aside class="reference-layout__sidebar"><nav class="left-sidebar">${sidebar}</nav></aside><main id="content" class="reference-layout__content"><div class="reference-layout__header"><h1>${document.title}</h1><details class="baseline-indicator high"><summary><h2>Baseline Widely available</h2></summary><div class="extra"><p>This feature is well established.</p></div></details></div><div class="reference-layout__body"><div class="content-section">
${writeHtml(document, mdn)}</div></div></main><aside class="reference-layout__toc"><nav><h2>In this article</h2><ul><li><a href="#before-you-start">Before you start</a></li></ul></nav></aside></div><footer class="page-layout__footer"><p>Visit our parent</p></footer></body>`,
  );

const mdbook: Layout = {
  heading: (level, inner, id) => `<h${level} id="${id}"><a class="header" href="#${id}">${inner}</a></h${level}>`,
  code: ({ language, text }) =>
    language === 'rust'
      ? `<pre><pre class="playground"><code class="language-rust edition2021">${escapeHtml(text)}</code></pre></pre>`
      : `<pre><code class="language-${language}">${escapeHtml(text)}\n</code></pre>`,
  table: (inner) => `<div class="table-wrapper">\n<table>\n${inner}\n</table>\n</div>`,
  admonition: (block, inner) =>
    `<blockquote class="blockquote-tag blockquote-tag-${block.kind}"><p class="blockquote-tag-title"><svg></svg>${titled(block)}</p>\n${inner}\n</blockquote>`,
  term: (inner, id) => `<a class="header" href="#${id}">${inner}</a>`,
  inlineFormula: (tex) => `\\(${tex}\\)`,
  formula: (tex) => `<p>\\[${escapeHtml(tex)}\\]</p>`,
  note: (id) => `<sup class="footnote-reference" id="fr-${id}-1"><a href="#footnote-${id}">${id}</a></sup>`,
  notes: (items) =>
    `<hr>\n<ol class="footnote-definition">\n${items
      .map(({ id, inner }) => `<li id="footnote-${id}">\n<p>${inner} <a href="#fr-${id}-1">↩</a></p>\n</li>`)
      .join('\n')}\n</ol>`,
};

const mdbookPage = (document: Document): string =>
  page(
    document,
    ' - The Kiln Book',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<body><div id="mdbook-help-container"><div id="mdbook-help-popup"><h2 class="mdbook-help-title">Keyboard shortcuts</h2><div><p>Press <kbd>←</kbd> or <kbd>→</kbd> to navigate between chapters</p></div></div></div><div id="mdbook-body-container"><nav id="mdbook-sidebar" class="sidebar" aria-label="Table of contents"><mdbook-sidebar-scrollbox class="sidebar-scrollbox"></mdbook-sidebar-scrollbox></nav><div id="mdbook-page-wrapper" class="page-wrapper"><div class="page"><div id="mdbook-menu-bar" class="menu-bar sticky"><div class="left-buttons"><button type="button" title="Change theme"></button></div><h1 class="menu-title">The Kiln Book</h1></div><div id="mdbook-content" class="content"><main><h1 id="top"><a class="header" href="#top">${document.title}</a></h1>
${writeHtml(document, mdbook)}
</main><nav class="nav-wrapper" aria-label="Page navigation"><a rel="next" href="reference.html" class="mobile-nav-chapters next" title="Next chapter"></a></nav></div></div></div></div></body>`,
  );

const hand = { version: '2026', licence: 'none: the markup is our own', byHand: true };

export const byHand: Theme[] = [
  {
    ...hand,
    ...{ name: 'github', generator: 'by hand', theme: 'GitHub' },
    lacks: ['tabs', 'definitions'],
    url: (document) => `https://github.com/kiln/${document}`,
    render: (documents) => documents.map(githubPage),
  },
  {
    ...hand,
    ...{ name: 'gitlab', generator: 'by hand', theme: 'GitLab' },
    lacks: ['tabs', 'definitions'],
    url: (document) => `https://gitlab.com/kiln/${document}`,
    render: (documents) => documents.map(gitlabPage),
  },
  {
    ...hand,
    ...{ name: 'node', generator: 'by hand', theme: 'Node.js' },
    lacks: ['admonitions', 'definitions', 'footnotes', 'formulas'],
    unlabelledTabs: true,
    url: (document) => `https://docs.example/api/${document}.html`,
    render: (documents) => documents.map(nodePage),
  },
  {
    ...hand,
    ...{ name: 'mdn', generator: 'by hand', theme: 'MDN' },
    lacks: ['tabs', 'footnotes', 'formulas'],
    url: (document) => `https://docs.example/en-US/docs/${document}`,
    render: (documents) => documents.map(mdnPage),
  },
  {
    ...hand,
    ...{ name: 'mdbook', generator: 'by hand', theme: 'mdBook' },
    lacks: ['tabs'],
    url: (document) => `https://docs.example/book/${document}.html`,
    render: (documents) => documents.map(mdbookPage),
  },
];
