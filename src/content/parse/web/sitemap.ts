import { type SitemapEntry, sitemapLimits } from '../../sitemap-file.ts';
import { decodeBody } from './decode.ts';

const pieceBytes = 64 * 1024;

/**
 * Reads the entries of one sitemap, at most `entriesMax`: XML (urlset or sitemapindex) or plain text with one URL per
 * line, gzipped or not. This is a forward scan for the few relevant elements, not an XML parser: it expands no
 * entities, tracks no nesting, and holds only one entry in memory in addition to the text. A damaged or oversized
 * sitemap ends early.
 */
export async function parseSitemap(bytes: Uint8Array, entriesMax: number): Promise<SitemapEntry[]> {
  const isGzipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const contentEncoding = isGzipped ? 'gzip' : '';
  const whole = await decodeBody(bytes, { contentEncoding, bytesMax: sitemapLimits.bytesMax, cut: true });
  const entries: SitemapEntry[] = [];
  for (const entry of scan(whole)) {
    entries.push(entry);
    if (entries.length >= entriesMax) break;
  }
  return entries;
}

function* scan(bytes: Uint8Array): Generator<SitemapEntry> {
  let text = '';
  let format: 'xml' | 'text' | undefined;
  const decoder = new TextDecoder('utf-8');
  for (let at = 0; at < bytes.byteLength; at += pieceBytes) {
    text += decoder.decode(bytes.subarray(at, at + pieceBytes), { stream: true });
    format ??= formatOf(text);
    if (format === undefined) {
      text = text.trimStart();
      continue;
    }
    const { entries, rest } = format === 'xml' ? takeXml(text) : takeLines(text);
    yield* entries;
    text = rest.length > sitemapLimits.entryCharactersMax ? rest.slice(-sitemapLimits.entryCharactersMax) : rest;
  }
  if (format === 'text' || (format === undefined && text.trim() !== '')) yield* takeLines(`${text}\n`).entries;
}

function formatOf(text: string): 'xml' | 'text' | undefined {
  const start = text.trimStart().replace(/^\uFEFF/, '');
  if (start === '') return undefined;
  return start.startsWith('<') ? 'xml' : 'text';
}

function takeXml(text: string): { entries: SitemapEntry[]; rest: string } {
  const entries: SitemapEntry[] = [];
  const open = /<((?:[\w-]+:)?)(url|sitemap)(?:\s[^<>]*)?>/g;
  let end = 0;
  for (let found = open.exec(text); found !== null; found = open.exec(text)) {
    const [, prefix = '', name = ''] = found;
    const kind = name === 'sitemap' ? 'sitemap' : 'page';
    const close = closing(text, prefix + name, open.lastIndex);
    if (close === undefined) return { entries, rest: text.slice(found.index) };
    const inner = text.slice(open.lastIndex, close.start);
    // Includes the prefix of the parent: <image:loc> is a different element.
    const textOf = (name: string) => element(inner, prefix + name);
    const url = textOf('loc');
    if (url !== undefined)
      entries.push({ kind, url, lastModified: textOf('lastmod'), changeFrequency: textOf('changefreq') });
    open.lastIndex = close.end;
    end = close.end;
  }
  // The end of the chunk may split an opening tag.
  const cut = text.lastIndexOf('<');
  return { entries, rest: text.slice(Math.max(end, cut)) };
}

function closing(text: string, name: string, from: number): { start: number; end: number } | undefined {
  const close = new RegExp(`</${name}\\s*>`, 'g');
  close.lastIndex = from;
  const found = close.exec(text);
  return found === null ? undefined : { start: found.index, end: close.lastIndex };
}

function element(text: string, name: string): string | undefined {
  const found = new RegExp(`<${name}(?:\\s[^<>]*)?>\\s*(?:<!\\[CDATA\\[([^\\]]*)|([^<]*))`).exec(
    text.slice(0, sitemapLimits.entryCharactersMax),
  );
  const value = (found?.[1] ?? found?.[2])?.trim();
  return value === undefined || value === '' ? undefined : unescapeXml(value);
}

function unescapeXml(text: string): string {
  const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
  return text.replace(/&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));/g, (all, name, decimal, hex) => {
    if (name) return named[name] ?? all;
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });
}

function takeLines(text: string): { entries: SitemapEntry[]; rest: string } {
  const lines = text.split(/\r\n|\r|\n/);
  const rest = lines.pop() ?? '';
  const entries = lines
    .map((line) => line.replace(/^\uFEFF/, '').trim())
    .filter((line) => /^https?:\/\//i.test(line))
    .map((url) => ({ kind: 'page' as const, url, lastModified: undefined, changeFrequency: undefined }));
  return { entries, rest };
}
