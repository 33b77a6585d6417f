import { decodeText } from './charset.ts';
import { htmlBlocks } from './html-blocks.ts';
import { findElement, findElements, type HtmlElement, htmlText, parseHtmlTree } from './html-tree.ts';
import { oneLine, writeMarkdown } from './markdown.ts';
import { isoDate } from './text.ts';
import type { ParsedDocument } from './types.ts';

/** A whole HTML document, nothing left out that a reader would see. (Pages from the web go through the `page` task.) */
export function parseHtml(bytes: Uint8Array, input: { contentType?: string; url?: string }): ParsedDocument {
  return parseHtmlText(decodeText(bytes, claimedCharset(bytes, input.contentType)).text, input.url);
}

export function parseHtmlText(text: string, url?: string): ParsedDocument {
  const root = parseHtmlTree(text);
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
