import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Dialect, docsy, hugoBook, jekyll, mkdocs, writeDocument } from '../dialects/markdown.ts';
import { type TabDirectives, writeRst } from '../dialects/rst.ts';
import { run, type Theme, writeSite } from './generator.ts';

const url = (document: string): string => `https://docs.example/${document}/`;
const htmlUrl = (document: string): string => `https://docs.example/${document}.html`;

function sphinx(theme: string, extensions: string[], tabs: TabDirectives | undefined, more = ''): Theme['render'] {
  return (documents, { work }) => {
    writeSite(work, {
      'conf.py': `project = 'Kiln'\nextensions = ${JSON.stringify(['sphinx.ext.mathjax', ...extensions])}\nhtml_theme = '${theme}'\nlanguage = 'en'\n${more}`,
      'index.rst': `Kiln\n====\n\n.. toctree::\n\n${documents.map(({ id }) => `   ${id}`).join('\n')}\n`,
      ...Object.fromEntries(documents.map((document) => [`${document.id}.rst`, writeRst(document, tabs)])),
    });
    run(work, 'sphinx-build', '-q', '-b', 'html', '.', 'out');
    return documents.map(({ id }) => readFileSync(join(work, 'out', `${id}.html`), 'utf8'));
  };
}

function mkdocsTheme(theme: string, extensions: string[], numbered = mkdocs.numbered): Theme['render'] {
  return (documents, { work }) => {
    writeSite(work, {
      'mkdocs.yml': [
        'site_name: Kiln',
        'site_url: https://docs.example/',
        'repo_url: https://git.example/kiln',
        `theme:\n  name: ${theme}`,
        'nav:',
        ...documents.map(({ id, title }) => `  - ${title}: ${id}.md`),
        'markdown_extensions:',
        ...['tables', 'footnotes', 'def_list', 'admonition', 'md_in_html', ...extensions].map((one) => `  - ${one}`),
        '  - toc:\n      permalink: true',
        '',
      ].join('\n'),
      ...Object.fromEntries(
        documents.map((document) => [`docs/${document.id}.md`, writeDocument(document, { ...mkdocs, numbered })]),
      ),
      'docs/index.md': '# Kiln\n',
    });
    run(work, 'mkdocs', 'build', '-q');
    return documents.map(({ id }) => readFileSync(join(work, 'site', id, 'index.html'), 'utf8'));
  };
}

const superfences = ['pymdownx.superfences', 'pymdownx.arithmatex:\n      generic: true'];

type HugoSite = { source: string; dialect: Dialect; config: string; files?: Record<string, string> };

function hugo({ source, dialect, config, files = {} }: HugoSite): Theme['render'] {
  return (documents, { tools, work }) => {
    writeSite(work, {
      'config.toml': `baseURL = 'https://docs.example/'\ntitle = 'Kiln'\ntheme = 'docs'\n[markup.goldmark.renderer]\nunsafe = true\n[markup.highlight]\nnoClasses = false\n${config}`,
      'content/docs/_index.md': '---\ntitle: Kiln\n---\n',
      ...files,
      ...Object.fromEntries(
        documents.map((document) => [`content/docs/${document.id}.md`, writeDocument(document, dialect)]),
      ),
    });
    cpSync(join(tools, source), join(work, 'themes/docs'), { recursive: true });
    run(work, 'hugo', '--quiet');
    return documents.map(({ id }) => readFileSync(join(work, 'public/docs', id, 'index.html'), 'utf8'));
  };
}

function jekyllTheme(config: string, source: string | undefined): Theme['render'] {
  return (documents, { tools, work }) => {
    writeSite(work, {
      '_config.yml': `title: Kiln\nurl: https://docs.example\nkramdown:\n  math_engine: mathjax\n${config}`,
      ...Object.fromEntries(documents.map((document) => [`${document.id}.md`, writeDocument(document, jekyll)])),
    });
    if (source !== undefined)
      for (const folder of ['_includes', '_layouts', '_sass', 'assets'])
        cpSync(join(tools, source, folder), join(work, folder), { recursive: true });
    run(work, 'jekyll', 'build', '-q');
    return documents.map(({ id }) => readFileSync(join(work, '_site', `${id}.html`), 'utf8'));
  };
}

const sphinxTheme = { generator: 'Sphinx', version: '5.3.0', url: htmlUrl };
const mkdocsSite = { generator: 'MkDocs', version: '1.4.2', url };

