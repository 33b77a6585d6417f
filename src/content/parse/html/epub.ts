import { child, childElements, descend, descendants, parseXml, textOf, type XmlElement } from '../format/xml.ts';
import { ZipArchive } from '../format/zip.ts';
import { resolvePath } from '../office/ooxml.ts';
import { isoDate } from '../text/text.ts';
import { failed, type ParsedDocument, unsupported } from '../types.ts';
import { type Block, writeMarkdown } from '../write-markdown.ts';
import { htmlBlocks } from './blocks.ts';
import { plainStructure } from './structure/structure.ts';
import { parseHtml } from './tree.ts';

const chaptersMax = 5_000;

/** Reads an e-book: its chapters in reading order. Throws ParseError. */
export async function parseEpub(bytes: Uint8Array): Promise<ParsedDocument> {
  const zip = await ZipArchive.open(bytes);
  const container = zip.readText('META-INF/container.xml');
  const listed =
    container === undefined ? undefined : descendants(parseXml(container), 'rootfile')[0]?.attributes['full-path'];
  const packagePath = listed ?? zip.names.find((name) => name.endsWith('.opf'));
  const packageText = packagePath === undefined ? undefined : zip.readText(packagePath);
  if (packagePath === undefined || packageText === undefined)
    throw failed('The e-book is damaged: its table of parts is missing.');
  const root = child(parseXml(packageText), 'package');
  const folder = packagePath.slice(0, packagePath.lastIndexOf('/') + 1);
  const blocks: Block[] = [];
  for (const path of chapterPaths(root, folder).slice(0, chaptersMax)) {
    const text = zip.readText(path);
    if (text === undefined) continue;
    const chapter = parseHtml(text, { xhtml: true });
    if (chapter.truncated) throw failed('A chapter of the e-book has more parts than can be read.');
    plainStructure(chapter.root);
    blocks.push(...htmlBlocks(chapter.root));
  }
  if (blocks.length === 0 && zip.has('META-INF/encryption.xml'))
    throw unsupported('The e-book is copy-protected and cannot be read.');
  return { kind: 'epub', markdown: writeMarkdown(blocks), ...metadata(child(root, 'metadata')) };
}

function chapterPaths(root: XmlElement | undefined, folder: string): string[] {
  const files = new Map<string, string>();
  const navigation = new Set<string>();
  for (const item of childElements(child(root, 'manifest'), 'item')) {
    const id = item.attributes.id ?? '';
    if (!/html|xml/.test(item.attributes['media-type'] ?? '') || item.attributes['media-type'] === 'image/svg+xml')
      continue;
    files.set(id, resolvePath(folder, decodePath(item.attributes.href ?? '')));
    if (/\bnav\b/.test(item.attributes.properties ?? '')) navigation.add(id);
  }
  return childElements(descend(root, 'spine'), 'itemref')
    .filter((one) => one.attributes.linear !== 'no' && !navigation.has(one.attributes.idref ?? ''))
    .map((one) => files.get(one.attributes.idref ?? ''))
    .filter((path) => path !== undefined);
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path.split('#')[0] ?? '');
  } catch {
    return path;
  }
}

function metadata(element: XmlElement | undefined): Omit<ParsedDocument, 'kind' | 'markdown'> {
  const field = (name: string): string => textOf(child(element, name)).trim();
  const created = isoDate(field('date'));
  return {
    ...(field('title') ? { title: field('title') } : {}),
    ...(field('language') ? { language: field('language') } : {}),
    ...(field('creator') ? { author: field('creator') } : {}),
    ...(created ? { created } : {}),
  };
}
