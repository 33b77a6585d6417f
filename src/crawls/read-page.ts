import { hash } from 'node:crypto';
import { RenderError } from '../content/browser/errors.ts';
import type { Renderer } from '../content/browser/renderer.ts';
import { FetchError } from '../content/fetch/errors.ts';
import type { Fetcher, FetchResponse } from '../content/fetch/guarded-fetch.ts';
import { isPageType, mediaTypeOf } from '../content/media-type.ts';
import { isMenuScript, mayBeMenuPage } from '../content/menu-files.ts';
import { writeKeys } from '../content/page-boxes.ts';
import type { PageMetadata } from '../content/parse/html/metadata.ts';
import type { ParsedPage } from '../content/parse/html/page.ts';
import type { ParserPool, RunOptions } from '../content/parse/pool/pool.ts';
import { needsBrowser, type OcrReport, type PageReport, ParseError, type ParseInput } from '../content/parse/types.ts';
import type { Slots } from '../fairness/slots.ts';
import type { Clock } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import { type BodyMemory, type HeldBody, MemoryCrowded } from './body-memory.ts';
import { sortLinks } from './frontier.ts';
import { saysItIsGenerated } from './generated-pages.ts';
import type { HostGate } from './host-gate.ts';
import { normalizeUrl } from './page-url.ts';
import { isRetryable, retryDelayMs } from './retry.ts';
import type { RobotsRules } from './robots.ts';
import type { PageState, QueuedPage } from './store.ts';
import type { Crawl, CrawledPage, FailureReason, PageFailure } from './types.ts';

export type ReaderDeps = {
  fetcher: Fetcher;
  parser: ParserPool;
  gate: HostGate;
  /** Limits concurrent work on fetched pages. */
  workSlots: Slots;
  bodies: BodyMemory;
  clock: Clock;
  /** Renders pages that have no text until their scripts run. Undefined unless configured. */
  renderer?: Renderer | undefined;
};

/** The outcome of one attempt to read a page. */
export type PageOutcome =
  | {
      kind: 'page';
      page: CrawledPage;
      /** The page's normalised URL after redirects. */
      finalUrl: string;
      canonical: string;
      /**
       * For a page that its server reports as unchanged: its known state. The links are normalised, and empty if the
       * page asks crawlers not to follow them.
       */
      state: PageState;
    }
  | { kind: 'failed'; failure: PageFailure; gone: boolean }
  | { kind: 'retry'; delayMs: number }
  | {
      kind: 'left_out';
      reason: 'robots' | 'redirected_away' | 'generated';
      fetched: boolean;
      /** What a menu leads to, normalised. */
      links?: string[];
    };

/** A page that sends its readers on to another one, as a redirect does. */
type Moved = { kind: 'moved'; to: string };

/** A page's state in the collection. A page that the consumer lacks (`isHeld` false) is requested unconditionally. */
export type KnownPage = { state: PageState; isHeld: boolean };

type ReadOptions = {
  robotsOf: (url: URL) => Promise<RobotsRules>;
  known: KnownPage | undefined;
  signal: AbortSignal;
};

const crawlBytesMax = 10 * 1024 * 1024;
const crowdedRetryMs = 5_000;
/** How often a page may lead on to another one in its text. */
const movesMax = 5;

/**
 * Fetches and reads one page: robots.txt, the host's pace, redirects, conditional request, Markdown. Whatever the
 * site does is an outcome; throws only if `signal` is aborted or on an internal error.
 */
