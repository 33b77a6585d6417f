import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Dialect, docusaurus, honkit, starlight, vitepress, writeDocument } from '../dialects/markdown.ts';
import type { Document } from '../model.ts';
import { run, type Theme, writeFiles } from './generator.ts';

type Site = { files: Record<string, string>; folder: string; name: (document: Document) => string; dialect: Dialect };
type Build = { tool: string; command: [string, ...string[]]; output: (document: Document) => string };

/** Writes the sources and settings of a site beside the generator's packages, builds it and reads its pages. */
function build(documents: Document[], place: { tools: string }, site: Site, { tool, command, output }: Build) {
  const sources = documents.map((document) => [
    join(site.folder, site.name(document)),
    writeDocument(document, site.dialect),
  ]);
  // Beside the packages, because the generators look for them in the site's own folder.
  const folder = join(place.tools, tool);
  for (const name of ['src', 'docs', 'build', 'dist', '_book', '.vitepress', '.docusaurus', '.astro'])
    rmSync(join(folder, name), { recursive: true, force: true });
  writeFiles(folder, { ...site.files, ...Object.fromEntries(sources) });
  const [program, ...parameters] = command;
  run(folder, process.execPath, join(place.tools, tool, 'node_modules', program), ...parameters);
  return documents.map((document) => readFileSync(join(folder, output(document)), 'utf8'));
}

const docusaurusConfig = (rehype: string): string => `
import remarkMath from 'remark-math';
import rehypeKatex from 'rehype-katex';
import rehypeShiki from '@shikijs/rehype';
void rehypeShiki;
export default {
  title: 'Kiln', url: 'https://docs.example', baseUrl: '/', onBrokenLinks: 'ignore',
  presets: [['classic', { blog: false, pages: false, docs: {
    routeBasePath: '/', sidebarPath: './sidebars.js', editUrl: 'https://git.example/kiln/edit/main/',
    remarkPlugins: [remarkMath], rehypePlugins: [rehypeKatex], beforeDefaultRehypePlugins: [${rehype}],
  } }]],
  themeConfig: {
    navbar: { title: 'Kiln', items: [{ type: 'docSidebar', sidebarId: 'main', label: 'Documentation' }, { href: 'https://git.example/kiln', label: 'Source' }] },
    footer: { links: [{ title: 'More', items: [{ label: 'Forum', href: 'https://forum.example' }] }], copyright: 'Copyright © Kiln' },
    prism: { additionalLanguages: ['java', 'rust', 'ini', 'toml', 'csharp'] },
  },
};
`;

const renderDocusaurus =
  (rehype: string): Theme['render'] =>
  (documents, place) =>
    build(
      documents,
      place,
      {
        files: {
          'docusaurus.config.mjs': docusaurusConfig(rehype),
          'sidebars.js': `export default { main: ['guide', 'reference'] };`,
        },
        folder: 'docs',
        name: ({ id }) => `${id}.mdx`,
        dialect: docusaurus,
      },
      {
        tool: 'docusaurus',
        command: ['@docusaurus/core/bin/docusaurus.mjs', 'build'],
        output: ({ id }) => `build/${id}/index.html`,
      },
    );

const vitepressConfig = `
import footnote from 'markdown-it-footnote';
import deflist from 'markdown-it-deflist';
export default {
  title: 'Kiln', ignoreDeadLinks: true, vite: { ssr: { noExternal: [/teek/] } },
  themeConfig: {
    nav: [{ text: 'Guide', link: '/guide' }, { text: 'Source', link: 'https://git.example/kiln' }],
    sidebar: [{ text: 'Kiln', items: [{ text: 'Running scheduled tasks', link: '/guide' }, { text: 'Reference of the client library', link: '/reference' }] }],
    editLink: { pattern: 'https://git.example/kiln/edit/:path' }, footer: { message: 'Released under the MIT licence.' },
  },
  markdown: { config: (md) => { md.use(footnote); md.use(deflist); } },
};
`;

const renderVitepress =
  (theme: string): Theme['render'] =>
  (documents, place) =>
    build(
      documents,
      place,
      {
        files: {
          '.vitepress/config.mjs': vitepressConfig,
          '.vitepress/theme/index.mjs': theme,
        },
        folder: '.',
        name: ({ id }) => `${id}.md`,
        dialect: vitepress,
      },
      {
        tool: 'vitepress',
        command: ['vitepress/bin/vitepress.js', 'build'],
        output: ({ id }) => `.vitepress/dist/${id}.html`,
      },
    );

