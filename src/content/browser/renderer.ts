import { lookup } from 'node:dns/promises';
import type { Browser } from 'playwright-core';
import type { Config } from '../../config/config.ts';
import { Slots } from '../../fairness/slots.ts';
import { AddOnMissing, isAddOnInstalled, missingText, openAddOn } from '../../lib/add-ons.ts';
import type { Logger } from '../../lib/log.ts';
import type { Fetcher } from '../fetch/guarded-fetch.ts';
import { RenderError } from './errors.ts';
import { ForwardProxy } from './forward-proxy.ts';
import {
  contextOptions,
  type PageBounds,
  pageBounds,
  type RenderedPage,
  type RenderRequest,
  renderPage,
} from './render-page.ts';

type RendererOptions = {
  /** The debugging address of Chromium (QUARRY_RENDERER). */
  address: string;
  /** The address of this machine that Chromium can reach (QUARRY_RENDERER_PROXY_HOST). */
  proxyHost: string;
  /** The data directory, whose add-ons include Playwright. */
  dataDir: string;
  /** The maximum number of concurrent pages of one app; the same number is reserved for other apps. */
  pages: number;
  timeoutMs: number;
  /** Overrides limits in tests. */
  bounds?: Partial<PageBounds>;
  closeTimeoutMs?: number;
  fetcher: Fetcher;
  log: Logger;
};

type Rendering = Pick<RenderRequest, 'url' | 'mayRequest'> & {
  lane: string;
  signal: AbortSignal;
  /** Runs the rendering in this page's turn at its host. */
  inTurn: (render: () => Promise<RenderedPage>) => Promise<RenderedPage>;
};

/** One Chromium and the proxy for its pages. */
type Connection = { browser: Browser; proxy: ForwardProxy; userAgent: string };
/** A connection while at least one page uses it. */
type Shared = { connected: Promise<Connection>; pages: number };

const connectTimeoutMs = 10_000;
const closeTimeoutMsDefault = 5_000;
/** Without this flag, Chromium's WebRTC sends datagrams around every proxy. */
export const webRtcFlag = '--webrtc-ip-handling-policy=disable_non_proxied_udp';

/** The configured renderer, or undefined. */
export function openRenderer(
  config: Pick<Config, 'dataDir' | 'renderer' | 'rendererProxyHost' | 'rendererPages' | 'rendererSeconds'>,
  fetcher: Fetcher,
  log: Logger,
): Renderer | undefined {
  const { renderer: address, rendererProxyHost: proxyHost, rendererPages: pages } = config;
  if (address === undefined) return undefined;
  if (!isAddOnInstalled('renderer', config.dataDir)) log.warn(missingText('renderer'));
  const timeoutMs = config.rendererSeconds * 1_000;
  return new Renderer({ address, proxyHost, pages, dataDir: config.dataDir, fetcher, log, timeoutMs });
}

/**
 * Renders pages whose text is added by scripts, in a Chromium that the operator runs. Its pages reach the network
 * only through a proxy in this process, which guards them like every other fetch.
 */
export class Renderer {
  readonly #options: RendererOptions;
  readonly #slots: Slots;
  /** The connection for new pages. */
  #current: Shared | undefined;
  readonly #connections = new Set<Shared>();

  constructor(options: RendererOptions) {
    this.#options = options;
    const refuse = () => new RenderError(tooMany, { isTransient: true });
    this.#slots = new Slots({ slots: 2 * options.pages, tooMany: refuse });
  }

  /** Throws RenderError, or the signal's reason. */
  render({ lane, signal, inTurn, ...request }: Rendering): Promise<RenderedPage> {
    const draw = () => this.#withConnection((shared) => this.#drawIn(shared, request, lane, signal));
    return this.#slots.run(lane, () => inTurn(draw), signal);
  }

  /** Connects once. Throws RenderError if Chromium cannot be used. */
  check(): Promise<string> {
    return this.#withConnection(async ({ connected }) => (await connected).browser.version());
  }

