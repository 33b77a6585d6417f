import type { Browser, BrowserContext, Frame, Page, Route } from 'playwright-core';
import { RenderError } from './errors.ts';
import type { Passage } from './forward-proxy.ts';
import { type RenderedDocument, readDocument } from './read-document.ts';

/** Limits of one page in the renderer and on the network. */
export const pageBounds = {
  bytesMax: 20 * 1024 * 1024,
  connectionsMax: 200,
  requestsMax: 300,
  navigationsMax: 10,
  popupsMax: 5,
  elementsMax: 300_000,
  /** The number of frames in a page, and the depth of frames in frames. */
  framesMax: 20,
  frameDepthMax: 3,
  /** The size of the rendered page with its frames. */
  charactersMax: 10 * 1024 * 1024,
};
export type PageBounds = typeof pageBounds;

/** The shares of the page's time for loading and for its scripts. The rest is for reading it. */
const loadShare = 0.5;
const settleShare = 0.25;

export type RenderRequest = {
  url: string;
  timeoutMs: number;
  bounds: PageBounds;
  /** Whether the page may request a URL. The guard of each connection applies as well. */
  mayRequest: (url: URL, isNavigation: boolean) => boolean | Promise<boolean>;
};

export type RenderedPage = {
  /** The URL of the page after redirects and its own navigation. */
  url: string;
  html: string;
  /** Parts that are missing because the page exceeded a limit. */
  truncated: string[];
};

/** Resources that add nothing to the text of a page. */
const unreadTypes = new Set(['image', 'media', 'font', 'manifest', 'ping']);

/** Removes routes to the network that bypass a proxy. The browser's own policy closes them as well (renderer.ts). */
const removeDirectRoutes = `for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'RTCDataChannel', 'WebTransport'])
  delete globalThis[name];`;

/** Renders one page in its own context, with network access only through the proxy. The caller must close `context`. */
export async function renderPage(
  context: BrowserContext,
  request: RenderRequest,
  passage: Passage,
): Promise<RenderedPage> {
  await context.addInitScript(removeDirectRoutes);
  const page = await context.newPage();
  const watch = new PageWatch(page, request);
  await context.route('**/*', (route) => watch.decide(route));
  const crashed = new Promise<never>((_resolve, reject) => {
    page.once('crash', () => reject(new RenderError('The page exceeded the memory limit of the renderer.')));
    // The page closed itself, or Chromium ended.
    page.once('close', () => reject(new RenderError('The page was closed.', { isTransient: true })));
  });
  return await Promise.race([crashed, show(page, request, passage, watch)]);
}

export function contextOptions(passage: Passage, proxy: string, userAgent: string) {
  const { username, password } = passage;
  return {
    proxy: { server: proxy, username, password },
    serviceWorkers: 'block',
    acceptDownloads: false,
    locale: 'en-US',
    userAgent,
    viewport: { width: 1_280, height: 1_600 },
  } satisfies Parameters<Browser['newContext']>[0];
}

async function show(page: Page, request: RenderRequest, passage: Passage, watch: PageWatch): Promise<RenderedPage> {
  const { url, timeoutMs, bounds } = request;
  await page.goto(url, { waitUntil: 'commit', timeout: timeoutMs * loadShare });
  // After a refused navigation, neither may happen: what the page shows then is all that it will show.
  await Promise.race([rest(page, timeoutMs), watch.navigatedTooOften]);
  if (watch.status < 200 || watch.status >= 300) throw new RenderError(`The page returned ${watch.status}.`);
  watch.refuseNavigation();
  const { html, isCut, isWithoutFrames } = await readHtml(page, bounds);
  const truncated: string[] = [];
  if (isCut) truncated.push(`everything after the first ${bounds.charactersMax} characters`);
  if (isWithoutFrames || watch.isWithoutFrames)
    truncated.push(`frames beyond ${bounds.framesMax}, or nested more than ${bounds.frameDepthMax} deep`);
  if (passage.isExceeded() || watch.isExceeded) truncated.push('what the page loads beyond its share of the network');
  return { url: page.url(), html, truncated };
}

