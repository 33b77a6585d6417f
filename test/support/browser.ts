import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Frame,
  type Page,
} from 'playwright-core';
import { requireProgram } from '../../scripts/setup.ts';
import type { TestApp } from './provisioner.ts';
import { unusedFeatures } from './renderer.ts';
import { startTestServer, type TestServer, type TestServerOptions } from './server.ts';
import { findShared } from './shared.ts';
import { projectRoot, readProjectFile } from './source.ts';

/**
 * With QUARRY_SCREENSHOTS=1, tests take screenshots: those that docs/console.md shows go to docs/images, the others
 * to a folder that git ignores. Without it, only the pages of failed tests are captured.
 */
export const takesPictures = process.env.QUARRY_SCREENSHOTS !== undefined || process.env.QUARRY_LOOK !== undefined;
const scratch = join(projectRoot, 'test/output/screenshots');
const documented = join(projectRoot, 'docs/images');
const shown = new Set<string | undefined>(
  [...readProjectFile('docs/console.md').matchAll(/\]\(images\/([\w-]+)\.png\)/g)].map((match) => match[1]),
);
const waitMs = 180_000;

type View = 'desktop' | 'phone';
const views: Record<View, BrowserContextOptions> = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true, deviceScaleFactor: 1 },
};

/** A server, a browser, and the problems that its pages reported. */
export class ConsoleTest {
  readonly server: TestServer;
  /** Forbidden behaviour of pages: scripts that failed, policies that were violated, errors in the log. */
  readonly problems: string[] = [];
  readonly #browser: Browser;
  readonly #contexts: BrowserContext[] = [];
  readonly #closeBrowser: () => Promise<void>;

  constructor(server: TestServer, browser: Browser, closeBrowser: () => Promise<void>) {
    this.server = server;
    this.#browser = browser;
    this.#closeBrowser = closeBrowser;
  }

  static async start(options: TestServerOptions = {}): Promise<ConsoleTest> {
    const shared = findShared('browser', openBrowser);
    const opened = shared ?? openBrowser();
    const [server, browser] = await Promise.all([startTestServer(options), opened.launched]);
    return new ConsoleTest(server, browser, shared === undefined ? opened.close : async () => {});
  }

  /** Opens a page in a new browser profile, with nobody signed in. */
  async open(path: string, view: View = 'desktop', options: BrowserContextOptions = {}): Promise<Page> {
    const page = await (await this.#createProfile(view, options)).newPage();
    await page.goto(path);
    return page;
  }

  async #createProfile(view: View, options: BrowserContextOptions): Promise<BrowserContext> {
    const context = await this.#browser.newContext({
      baseURL: this.server.baseUrl,
      locale: 'en-GB',
      colorScheme: 'light',
      reducedMotion: 'reduce',
      ...views[view],
      ...options,
    });
    context.setDefaultTimeout(waitMs);
    this.#contexts.push(context);
    context.on('weberror', (error) => this.problems.push(`script failed: ${error.error().message}`));
    context.on('response', (response) => {
      // Other programs send the browser to pages too: an issuer adds its own parameter to the callback.
      if (response.request().isNavigationRequest()) return;
      const unknown = response.headers()['x-unknown-parameters'];
      if (unknown !== undefined) this.problems.push(`${response.url()} has no parameter ${unknown}`);
    });
    context.on('console', (message) => {
      // The browser logs each 4xx of the API as an error. The page shows these responses itself.
      const refusal = /status of 4\d\d/.test(message.text());
      if (message.type() === 'error' && !refusal) this.problems.push(`${message.text()} (${message.location().url})`);
    });
    return context;
  }

  /** The same, signed in as the developer of the app, with the app selected. */
  async openAsDeveloper(app: TestApp, path: string, view: View = 'desktop', options: BrowserContextOptions = {}) {
    const context = await this.#createProfile(view, options);
    // The form would take longer than most pages. Its tests are in sign-in.test.ts.
    const session = new URL('/console/session', new URL(path, this.server.baseUrl)).href;
    const signedIn = await context.request.post(session, { data: { developer_token: app.developerToken } });
    if (!signedIn.ok()) throw new Error(`The sign-in returned ${signedIn.status()}: ${await signedIn.text()}`);
    const page = await context.newPage();
    await page.goto(path);
    await page.locator('main#content').waitFor();
    return page;
  }

  async picture(page: Page, name: string): Promise<void> {
    if (takesPictures) await this.#takePicture(page, name);
  }

  async #takePicture(page: Page, name: string): Promise<void> {
    const folder = process.env.QUARRY_SCREENSHOTS && shown.has(name) ? documented : scratch;
    mkdirSync(folder, { recursive: true });
    await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled', caret: 'hide' });
  }

  /**
   * Closes the pages of a test, with a screenshot of each if the test failed. Throws if a page did something
   * forbidden.
   */
  closePages = async (test: object): Promise<void> => {
    if (!(test as { passed: boolean }).passed) {
      const pages = this.#contexts.flatMap((context) => context.pages());
      await Promise.all(pages.map((page, at) => this.#takePicture(page, `failed-${at}`)));
    }
    await Promise.all(this.#contexts.splice(0).map((context) => context.close()));
    const problems = this.problems.splice(0);
    if (problems.length > 0) throw new Error(`The pages complained:\n${problems.join('\n')}`);
  };

  async close(): Promise<void> {
    await this.#closeBrowser();
    await this.server.close();
  }
}

type OpenBrowser = { launched: Promise<Browser>; close(): Promise<void> };

function openBrowser(): OpenBrowser {
  const launched = launch();
  return { launched, close: () => launched.then((browser) => browser.close()) };
}

/** What Playwright disables: its list is replaced by the one here. */
const unusedByTests = [
  ...['PaintHolding', 'HttpsUpgrades', 'HttpsFirstBalancedModeAutoEnable', 'ThirdPartyStoragePartitioning'],
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'AvoidCorsURLLoaderRestartOnRedirect'],
  ...[
    'MediaRouter',
    'LensOverlay',
    'OptimizationHints',
    'NetworkTimeServiceQuerying',
    'PreconnectToSearch',
    'AimEnabled',
  ],
];

async function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: requireProgram('browser'),
    headless: true,
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
      ...[
        '--disable-component-update',
        '--disable-sync',
        `--disable-features=${[...unusedFeatures, ...unusedByTests].join()}`,
      ],
    ],
  });
}

/** Whether the page can be scrolled sideways, because something is too wide. */
export function scrollsSideways(page: Page): Promise<boolean> {
  return page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');
}

/** Waits until the browser's own viewer is at work in a preview. */
export async function pdfShown(page: Page): Promise<void> {
  const isViewer = (frame: Frame) => frame.url().startsWith('chrome-extension:');
  if (!page.frames().some(isViewer)) await page.waitForEvent('framenavigated', isViewer);
}

/**
 * Waits until the viewer has drawn the first page. Its drawing is in no DOM, but a screenshot of the empty viewer is
 * small.
 */
export async function pdfDrawn(page: Page): Promise<void> {
  await pdfShown(page);
  for (const deadline = Date.now() + waitMs; Date.now() < deadline; )
    if ((await page.locator('iframe.preview-pdf').screenshot()).length > emptyViewerBytes) return;
  throw new Error('The PDF is not drawn.');
}

const emptyViewerBytes = 5_000;