export async function readPage(
  deps: ReaderDeps,
  crawl: Crawl,
  queued: QueuedPage,
  options: ReadOptions,
): Promise<PageOutcome> {
  const url = new URL(queued.url);
  const isStart = queued.depth === 0;
  try {
    const robots = await readRobots(url, queued, options);
    if (!robots.allows(url)) {
      if (!isStart) return { kind: 'left_out', reason: 'robots', fetched: false };
      return failedPage('fetch_failed', 'robots_disallowed', "The site's robots.txt disallows this page.");
    }
    const fetchOnce = async (from: URL, condition: PageState | undefined): Promise<Fetched> => {
      const { crawlDelayMs } = await options.robotsOf(from);
      return deps.gate.run({ name: from.host, app: crawl.appId }, crawlDelayMs, options.signal, () =>
        fetchWhole(deps, crawl, queued, from, condition, options),
      );
    };
    const condition = options.known?.isHeld ? options.known.state : undefined;
    let fetched = await fetchOnce(url, condition);
    // Validators belong to one URL. If a redirect now leads to another URL, a 304 from there says nothing about this
    // page.
    if (fetched.response.status === 304 && normalizeUrl(fetched.response.url) !== condition?.finalUrl)
      fetched = await fetchOnce(url, undefined);
    for (let moves = 0; ; moves += 1) {
      const { response } = fetched;
      let target: URL;
      try {
        const judged = await deps.workSlots.run(crawl.appId, () => judge(deps, crawl, queued, fetched, options));
        if (judged.kind !== 'moved') return judged;
        target = new URL(judged.to);
      } catch (error) {
        if (!isWithoutText(error) || deps.renderer === undefined) throw error;
        return await readRendered(deps, deps.renderer, crawl, queued, response, options);
      } finally {
        fetched.free();
      }
      if (moves === movesMax)
        throw new FetchError('too_many_redirects', `The page leads on to another one more than ${movesMax} times.`);
      if (!(await mayFollow(deps, crawl, queued, target, options))) return movedAway(queued);
      fetched = await fetchOnce(target, condition?.finalUrl === normalizeUrl(target.href) ? condition : undefined);
    }
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof MemoryCrowded) return { kind: 'retry', delayMs: crowdedRetryMs };
    if (error instanceof FetchError) return fetchFailure(error, queued, deps.clock);
    if (error instanceof ParseError) return failedPage(error.reason, error.code, error.message);
    if (error instanceof RenderError) return renderFailure(error, queued, deps.clock);
    throw error;
  }
}

/**
 * An unreachable robots.txt closes a host for now. That is no reason to remove a page that the consumer has, so the
 * page counts as failed and the consumer keeps it.
 */
async function readRobots(url: URL, queued: QueuedPage, { robotsOf, known }: ReadOptions): Promise<RobotsRules> {
  const rules = await robotsOf(url);
  if (rules.isUnavailable && known?.isHeld && queued.depth > 0)
    throw new FetchError('robots_unavailable', "The host's robots.txt could not be read.");
  return rules;
}

type Fetched = HeldBody & { response: FetchResponse };

async function fetchWhole(
  deps: ReaderDeps,
  crawl: Crawl,
  queued: QueuedPage,
  from: URL,
  condition: PageState | undefined,
  options: ReadOptions,
): Promise<Fetched> {
  const headers: Record<string, string> = {
    accept: 'text/html,application/xhtml+xml,application/pdf;q=0.9,*/*;q=0.8',
    'accept-language': '*',
  };
  if (condition?.etag) headers['if-none-match'] = condition.etag;
  if (condition?.lastModified) headers['if-modified-since'] = condition.lastModified;
  const response = await deps.fetcher.fetch(from.href, {
    headers,
    lane: crawl.appId,
    signal: options.signal,
    bytesMax: crawlBytesMax,
    mayFollow: (target) => mayFollow(deps, crawl, queued, target, options),
  });
  const wanted = response.status >= 200 && response.status < 300 && response.stopped === undefined;
  if (wanted) return { response, ...(await deps.bodies.read(crawl.appId, response.body, options.signal)) };
  response.discard();
  return { response, bytes: new Uint8Array(), free: () => {} };
}

/** Whether a page may lead on to this one. The fetch itself refuses an unsafe URL. */
async function mayFollow(
  { fetcher }: ReaderDeps,
  crawl: Crawl,
  queued: QueuedPage,
  target: URL,
  options: ReadOptions,
): Promise<boolean> {
  // The start page's redirects determine the site. Every other page has to stay on it.
  if (queued.depth > 0 && !isInside(crawl, target)) return false;
  if (!fetcher.check(target.href).ok) return true;
  return (await readRobots(target, queued, options)).allows(target);
}

