import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';

/** A page that a sitemap names. When it changed and how often it does are as the site wrote them. */
type SitemapPage = { url: string; lastModified: string | undefined; changeFrequency: string | undefined };

/** One entry of a sitemap: a page, or (in an index) another sitemap. */
type SitemapEntry = SitemapPage & { kind: 'page' | 'sitemap' };

/** The bounds of one walk through a site's sitemaps. */
export const sitemapLimits = {
  filesMax: 50,
  depthMax: 4,
  bytesMax: 50 * 1024 * 1024,
  entryCharactersMax: 16_384,
} as const;

/** Fetches one sitemap; undefined when it cannot be had. */
type SitemapLoader = (url: string) => Promise<AsyncIterable<Uint8Array> | undefined>;

/**
 * The pages that the sitemaps at `starts` name, nested ones included, in order and each once, `pagesMax` at most.
 * A sitemap that is broken, huge or refers to itself ends early; it never fails the walk.
 */
export async function* walkSitemaps(
  starts: readonly string[],
  load: SitemapLoader,
  pagesMax: number,
): AsyncGenerator<SitemapPage> {
  const queue = starts.map((url) => ({ url, depth: 1 }));
  const seenFiles = new Set(starts);
  const seenPages = new Set<string>();
  let files = 0;
  for (let next = queue.shift(); next !== undefined && files < sitemapLimits.filesMax; next = queue.shift()) {
    files += 1;
    try {
      const body = await load(next.url);
      if (body === undefined) continue;
      for await (const entry of readSitemap(body)) {
        if (!URL.canParse(entry.url, next.url)) continue;
        const url = new URL(entry.url, next.url).href;
        if (entry.kind === 'sitemap') {
          const fresh =
            !seenFiles.has(url) && queue.length < sitemapLimits.filesMax && next.depth < sitemapLimits.depthMax;
          if (fresh) queue.push({ url, depth: next.depth + 1 });
          seenFiles.add(url);
        } else if (!seenPages.has(url)) {
          seenPages.add(url);
          yield { url, lastModified: entry.lastModified, changeFrequency: entry.changeFrequency };
          if (seenPages.size >= pagesMax) return;
        }
      }
    } catch {
      // Half a sitemap is still a hint; the pages found so far were handed on already.
    }
  }
}

/**
 * Entries of one sitemap as they arrive: XML (urlset or sitemapindex) or plain text with one URL per line, gzipped or
 * not. A forward scan for the few elements that matter, not an XML parser: no entities are defined, nothing is nested,
 * and memory stays at one entry, so it is safe outside the parser pool.
 */
async function* readSitemap(body: AsyncIterable<Uint8Array>): AsyncGenerator<SitemapEntry> {
  let text = '';
  let bytes = 0;
  let format: 'xml' | 'text' | undefined;
  const decoder = new TextDecoder('utf-8');
  for await (const chunk of inflated(body)) {
    bytes += chunk.byteLength;
    if (bytes > sitemapLimits.bytesMax) return;
    text += decoder.decode(chunk, { stream: true });
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

async function* inflated(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return;
  const whole = async function* (): AsyncGenerator<Uint8Array> {
    yield first.value;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
  };
  try {
    if (first.value[0] !== 0x1f || first.value[1] !== 0x8b) yield* whole();
    else yield* gunzipped(whole());
  } finally {
    await iterator.return?.();
  }
}

async function* gunzipped(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip();
  // The reader of `gunzip` sees every error; `compose` throws some of them where nobody can catch them.
  pipeline(Readable.from(bytes, { objectMode: false }), gunzip, () => {});
  yield* gunzip as AsyncIterable<Uint8Array>;
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
    // With the prefix of its parent: <image:loc> is another thing.
    const textOf = (name: string) => element(inner, prefix + name);
    const url = textOf('loc');
    if (url !== undefined)
      entries.push({ kind, url, lastModified: textOf('lastmod'), changeFrequency: textOf('changefreq') });
    open.lastIndex = close.end;
    end = close.end;
  }
  // An opening tag may be cut in two by the chunk's end.
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
