import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/*
 * docs/README.md is the one list of the guides: the navigation, llms.txt and the order of llms-full.txt come from it.
 */
export const root = join(import.meta.dirname, '..');
export const docs = join(root, 'docs');
/** The site is beside the server at this address; published elsewhere, it may have another. */
export const base = process.env.SITE_BASE ?? '/docs/';

type Page = { file: string; title: string; description: string };
type Section = { title: string; pages: Page[] };

/** The sections of docs/README.md with the pages that each lists. */
export function readContents(markdown: string = readFileSync(join(docs, 'README.md'), 'utf8')): Section[] {
  const sections: Section[] = [];
  for (const line of markdown.split('\n')) {
    const [, heading] = /^## (.+)/.exec(line) ?? [];
    if (heading !== undefined) sections.push({ title: heading, pages: [] });
    const [, title, file, description] = /^- \[([^\]]+)\]\(([\w.-]+)\): (.+)/.exec(line) ?? [];
    if (title !== undefined && file !== undefined && description !== undefined)
      sections.at(-1)?.pages.push({ title, file: isFolder(file) ? `${file}/index.md` : file, description });
  }
  return sections;
}

/** Folders of records, which have a page with a list of them. */
export const folders = ['decisions', 'experiments'];
const isFolder = (path: string) => folders.includes(path);

/** The page that lists the records of a folder. */
export function listRecords(folder: string): string {
  const lines = readRecords(folder).map(({ title, file }) => `- [${title}](${file})`);
  return `# ${folder === 'decisions' ? 'Decisions' : 'Experiments'}\n\n${lines.join('\n')}\n`;
}

function readRecords(folder: string): { title: string; file: string }[] {
  return readdirSync(join(docs, folder))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => {
      const [, title = name] = /^# (.+)/m.exec(readFileSync(join(docs, folder, name), 'utf8')) ?? [];
      return { title, file: name };
    });
}

type Manifest = { version: string; description: string; repository: { url: string } };
export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
export const repository = manifest.repository.url.replace(/^git\+/, '').replace(/\.git$/, '');

/** Where a link of a page leads: within docs/ as it is, and to the repository for everything else. */
export function resolveLink(page: string, link: string): string {
  if (/^(?:[a-z]+:|#|\/)/.test(link)) return link;
  const [path = '', anchor] = link.split('#');
  const target = join('docs', page, '..', path);
  if (isFolder(target.slice('docs/'.length))) return `${path}/index.md`;
  const isPage = path.endsWith('.md') && target.startsWith('docs/') && existsSync(join(root, target));
  if (isPage || /^docs\/(?:images|charts)\//.test(target)) return link;
  const kind = /\.\w+$|file$/i.test(target) ? 'blob' : 'tree';
  return `${repository}/${kind}/main/${target}${anchor === undefined ? '' : `#${anchor}`}`;
}

/** The anchor of a heading as GitHub makes it, so that links work in both places. */
export function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');
}