function movedAway({ depth }: QueuedPage): PageOutcome {
  if (depth > 0) return { kind: 'left_out', reason: 'redirected_away', fetched: true };
  const message = "The site's robots.txt disallows the page that this page redirects to.";
  return failedPage('fetch_failed', 'robots_disallowed', message);
}

function isInside(crawl: Crawl, target: URL): boolean {
  const url = normalizeUrl(target.href);
  return url !== undefined && sortLinks(crawl, [url], 0).pages.length > 0;
}

async function judge(
  deps: ReaderDeps,
  crawl: Crawl,
  queued: QueuedPage,
  { response, bytes }: Fetched,
  options: ReadOptions,
): Promise<PageOutcome | Moved> {
  const { status, headers } = response;
  if (response.stopped !== undefined) return movedAway(queued);
  const finalUrl = normalizeUrl(response.url) ?? queued.url;
  const known = options.known?.isHeld ? options.known.state : undefined;
  if (status === 304 && finalUrl === known?.finalUrl) return unchanged(queued, known);
  if (status < 200 || status >= 300) {
    const delayMs = isRetryable(status)
      ? retryDelayMs(queued.tries + 1, headers['retry-after'], deps.clock.now())
      : undefined;
    if (delayMs !== undefined) return { kind: 'retry', delayMs };
    const gone = status === 404 || status === 410;
    return { ...failedPage('fetch_failed', `http_${status}`, `The page returned ${status}.`), gone };
  }
  const contentType = headers['content-type'] ?? '';
  const body: Body = {
    bytes,
    contentType,
    contentEncoding: headers['content-encoding'] ?? '',
    decodedBytesMax: crawlBytesMax,
    url: response.url,
  };
  const run = { signal: options.signal, lane: crawl.appId };
  const { pathname } = new URL(finalUrl);
  if (queued.depth > 0 && isMenuScript(pathname)) {
    const links = await deps.parser.run<string[]>('menu', body, run);
    return { kind: 'left_out', reason: 'generated', fetched: true, links: normalized(links) };
  }
  const html = isPageType(contentType) ? await readHtml(deps.parser, body, run) : undefined;
  if (html?.refresh !== undefined) return { kind: 'moved', to: html.refresh };
  if (queued.depth > 0 && html?.isListOfLinks && mayBeMenuPage(pathname))
    return { kind: 'left_out', reason: 'generated', fetched: true, links: html.links };
  if (queued.depth > 0 && html !== undefined && saysItIsGenerated(pathname, html))
    return { kind: 'left_out', reason: 'generated', fetched: true };
  const read =
    html ?? (await readDocument(deps.parser, body, filenameOf(headers['content-disposition'], body.url), run));
  return readOutcome(queued, known, read, {
    finalUrl,
    contentType,
    etag: headers.etag ?? null,
    lastModified: headers['last-modified'] ?? null,
    nofollow: isNofollow(headers),
  });
}