export const fromDebian: Theme[] = [
  {
    ...sphinxTheme,
    ...{ name: 'sphinx-furo', theme: 'Furo 2022.12.07', licence: 'MIT' },
    render: sphinx('furo', ['sphinx_inline_tabs', 'sphinx_copybutton'], { tab: 'tab' }),
  },
  {
    ...sphinxTheme,
    ...{ name: 'sphinx-rtd', theme: 'Read the Docs 1.2.0', licence: 'MIT' },
    render: sphinx('sphinx_rtd_theme', ['sphinx_tabs.tabs'], { set: 'tabs', tab: 'tab' }),
  },
  {
    ...sphinxTheme,
    ...{ name: 'sphinx-alabaster', theme: 'Alabaster', licence: 'BSD-3-Clause' },
    lacks: ['tabs'],
    render: sphinx('alabaster', [], undefined, "html_codeblock_linenos_style = 'table'\n"),
  },
  {
    ...sphinxTheme,
    ...{ name: 'sphinx-pydata', theme: 'PyData 0.7.2', licence: 'BSD-3-Clause' },
    render: sphinx('pydata_sphinx_theme', ['sphinx_tabs.tabs', 'sphinx_copybutton'], { set: 'tabs', tab: 'tab' }),
  },
  {
    ...sphinxTheme,
    ...{ name: 'sphinx-book', theme: 'Book 0.1.7', licence: 'BSD-3-Clause' },
    render: sphinx('sphinx_book_theme', ['sphinx_panels'], { tab: 'tabbed' }),
  },
  {
    ...mkdocsSite,
    ...{ name: 'mkdocs-material', theme: 'Material 8.2.5', licence: 'MIT' },
    render: mkdocsTheme('material', [
      ...superfences,
      'pymdownx.highlight:\n      anchor_linenums: true\n      pygments_lang_class: true',
      'pymdownx.tabbed:\n      alternate_style: true',
    ]),
  },
  {
    ...mkdocsSite,
    ...{ name: 'mkdocs-readthedocs', theme: 'readthedocs', licence: 'BSD-2-Clause' },
    render: mkdocsTheme('readthedocs', [
      ...superfences,
      'pymdownx.highlight:\n      linenums_style: table\n      pygments_lang_class: true',
      'pymdownx.tabbed',
    ]),
  },
  {
    ...mkdocsSite,
    ...{ name: 'mkdocs-default', theme: 'mkdocs', licence: 'BSD-2-Clause' },
    lacks: ['tabs'],
    render: mkdocsTheme('mkdocs', [...superfences, 'pymdownx.highlight:\n      use_pygments: false'], ''),
  },
  {
    ...mkdocsSite,
    ...{ name: 'mkdocs-inline', theme: 'mkdocs with inline line numbers', licence: 'BSD-2-Clause' },
    render: mkdocsTheme('mkdocs', [
      ...superfences,
      'pymdownx.highlight:\n      linenums_style: inline\n      pygments_lang_class: true',
      'pymdownx.tabbed:\n      alternate_style: true',
    ]),
  },
  {
    ...{ name: 'hugo-book', generator: 'Hugo', version: '0.111.3', theme: 'Book', licence: 'MIT', url },
    lacks: ['formulas'],
    render: hugo({ source: 'hugo-book', dialect: hugoBook, config: "[params]\nBookSection = 'docs'\n" }),
  },
  {
    ...{ name: 'hugo-docsy', generator: 'Hugo', version: '0.111.3', theme: 'Docsy 0.7.1', licence: 'Apache-2.0', url },
    lacks: ['formulas'],
    render: hugo({
      source: 'docsy-theme',
      dialect: docsy,
      config: '[params]\n[params.ui]\nbreadcrumb_disable = false\n',
      files: { 'layouts/partials/head-css.html': '', 'layouts/partials/scripts.html': '' },
    }),
  },
  {
    ...{ name: 'jekyll-minima', generator: 'Jekyll', version: '4.3.1', theme: 'Minima', licence: 'MIT' },
    lacks: ['admonitions', 'tabs'],
    url: htmlUrl,
    render: jekyllTheme('theme: minima\n', undefined),
  },
  {
    ...{ name: 'jekyll-just-the-docs', generator: 'Jekyll', version: '4.3.1', theme: 'Just the Docs', licence: 'MIT' },
    lacks: ['tabs'],
    url: htmlUrl,
    render: jekyllTheme(
      'plugins: [jekyll-seo-tag, jekyll-include-cache]\ncallouts:\n  note:\n    title: Note\n    color: blue\n  tip:\n    title: Tip\n    color: green\n  warning:\n    title: Warning\n    color: red\n',
      'just-the-docs',
    ),
  },
];