/** Waits until the page is loaded and requests nothing more, within its time. */
async function rest(page: Page, timeoutMs: number): Promise<void> {
  await page.waitForLoadState('load', { timeout: timeoutMs * loadShare }).catch(ignoreTimeout);
  // A page with long polls never becomes idle. It is then read in its current state.
  await page.waitForLoadState('networkidle', { timeout: timeoutMs * settleShare }).catch(ignoreTimeout);
}

/** Reads the document. Repeats this once if the page has navigated meanwhile. */
async function readHtml(page: Page, bounds: PageBounds): Promise<RenderedDocument> {
  for (let left = readsMax - 1; ; left--) {
    try {
      return await readDocument(page, bounds);
    } catch (error) {
      if (left === 0 || error instanceof RenderError) throw error;
    }
  }
}

const readsMax = 3;

/** Watches a page while it is rendered, and refuses what it is not allowed to do. */
class PageWatch {
  isExceeded = false;
  /** The status of the last document that the page showed. */
  status = 0;
  /** Resolves when the page may navigate no more. */
  readonly navigatedTooOften: Promise<void>;
  readonly #endNavigation: () => void;
  readonly #page: Page;
  readonly #bounds: PageBounds;
  readonly #mayRequest: RenderRequest['mayRequest'];
  isWithoutFrames = false;
  #frames = 0;
  #mayNavigate = true;
  #requests = 0;
  #navigations = 0;
  #popups = 0;

  constructor(page: Page, { bounds, mayRequest }: RenderRequest) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.navigatedTooOften = promise;
    this.#endNavigation = resolve;
    this.#page = page;
    this.#bounds = bounds;
    this.#mayRequest = mayRequest;
    page.on('response', (response) => {
      if (response.request().isNavigationRequest() && response.frame() === page.mainFrame())
        this.status = response.status();
    });
    // Closes windows that the page opens, and those that they open.
    page.context().on('page', (popup) => this.#closePopup(popup));
    page.on('dialog', (dialog) => void dialog.dismiss().catch(() => {}));
  }

  /** From now on, the page may not navigate. */
  refuseNavigation(): void {
    this.#mayNavigate = false;
  }

  /** Decides about a request from the page or from a window that it opened. The page may be closed meanwhile. */
  async decide(route: Route): Promise<void> {
    const isAllowed = await this.#isAllowed(route).catch(() => false);
    // An empty response leaves the page unchanged. A failed navigation would show an error page of the browser.
    const refuse = () => (route.request().isNavigationRequest() ? route.fulfill({ status: 204 }) : route.abort());
    await (isAllowed ? route.continue() : refuse()).catch(() => {});
  }

  async #isAllowed(route: Route): Promise<boolean> {
    const request = route.request();
    this.#requests += 1;
    if (this.#requests > this.#bounds.requestsMax) this.isExceeded = true;
    if (this.isExceeded || unreadTypes.has(request.resourceType())) return false;
    const isInFrame = request.isNavigationRequest() && request.frame() !== this.#page.mainFrame();
    if (isInFrame && !this.#mayShow(request.frame())) return false;
    const isNavigation = request.isNavigationRequest() && !isInFrame;
    if (isNavigation && !this.#mayNavigate) return false;
    if (isNavigation) this.#navigations += 1;
    if (this.#navigations > this.#bounds.navigationsMax) {
      this.isExceeded = true;
      this.#endNavigation();
    }
    const url = new URL(request.url());
    const isWeb = url.protocol === 'http:' || url.protocol === 'https:';
    return !this.isExceeded && isWeb && (await this.#mayRequest(url, isNavigation));
  }

  /** A frame is part of its page. Like a script, it may come from another site. */
  #mayShow(frame: Frame): boolean {
    if (!this.#mayNavigate || frame.page() !== this.#page) return false;
    let depth = 0;
    for (let around = frame.parentFrame(); around; around = around.parentFrame()) depth += 1;
    this.#frames += 1;
    if (this.#frames <= this.#bounds.framesMax && depth <= this.#bounds.frameDepthMax) return true;
    this.isWithoutFrames = true;
    return false;
  }

  #closePopup(popup: Page): void {
    this.#popups += 1;
    if (this.#popups > this.#bounds.popupsMax) void this.#page.close().catch(() => {});
    void popup.close().catch(() => {});
  }
}

function ignoreTimeout(error: Error): void {
  if (error.name !== 'TimeoutError') throw error;
}
