import { oneLine, writeMarkdown } from '../markdown.ts';
import { decodeText } from '../text/charset.ts';
import { isoDate } from '../text/text.ts';
import type { ParsedDocument } from '../types.ts';
import { findElement, findElements, type HtmlElement, htmlText, parseHtmlTree } from './block-tree.ts';
import { htmlBlocks } from './blocks.ts';
import { parsePage } from './page.ts';

/**
 * An HTML document. A saved web page is reduced to its main content as pages from the web are; what has no navigation
 * round it (a report, an exported note) is kept whole.
 */
export function parseHtml(bytes: Uint8Array, input: { contentType?: string; url?: string }): ParsedDocument {
  const text = decodeText(bytes, claimedCharset(bytes, input.contentType)).text;
  const root = parseHtmlTree(text);
  if (!isWebPage(text, root)) return wholeDocument(root, input.url);
  const page = parsePage({ bytes, contentType: input.contentType ?? 'text/html', url: input.url ?? 'about:blank' });
  if (page.markdown.trim() === '') return wholeDocument(root, input.url);
  return { kind: 'html', markdown: page.markdown, ...htmlMetadata(root) };
}

const linksOfPageMin = 15;
const linkShareMin = 0.25;
const siteSigns =
  /<script[^>]+\bsrc\s*=|<meta[^>]+(?:property|name)\s*=\s*["']?(?:og:|twitter:)|application\/ld\+json/i;

/** Whether there is a site round the text: navigation, its scripts and its cards for sharing, or mostly links. */
function isWebPage(text: string, root: HtmlElement): boolean {
  if (siteSigns.test(text) || findElement(root, 'nav') || findElement(root, 'aside')) return true;
  const links = findElements(root, 'a').filter((link) => link.attributes.href !== undefined);
  if (links.length < linksOfPageMin) return false;
  const linked = links.reduce((sum, link) => sum + oneLine(htmlText(link)).length, 0);
  return linked > oneLine(htmlText(findElement(root, 'body') ?? root)).length * linkShareMin;
}

function wholeDocument(root: HtmlElement, url: string | undefined): ParsedDocument {
  const base = findElement(root, 'base')?.attributes.href ?? url;
  const markdown = writeMarkdown(
    htmlBlocks(root, { baseUrl: base !== undefined && URL.canParse(base) ? base : undefined }),
  );
  return { kind: 'html', markdown, ...htmlMetadata(root) };
}

export function htmlMetadata(root: HtmlElement): Omit<ParsedDocument, 'kind' | 'markdown'> {
  const metas = new Map<string, string>();
  for (const meta of findElements(root, 'meta')) {
    const name = (meta.attributes.name ?? meta.attributes.property ?? '').toLowerCase();
    const content = oneLine(meta.attributes.content ?? '');
    if (name !== '' && content !== '' && !metas.has(name)) metas.set(name, content);
  }
  const titleElement = findElement(root, 'title');
  const title = oneLine(titleElement ? htmlText(titleElement) : '') || metas.get('og:title') || metas.get('dc.title');
  const language = findElement(root, 'html')?.attributes.lang ?? metas.get('dc.language');
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
