import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { anchorOf, base, manifest, readContents, repository } from '../contents.ts';
import { extendMarkdown } from '../markdown.ts';

const linkTo = (file: string) => `/${file.replace(/(?:index)?\.md$/, '')}`;
const contents = readContents();
const guides = contents.map(({ title, pages }, index) => ({
  text: title,
  collapsed: index > 3,
  items: pages.map(({ title, file }) => ({ text: title, link: linkTo(file) })),
}));
export default defineConfig({
  title: 'Quarry',
  description: manifest.description,
  lang: 'en',
  // Written by prepare.ts from docs/.
  srcDir: '.vitepress/pages',
  base,
  outDir: 'dist',
  cacheDir: '.vitepress/cache',
  cleanUrls: true,
  lastUpdated: false,
  metaChunk: true,
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}icon.svg` }],
    ['meta', { name: 'theme-color', content: '#0f6b5c' }],
  ],
  markdown: {
    // Text such as <id> is text, and a page that holds a tag by mistake shows it.
    html: false,
    anchor: { slugify: anchorOf },
    toc: { slugify: anchorOf },
    headers: { level: [2, 3], slugify: anchorOf },
    theme: { light: 'github-light', dark: 'github-dark' },
    config: extendMarkdown,
  },
  vite: {
    publicDir: join(import.meta.dirname, 'public'),
    build: { chunkSizeWarningLimit: 1500 },
  },
  transformPageData(page) {
    if (page.relativePath === 'index.md') page.frontmatter = { layout: 'landing', sidebar: false };
    else {
      const found = contents.flatMap(({ pages }) => pages).find(({ file }) => file === page.relativePath);
      if (found) page.description = found.description;
    }
  },
  themeConfig: {
    logo: '/icon.svg',
    nav: [
      { text: 'Guides', link: '/quickstart', activeMatch: '^/(?!decisions|experiments|$)' },
      { text: 'API', link: '/api', target: '_self' },
      { text: 'Decisions', link: '/decisions/', activeMatch: '^/(?:decisions|experiments)/' },
      { text: `v${manifest.version}`, link: `${repository}/blob/main/CHANGELOG.md` },
    ],
    sidebar: guides,
    outline: { level: [2, 3] },
    search: {
      provider: 'local',
      options: {
        // Decisions and experiments say why; a search is for how.
        _render: (text, env, md) => (/^(?:decisions|experiments)\//.test(env.relativePath) ? '' : md.render(text, env)),
        miniSearch: { searchOptions: { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 } } },
      },
    },
    editLink: {
      text: 'Edit this page',
      pattern: `${repository}/edit/main/docs/:path`,
    },
    socialLinks: [{ icon: 'github', link: repository }],
    externalLinkIcon: true,
  },
});
