import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import scalar from '@scalar/fastify-api-reference';
import fastify from 'fastify';
import { base, docs, folders, listRecords, manifest, readContents, resolveLink, root } from './contents.ts';

/*
 * Writes what VitePress builds the site from: the pages of docs/, and a folder that it copies into site/dist: each page as
 * Markdown, llms.txt and llms-full.txt, pictures, and the API reference.
 */
const output = join(import.meta.dirname, '.vitepress/public');
const pages = join(import.meta.dirname, '.vitepress/pages');
const notes = `Each page of this site is also Markdown: add \`.md\` to its address. All guides are in one file in [llms-full.txt](${base}llms-full.txt). The [OpenAPI document](${base}openapi.json) describes every operation, and an [Agent Skill](${base}skills/quarry/SKILL.md) says how to use Quarry from a coding agent.`;

for (const folder of [output, pages]) rmSync(folder, { recursive: true, force: true });
for (const folder of ['images', 'charts']) cpSync(join(docs, folder), join(output, folder), { recursive: true });
for (const folder of ['.', ...folders]) {
  for (const place of [output, pages]) mkdirSync(join(place, folder), { recursive: true });
  for (const name of readdirSync(join(docs, folder)).filter((name) => name.endsWith('.md'))) {
    const page = join(folder, name);
    for (const place of [output, pages])
      writeFileSync(join(place, page === 'README.md' ? 'index.md' : page), readPage(page));
  }
}
for (const folder of folders)
  for (const place of [output, pages]) writeFileSync(join(place, folder, 'index.md'), listRecords(folder));
writeFileSync(join(output, 'llms.txt'), listForModels());
writeFileSync(join(output, 'llms-full.txt'), everythingForModels());
cpSync(join(import.meta.dirname, 'reference'), output, { recursive: true });
cpSync(join(root, 'console/public/icon.svg'), join(output, 'icon.svg'));
cpSync(join(root, 'openapi.json'), join(output, 'openapi.json'));
cpSync(join(root, 'skills'), join(output, 'skills'), { recursive: true });
writeFileSync(join(output, 'scalar.js'), await readReferenceProgram());

/** A page whose links lead somewhere from the site, too. */
function readPage(page: string): string {
  const markdown = readFileSync(join(docs, page), 'utf8');
  return markdown.replaceAll(/\]\(([^)\s]+)\)/g, (_, link) => `](${resolveLink(page, link)})`);
}

/** https://llmstxt.org */
function listForModels(): string {
  const sections = readContents().map(({ title, pages }) => {
    const lines = pages.map(({ title, file, description }) => `- [${title}](${base}${file}): ${description}`);
    return `## ${title}\n\n${lines.join('\n')}`;
  });
  return `# Quarry\n\n> ${manifest.description}\n\n${notes}\n\n${sections.join('\n\n')}\n`;
}

function everythingForModels(): string {
  const pages = readContents()
    .flatMap(({ pages }) => pages)
    .filter(({ file }) => !file.includes('/'));
  return pages.map(({ file }) => `<!-- ${base}${file} -->\n\n${readPage(file).trim()}\n`).join('\n');
}

/** The package has the program of the reference as a plugin of Fastify, without the 300 MB of Scalar's sources. */
async function readReferenceProgram(): Promise<string> {
  const server = fastify();
  await server.register(scalar, { routePrefix: '/', configuration: { url: '/openapi.json' } });
  const { body, statusCode } = await server.inject('/js/scalar.js');
  await server.close();
  if (statusCode !== 200) throw new Error(`The program of the API reference: ${statusCode}`);
  return body.replace(/\n\/\/# sourceMappingURL=\S+\s*$/, '\n');
}
