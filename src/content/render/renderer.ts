import { lookup } from 'node:dns/promises';
import type { Browser } from 'playwright-core';
import type { Config } from '../../config.ts';
import { lazyPackage } from '../../lazy-package.ts';
import type { Logger } from '../../log.ts';
import { openCallLanes } from '../call-lanes.ts';
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
  /** The address of this machine that Chromium reaches (QUARRY_RENDERER_PROXY_HOST). */
  proxyHost: string;
  /** Concurrent pages of one app; as many more for other apps. */
  pages: number;
  timeoutMs: number;
  /** Replaces bounds in tests. */
  bounds?: Partial<PageBounds>;
  fetcher: Fetcher;
  log: Logger;
};

type Rendering = Pick<RenderRequest, 'url' | 'mayRequest'> & {
  lane: string;
  signal: AbortSignal;
  /** Runs the rendering once it is this page's turn: in a turn of its host. */
  inTurn: (render: () => Promise<RenderedPage>) => Promise<RenderedPage>;
};

/** One Chromium and the proxy for its pages, while at least one page is being rendered. */
type Connection = { browser: Browser; proxy: ForwardProxy; userAgent: string };

const connectTimeoutMs = 10_000;
const closeTimeoutMs = 5_000;
/** WebRTC sends datagrams past every proxy unless Chromium was started with this. */
export const webRtcFlag = '--webrtc-ip-handling-policy=disable_non_proxied_udp';

const playwright = lazyPackage<typeof import('playwright-core')>('playwright-core');

/** The configured renderer, or undefined. */
export function openRenderer(
  config: Pick<Config, 'renderer' | 'rendererProxyHost' | 'rendererPages' | 'rendererSeconds'>,
  fetcher: Fetcher,
  log: Logger,
): Renderer | undefined {
  const { renderer: address, rendererProxyHost: proxyHost, rendererPages: pages } = config;
  if (address === undefined) return undefined;
  return new Renderer({ ...{ address, proxyHost, pages, fetcher, log }, timeoutMs: config.rendererSeconds * 1_000 });
}

/**
 * Renders pages whose text is added by scripts, in a Chromium that the operator runs. Its pages reach the network only
 * through a proxy of this process, with the guard of every other fetch.
 */
export class Renderer {
  readonly #options: RendererOptions;
  readonly #callInLane: ReturnType<typeof openCallLanes>;
  #connection: Promise<Connection> | undefined;
  #users = 0;

  constructor(options: RendererOptions) {
    this.#options = options;
    this.#callInLane = openCallLanes(options.pages, () => new RenderError(tooMany, { isTransient: true }));
  }

  /** Throws RenderError, or the signal's reason. */
  render({ lane, signal, inTurn, ...request }: Rendering): Promise<RenderedPage> {
    return this.#callInLane(lane, signal, () =>
      inTurn(() => this.#withConnection((connection) => this.#drawIn(connection, request, lane, signal))),
    );
  }

  /** Connects once. Throws RenderError when Chromium cannot be used. */
  check(): Promise<string> {
    return this.#withConnection(async ({ browser }) => browser.version());
  }

  async #drawIn(
    { browser, proxy, userAgent }: Connection,
    request: Pick<RenderRequest, 'url' | 'mayRequest'>,
    lane: string,
    signal: AbortSignal,
  ): Promise<RenderedPage> {
    const { timeoutMs } = this.#options;
    const bounds = { ...pageBounds, ...this.#options.bounds };
    const passage = proxy.open(lane, bounds);
    const opened = browser.newContext(contextOptions(passage, proxy.url, userAgent));
    const end = new AbortController();
    const timer = setTimeout(() => end.abort(new RenderError('The page took too long to render.')), timeoutMs);
    try {
      const rendered = opened.then((context) => renderPage(context, { ...request, timeoutMs, bounds }, passage));
      return await endedBy(AbortSignal.any([signal, end.signal]), rendered);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof RenderError) throw error;
      if (!browser.isConnected()) throw new RenderError(unreachable, { cause: error, isTransient: true });
      throw new RenderError('The renderer could not load the page.', { cause: error });
    } finally {
      clearTimeout(timer);
      passage.close();
      await within(
        closeTimeoutMs,
        opened.then((context) => context.close()),
      ).catch(() => browser.close());
    }
  }

  async #withConnection<T>(use: (connection: Connection) => Promise<T>): Promise<T> {
    this.#users += 1;
    try {
      this.#connection ??= this.#open();
      return await use(await this.#connection);
    } finally {
      this.#users -= 1;
      if (this.#users === 0) await this.close();
    }
  }

  #open(): Promise<Connection> {
    const connection = this.#connect(() => {
      // The next page may have opened another connection by now.
      if (this.#connection === connection) this.#connection = undefined;
    });
    return connection;
  }

  async #connect(forget: () => void): Promise<Connection> {
    const { address, proxyHost, fetcher, log } = this.#options;
    const proxy = await ForwardProxy.start(fetcher, proxyHost);
    try {
      const browser = await playwright().chromium.connectOverCDP(await numericAddress(address), {
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

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.then(({ browser }) => browser.close()).catch(() => {});
  }
}

const unreachable = 'The renderer cannot be reached.';
const tooMany = 'Too many pages are waiting for the renderer.';

/** A Chromium that sends datagrams past its proxy is not used. Its command line is not under the control of pages. */
async function checkFlags(browser: Browser): Promise<void> {
  const session = await browser.newBrowserCDPSession();
  const { commandLine } = await session.send('SystemInfo.getInfo');
  if (commandLine.split(/\s+/).includes(webRtcFlag)) return;
  await browser.close();
  throw new RenderError(`The renderer was not started with ${webRtcFlag}.`);
}

/** Chromium refuses requests for its debugging port under any name but localhost. */
async function numericAddress(address: string): Promise<string> {
  const url = new URL(address);
  const { address: found, family } = await lookup(url.hostname.replace(/^\[|\]$/g, ''));
  url.hostname = family === 6 ? `[${found}]` : found;
  return url.href;
}

/** Rejects with the signal's reason as soon as it is aborted. */
function endedBy<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (): void => reject(signal.reason);
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end));
  });
}

async function within(timeoutMs: number, work: Promise<unknown>): Promise<void> {
  const late = AbortSignal.timeout(timeoutMs);
  await endedBy(late, work);
}