const starlightConfig = (imports: string, options: string): string => `
import { defineConfig } from 'astro/config';
import starlight from '@astrojs/starlight';
import remarkMath from 'remark-math';
import rehypeKatex from 'rehype-katex';
${imports}
export default defineConfig({
  site: 'https://docs.example',
  markdown: { remarkPlugins: [remarkMath], rehypePlugins: [rehypeKatex] },
  integrations: [starlight({ title: 'Kiln', pagefind: false, editLink: { baseUrl: 'https://git.example/kiln/edit/main/' },
    sidebar: [{ label: 'Running scheduled tasks', link: '/guide/' }, { label: 'Reference of the client library', link: '/reference/' }],
    ${options} })],
});
`;

const renderStarlight =
  (imports: string, options: string): Theme['render'] =>
  (documents, place) =>
    build(
      documents,
      place,
      {
        files: {
          'astro.config.mjs': starlightConfig(imports, options),
          'src/content.config.ts': `import { defineCollection } from 'astro:content';
import { docsLoader } from '@astrojs/starlight/loaders';
import { docsSchema } from '@astrojs/starlight/schema';
const collections = { docs: defineCollection({ loader: docsLoader(), schema: docsSchema() }) };
export { collections };
`,
        },
        folder: 'src/content/docs',
        name: ({ id }) => `${id}.mdx`,
        dialect: starlight,
      },
      { tool: 'starlight', command: ['astro/bin/astro.mjs', 'build'], output: ({ id }) => `dist/${id}/index.html` },
    );

const url = (document: string): string => `https://docs.example/${document}/`;

export const fromNpm: Theme[] = [
  {
    ...{ name: 'docusaurus-classic', generator: 'Docusaurus', version: '3.10.2', theme: 'classic', licence: 'MIT' },
    url,
    render: renderDocusaurus(''),
  },
  {
    ...{ name: 'docusaurus-shiki', generator: 'Docusaurus', version: '3.10.2', licence: 'MIT' },
    theme: 'classic with Shiki',
    url,
    render: renderDocusaurus("[rehypeShiki, { theme: 'nord', addLanguageClass: true }]"),
  },
  {
    ...{ name: 'vitepress-default', generator: 'VitePress', version: '1.6.4', theme: 'default', licence: 'MIT' },
    lacks: ['formulas'],
    url,
    render: renderVitepress(`import theme from 'vitepress/theme'; export default theme;`),
  },
  {
    ...{ name: 'vitepress-teek', generator: 'VitePress', version: '1.6.4', theme: 'Teek 1.6.2', licence: 'MIT' },
    lacks: ['formulas'],
    url,
    render: renderVitepress(`import Teek from 'vitepress-theme-teek'; export default { extends: Teek };`),
  },
  {
    ...{ name: 'starlight-default', generator: 'Starlight', version: '0.42.4', theme: 'default', licence: 'MIT' },
    url,
    render: renderStarlight(
      `import { pluginLineNumbers } from '@expressive-code/plugin-line-numbers';`,
      'expressiveCode: { plugins: [pluginLineNumbers()], defaultProps: { showLineNumbers: false } },',
    ),
  },
  {
    ...{ name: 'starlight-rapide', generator: 'Starlight', version: '0.42.4', theme: 'Rapide 0.6.0', licence: 'MIT' },
    url,
    render: renderStarlight(
      `import rapide from 'starlight-theme-rapide';`,
      'plugins: [rapide()], expressiveCode: false,',
    ),
  },
  {
    ...{ name: 'honkit-default', generator: 'HonKit', version: '6.1.7', theme: 'default', licence: 'Apache-2.0' },
    lacks: ['admonitions', 'tabs', 'definitions', 'footnotes', 'formulas'],
    url: (document) => `https://docs.example/${document}.html`,
    render: (documents, place) =>
      build(
        documents,
        place,
        {
          files: {
            'README.md': '# Kiln\n',
            'SUMMARY.md':
              '# Summary\n\n* [Running scheduled tasks](guide.md)\n* [Reference of the client library](reference.md)\n',
          },
          folder: '.',
          name: ({ id }) => `${id}.md`,
          dialect: honkit,
        },
        { tool: 'honkit', command: ['honkit/bin/honkit.js', 'build'], output: ({ id }) => `_book/${id}.html` },
      ),
  },
];
