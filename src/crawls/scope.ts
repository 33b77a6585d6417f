import { isMenuScript } from '../content/menu-files.ts';
import { canonical } from '../content/robots-file.ts';
import { isGeneratedPage } from './generated-pages.ts';
import { matchesPathPattern } from './robots.ts';

/** What a crawl may visit. Paths are robots.txt patterns: a prefix, `*` for anything, a final `$` for the end. */
type CrawlScope = {
  /** The crawl's start page after its redirects. Its host is the host of the crawl. */
  start: string;
  includePaths: readonly string[];
  excludePaths: readonly string[];
  /** Maximum distance in links from the start page (0); undefined: unlimited. */
  depthMax: number | undefined;
  allowSubdomains: boolean;
};

/** Why a URL is left out, or undefined if it is included. */
type OutOfScope = 'other_host' | 'path' | 'depth' | 'trap' | 'generated' | 'not_a_page';

/** Checks a normalised URL found `depth` links from the start. */
export function checkScope(scope: CrawlScope, address: string, depth: number): OutOfScope | undefined {
  const url = new URL(address);
  if (!sameSite(new URL(scope.start), url, scope.allowSubdomains)) return 'other_host';
  if (scope.depthMax !== undefined && depth > scope.depthMax) return 'depth';
  if (isAsset(url.pathname) && !isMenuScript(url.pathname)) return 'not_a_page';
  if (looksEndless(url)) return 'trap';
  const path = url.pathname + url.search;
  const matches = (pattern: string): boolean => matchesPathPattern(canonical(pattern), path);
  if (scope.excludePaths.some(matches)) return 'path';
  if (scope.includePaths.length > 0 && !scope.includePaths.some(matches)) return 'path';
  if (!isGeneratedPage(url.pathname)) return undefined;
  // A pattern that names such pages asks for them.
  const isNamed = scope.includePaths.some((pattern) => isGeneratedPage(pattern.replace(/\$$/, '')) && matches(pattern));
  return isNamed ? undefined : 'generated';
}

/** Whether host and port are the same. http and https count as equal, and a leading "www." is ignored. */
function sameSite(start: URL, url: URL, allowSubdomains: boolean): boolean {
  if (url.port !== start.port) return false;
  if (url.hostname === start.hostname) return true;
  const isAddress = /^\[|^[\d.]+$/.test(start.hostname);
  const root = start.hostname.replace(/^www\./, '');
  return allowSubdomains && !isAddress && (url.hostname === root || url.hostname.endsWith(`.${root}`));
}

/** Files without text. Documents (PDF, office, text) count as pages and are not listed. */
function isAsset(path: string): boolean {
  const extension = /\.([a-z0-9]{1,5})$/i.exec(path)?.[1]?.toLowerCase();
  return extension !== undefined && assetExtensions.has(extension);
}

const assetExtensions = new Set(
  [
    'png jpg jpeg gif webp avif svg ico bmp tif tiff heic psd ai eps',
    'css js mjs map woff woff2 ttf otf eot wasm',
    'mp3 m4a ogg oga wav flac aac mp4 m4v webm mov avi mkv wmv flv',
    'zip gz tgz bz2 xz 7z rar tar zst dmg iso exe msi deb rpm apk jar bin',
  ].flatMap((line) => line.split(' ')),
);

/** Paths that relative links extend without end: one segment occurs four times, or there are more than 30 segments. */
function looksEndless(url: URL): boolean {
  const segments = url.pathname.split('/').filter((segment) => segment !== '');
  if (segments.length > 30 || url.href.length > 2_000) return true;
  const counts = new Map<string, number>();
  for (const segment of segments) {
    const count = (counts.get(segment) ?? 0) + 1;
    if (count > 3) return true;
    counts.set(segment, count);
  }
  return false;
}