/** Reads a page in the renderer. The request is never conditional, because the text comes from other URLs, too. */
async function readRendered(
  deps: ReaderDeps,
  renderer: Renderer,
  crawl: Crawl,
  queued: QueuedPage,
  response: FetchResponse,
  options: ReadOptions,
): Promise<PageOutcome> {
  const url = new URL(response.url);
  const { signal } = options;
  const lane = crawl.appId;
  const { crawlDelayMs } = await readRobots(url, queued, options);
  const rendered = await renderer.render({
    url: url.href,
    lane,
    signal,
    inTurn: (render) => deps.gate.run({ name: url.host, app: lane }, crawlDelayMs, signal, render),
    mayRequest: async (target, isNavigation) => {
      if (isNavigation && queued.depth > 0 && !isInside(crawl, target)) return false;
      // robots.txt applies to hosts that are crawled. The hosts of the page's own files and services are not.
      if (!isNavigation && target.host !== url.host) return true;
      return (await readRobots(target, queued, options)).allows(target);
    },
  });
  const contentType = 'text/html; charset=utf-8';
  const bytes = Buffer.from(rendered.html);
  const body = { bytes, contentType, url: rendered.url, contentEncoding: '', decodedBytesMax: bytes.length };
  const read = await deps.workSlots.run(lane, () => readHtml(deps.parser, body, { signal, lane })).catch(nameEmptyPage);
  if (read === undefined) throw new RenderError('The renderer did not return a web page.');
  const truncated = [...(read.truncated ?? []), ...rendered.truncated];
  const known = options.known?.isHeld ? options.known.state : undefined;
  return readOutcome(
    queued,
    known,
    { ...read, truncated: truncated.length > 0 ? truncated : undefined },
    {
      finalUrl: normalizeUrl(rendered.url) ?? queued.url,
      contentType,
      etag: null,
      lastModified: null,
      nofollow: isNofollow(response.headers),
    },
  );
}

function isNofollow(headers: FetchResponse['headers']): boolean {
  return /(?:^|[\s,:])(?:nofollow|none)(?:$|[\s,;])/i.test(headers['x-robots-tag'] ?? '');
}

function nameEmptyPage(error: unknown): never {
  if (!isWithoutText(error)) throw error;
  throw new RenderError('The page has no text, even after its scripts have run.');
}

function isWithoutText(error: unknown): boolean {
  return error instanceof ParseError && error.code === 'needs_browser';
}

type Response = Pick<PageState, 'finalUrl' | 'etag' | 'lastModified'> & { contentType: string; nofollow: boolean };

function readOutcome(
  queued: QueuedPage,
  known: PageState | undefined,
  read: Read,
  { finalUrl, etag, lastModified, contentType, nofollow }: Response,
): PageOutcome {
  const facts = {
    title: read.title,
    description: read.description,
    language: read.language,
    published: read.published,
    report: read.report,
    ocr: read.ocr,
    reader: read.reader,
    contentType: mediaTypeOf(contentType),
    truncated: read.truncated,
  };
  const state: PageState = {
    url: queued.url,
    finalUrl,
    canonical: canonicalOf(read.canonical, finalUrl),
    etag,
    lastModified,
    contentHash: hash('sha256', read.markdown, 'buffer'),
    pageHash: hash(
      'sha256',
      JSON.stringify([read.markdown, facts, ...(read.fragments.length > 0 ? [read.fragments] : [])]),
      'buffer',
    ),
    links: nofollow ? [] : read.links,
    boxes: writeKeys(read.boxes),
  };
  const same = known?.finalUrl === finalUrl && known.pageHash.equals(state.pageHash);
  const change = known === undefined ? 'new' : same ? 'unchanged' : 'changed';
  return {
    kind: 'page',
    finalUrl,
    canonical: state.canonical,
    state,
    page: {
      ...{ url: finalUrl, isStart: queued.depth === 0, change },
      ...{ markdown: read.markdown, fragments: read.fragments, boxes: read.boxes, ...facts },
    },
  };
}

function unchanged(queued: QueuedPage, known: PageState): PageOutcome {
  const none = undefined;
  const facts = {
    title: none,
    description: none,
    language: none,
    published: none,
    report: none,
    ocr: none,
    reader: none,
    truncated: none,
  };
  const { finalUrl, canonical } = known;
  const isStart = queued.depth === 0;
  const page = {
    url: finalUrl,
    isStart,
    change: 'unchanged' as const,
    markdown: '',
    fragments: [],
    boxes: [],
    contentType: '',
    ...facts,
  };
  return { kind: 'page', page, finalUrl, canonical, state: known };
}

type Read = Omit<PageMetadata, 'nofollow'> &
  Pick<ParsedPage, 'markdown' | 'fragments' | 'boxes'> &
  Partial<Pick<ParsedPage, 'isListOfLinks' | 'refresh'>> & {
    links: string[];
    report: PageReport | undefined;
    ocr: OcrReport | undefined;
    reader: string | undefined;
    truncated: string[] | undefined;
  };

