import { decodeText } from '../text/charset.ts';
import { isoDate } from '../text/text.ts';
import { needsBrowser, type ParsedDocument, type ParseInput } from '../types.ts';
import { oneLine, writeMarkdown } from '../write-markdown.ts';
import { htmlBlocks } from './blocks.ts';
import { readPage, reportPage } from './page.ts';
import { plainStructure } from './structure/structure.ts';
import { findAll, findFirst, type HtmlElement, parseHtml, textLength, textOf, treeLimits } from './tree.ts';

/**
 * Reads an HTML document. A saved web page is reduced to its main content, like a fetched page. A document without
 * navigation (a report, an exported note) is kept whole.
 */
export function parseHtmlDocument(bytes: Uint8Array, input: Omit<ParseInput, 'bytes'>): ParsedDocument {
  const text = decodeText(bytes, claimedCharset(bytes, input.contentType)).text;
  const tree = parseHtml(text, { xhtml: /^\s*<\?xml/.test(text) });
  const { root } = tree;
  const metadata = htmlMetadata(root);
  if (input.isWhole !== true && isWebPage(text, root)) {
    const page = readPage(tree, input.url ?? statedAddress(text, root) ?? 'about:blank');
    if (page.needsBrowser) throw needsBrowser();
    const { markdown, truncated } = page;
    if (markdown.trim() !== '')
      return { kind: 'html', markdown, page: reportPage(page), ...metadata, ...(truncated ? { truncated } : {}) };
  }
  const missing = new Set<string>();
  if (tree.truncated) missing.add(`everything after the first ${treeLimits.elementsMax} elements`);
  const markdown = wholeDocument(root, input.url, (what) => missing.add(what));
  return { kind: 'html', markdown, ...metadata, ...(missing.size === 0 ? {} : { truncated: [...missing] }) };
}

const addressCharactersMax = 2_000;

/** The address that a saved page states: browsers write it above the page, and most sites into its head. */
function statedAddress(text: string, root: HtmlElement): string | undefined {
  const saved = /<!-- saved from url=\(\d{4}\)(https?:\S+)/.exec(text.slice(0, addressCharactersMax))?.[1];
  const link = findAll(root, 'link').find(({ attributes }) => attributes.rel?.toLowerCase() === 'canonical');
  const meta = findAll(root, 'meta').find(({ attributes }) => attributes.property?.toLowerCase() === 'og:url');
  return [saved, link?.attributes.href, meta?.attributes.content].find(
    (address) => /^https?:/i.test(address ?? '') && URL.canParse(address ?? ''),
  );
}

const linksOfPageMin = 15;
const linkShareMin = 0.25;
const siteSigns =
  /<script[^>]+\bsrc\s*=|<meta[^>]+(?:property|name)\s*=\s*["']?(?:og:|twitter:)|application\/ld\+json/i;

/** Whether the text is part of a site: it has navigation, site scripts and sharing cards, or mostly links. */
function isWebPage(text: string, root: HtmlElement): boolean {
  if (siteSigns.test(text) || findFirst(root, 'nav') || findFirst(root, 'aside')) return true;
  const links = findAll(root, 'a').filter((link) => link.attributes.href !== undefined);
  if (links.length < linksOfPageMin) return false;
  const linked = links.reduce((sum, link) => sum + textLength(link), 0);
  return linked > textLength(findFirst(root, 'body') ?? root) * linkShareMin;
}

function wholeDocument(root: HtmlElement, url: string | undefined, onCut: (missing: string) => void): string {
  plainStructure(root);
  const base = findFirst(root, 'base')?.attributes.href ?? url;
  const baseUrl = base !== undefined && URL.canParse(base) ? base : undefined;
  return writeMarkdown(htmlBlocks(root, { baseUrl, onCut }));
}

function htmlMetadata(root: HtmlElement): Omit<ParsedDocument, 'kind' | 'markdown'> {
  const metas = new Map<string, string>();
  for (const meta of findAll(root, 'meta')) {
    const name = (meta.attributes.name ?? meta.attributes.property ?? '').toLowerCase();
    const content = oneLine(meta.attributes.content ?? '');
    if (name !== '' && content !== '' && !metas.has(name)) metas.set(name, content);
  }
  const titleElement = findFirst(root, 'title');
  const title = (titleElement ? textOf(titleElement) : '') || metas.get('og:title') || metas.get('dc.title');
  const language = findFirst(root, 'html')?.attributes.lang ?? metas.get('dc.language');
  const author = metas.get('author') ?? metas.get('dc.creator');
  const created = isoDate(metas.get('article:published_time') ?? metas.get('dc.date') ?? metas.get('date'));
  return {
    ...(title ? { title } : {}),
    ...(language ? { language } : {}),
    ...(author ? { author } : {}),
    ...(created ? { created } : {}),
  };
}

function claimedCharset(bytes: Uint8Array, contentType: string | undefined): string | undefined {
  const inHeader = /charset\s*=\s*"?([\w.:-]+)/i.exec(contentType ?? '')?.[1];
  if (inHeader !== undefined) return inHeader;
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(4096, bytes.byteLength)).toString('latin1');
  return (
    /<meta[^>]+charset\s*=\s*["']?\s*([\w.:-]+)/i.exec(head)?.[1] ??
    /<\?xml[^>]+encoding\s*=\s*["']([\w.:-]+)/i.exec(head)?.[1]
  );
}