  async #drawIn(
    shared: Shared,
    request: Pick<RenderRequest, 'url' | 'mayRequest'>,
    lane: string,
    signal: AbortSignal,
  ): Promise<RenderedPage> {
    const { timeoutMs, closeTimeoutMs = closeTimeoutMsDefault } = this.#options;
    const { browser, proxy, userAgent } = await shared.connected;
    const bounds = { ...pageBounds, ...this.#options.bounds };
    const passage = proxy.open(lane, bounds);
    const opened = browser.newContext(contextOptions(passage, proxy.url, userAgent));
    const end = new AbortController();
    const timer = setTimeout(() => end.abort(new RenderError('The page took too long to render.')), timeoutMs);
    try {
      const rendered = opened.then((context) => renderPage(context, { ...request, timeoutMs, bounds }, passage));
      return await rejectOnAbort(AbortSignal.any([signal, end.signal]), rendered);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof RenderError) throw error;
      if (!browser.isConnected()) throw new RenderError(unreachable, { cause: error, isTransient: true });
      throw new RenderError('The renderer could not load the page.', { cause: error });
    } finally {
      clearTimeout(timer);
      passage.close();
      // A context that does not close ends with its connection, when no other page uses that.
      await within(
        closeTimeoutMs,
        opened.then((context) => context.close()),
      ).catch(() => this.#retire(shared));
    }
  }

  async #withConnection<T>(use: (shared: Shared) => Promise<T>): Promise<T> {
    this.#current ??= this.#open();
    const shared = this.#current;
    shared.pages += 1;
    try {
      return await use(shared);
    } finally {
      shared.pages -= 1;
      if (shared.pages === 0) await this.#end(shared);
    }
  }

  #open(): Shared {
    const shared: Shared = { connected: this.#connect(() => this.#retire(shared)), pages: 0 };
    this.#connections.add(shared);
    return shared;
  }

  /** Makes new pages use another connection. */
  #retire(shared: Shared): void {
    if (this.#current === shared) this.#current = undefined;
  }

  async #end(shared: Shared): Promise<void> {
    this.#retire(shared);
    this.#connections.delete(shared);
    await shared.connected.then(({ browser }) => browser.close()).catch(() => {});
  }

  async #connect(forget: () => void): Promise<Connection> {
    const { address, proxyHost, fetcher, log } = this.#options;
    const { chromium } = this.#loadClient();
    const proxy = await ForwardProxy.start(fetcher, proxyHost);
    try {
      const browser = await chromium.connectOverCDP(await numericAddress(address), {
        timeout: connectTimeoutMs,
        noDefaults: true,
      });
      browser.once('disconnected', () => {
        forget();
        void proxy.close();
      });
      await checkFlags(browser);
      const engine = `AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${browser.version().split('.')[0]}.0.0.0`;
      return { browser, proxy, userAgent: `Mozilla/5.0 ${engine} Safari/537.36 ${fetcher.userAgent}` };
    } catch (error) {
      forget();
      await proxy.close();
      if (error instanceof RenderError) throw error;
      log.warn({ err: error, renderer: address }, 'The renderer cannot be reached');
      throw new RenderError(unreachable, { cause: error, isTransient: true });
    }
  }

  /** Throws RenderError if the add-on is missing. */
  #loadClient(): typeof import('playwright-core') {
    try {
      return openAddOn('renderer', this.#options.dataDir)('playwright-core') as typeof import('playwright-core');
    } catch (error) {
      if (error instanceof AddOnMissing) throw new RenderError(error.message, { cause: error });
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#connections].map((shared) => this.#end(shared)));
  }
}

const unreachable = 'The renderer cannot be reached.';
const tooMany = 'Too many pages are waiting for the renderer.';

/** Refuses a Chromium that sends datagrams around its proxy. Pages cannot change its command line. */
async function checkFlags(browser: Browser): Promise<void> {
  const session = await browser.newBrowserCDPSession();
  const { commandLine } = await session.send('SystemInfo.getInfo');
  if (commandLine.split(/\s+/).includes(webRtcFlag)) return;
  await browser.close();
  throw new RenderError(`The renderer was not started with ${webRtcFlag}.`);
}

/** Chromium refuses requests to its debugging port under any host name but localhost. */
async function numericAddress(address: string): Promise<string> {
  const url = new URL(address);
  const { address: found, family } = await lookup(url.hostname.replace(/^\[|\]$/g, ''));
  url.hostname = family === 6 ? `[${found}]` : found;
  return url.href;
}

/** Rejects with the signal's reason as soon as the signal is aborted. */
function rejectOnAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (): void => reject(signal.reason);
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end));
  });
}

async function within(timeoutMs: number, work: Promise<unknown>): Promise<void> {
  const late = AbortSignal.timeout(timeoutMs);
  await rejectOnAbort(late, work);
}