type Body = ParseInput & { contentType: string; url: string };

/** Undefined if the response is not a web page. */
async function readHtml(parser: ParserPool, body: Body, run: RunOptions): Promise<Read | undefined> {
  const parsed = await parser.run<ParsedPage | null>('page', body, run);
  if (parsed === null) return undefined;
  if (parsed.needsBrowser && parsed.refresh === undefined) throw needsBrowser();
  const links = parsed.nofollow ? [] : parsed.links.filter((link) => !link.nofollow);
  return {
    ...parsed,
    report: { page_type: parsed.pageType, structured: parsed.structured },
    ocr: undefined,
    reader: undefined,
    truncated: parsed.truncated,
    links: normalized(links.map(({ url }) => url)),
  };
}

/** Each URL once: a page may have hundreds of links to its own sections, and normalising a URL takes time. */
function normalized(links: readonly string[]): string[] {
  const withoutFragments = new Set(links.map((url) => url.split('#', 1)[0] ?? ''));
  return [...new Set([...withoutFragments].flatMap((url) => normalizeUrl(url) ?? []))];
}

async function readDocument(
  parser: ParserPool,
  body: Body,
  filename: string | undefined,
  run: RunOptions,
): Promise<Read> {
  const input = { ...body, ...defined({ filename }) };
  const document = await parser.parse(input, { ...run, patient: true });
  return {
    markdown: document.markdown,
    fragments: [],
    boxes: [],
    title: document.title ?? filename,
    description: undefined,
    language: document.language,
    published: document.created,
    canonical: undefined,
    noindex: false,
    isSearch: false,
    links: normalized(document.links ?? []),
    report: document.page,
    ocr: document.ocr,
    reader: document.reader,
    truncated: document.truncated,
  };
}

function filenameOf(disposition: string | undefined, url: string): string | undefined {
  const named = /filename\*?=(?:UTF-8'')?"?([^";]{1,200})"?/i.exec(disposition ?? '')?.[1];
  const last = named ?? new URL(url).pathname.split('/').at(-1);
  if (last === undefined || last === '') return undefined;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

/**
 * The page's canonical URL, if it is on the same site, otherwise its own. A folder has the URL of its index file, too:
 * without the name of that file, both are one page if their text is the same.
 */
function canonicalOf(canonical: string | undefined, finalUrl: string): string {
  const normal = canonical === undefined ? undefined : normalizeUrl(canonical);
  const url = normal !== undefined && new URL(normal).hostname === new URL(finalUrl).hostname ? normal : finalUrl;
  return url.replace(indexFile, '/');
}

const indexFile = /\/(?:index|default)\.(?:html?|php|aspx?|jsp)$/i;

/** Whether the failure may be temporary. A host name that does not exist is not. */
function isTemporary({ code, cause }: FetchError): boolean {
  if (code !== 'dns_failed') return code === 'connect_failed' || code === 'bad_response';
  const reason = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return reason !== undefined && reason !== 'ENOTFOUND' && reason !== 'ENODATA';
}

function fetchFailure(error: FetchError, queued: QueuedPage, clock: Clock): PageOutcome {
  const delayMs = isTemporary(error) ? retryDelayMs(queued.tries + 1, undefined, clock.now()) : undefined;
  if (delayMs !== undefined) return { kind: 'retry', delayMs };
  return failedPage(error.code === 'timeout' ? 'timeout' : 'fetch_failed', error.code, error.message);
}

function renderFailure(error: RenderError, queued: QueuedPage, clock: Clock): PageOutcome {
  const delayMs = error.isTransient ? retryDelayMs(queued.tries + 1, undefined, clock.now()) : undefined;
  return delayMs === undefined
    ? failedPage('extraction_failed', 'needs_browser', error.message)
    : { kind: 'retry', delayMs };
}

export function failedPage(reason: FailureReason, code: string, message: string): PageOutcome & { kind: 'failed' } {
  return { kind: 'failed', failure: { reason, code, message }, gone: false };
}
