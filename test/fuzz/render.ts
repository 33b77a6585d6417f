import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { RenderError } from '../../src/content/browser/errors.ts';
import { Renderer } from '../../src/content/browser/renderer.ts';
import { createFetcher } from '../../src/content/fetch/guarded-fetch.ts';
import { createLogger } from '../../src/lib/log.ts';
import { responses, type SitePages, startSite } from '../support/fixture-site.ts';
import { startChromium } from '../support/renderer.ts';
import { reportProgress } from '../support/rounds.ts';
import { startWatch } from '../support/speed.ts';
import { type HostilePage, hostilePages } from './hostile-pages.ts';
import { Mutator } from './mutate.ts';

type RenderFuzzOptions = { pages: number; seed: number; timeoutMs: number };

type RenderFuzzReport = {
  pages: number;
  /** The number of outcomes: `page`, or the message of a RenderError. */
  outcomes: Record<string, number>;
  slowestMs: number;
  slowestPage: string;
  problems: string[];
};

const parallel = 2;
/** How much longer than its own time a page may take: its context is closed within five seconds. */
const graceMs = 10_000;
const leftMsMax = 20_000;
const patientMs = 60_000;
const pagesPerReport = 20;
const bounds = { bytesMax: 2 * 1024 * 1024, requestsMax: 60, elementsMax: 50_000, charactersMax: 2 * 1024 * 1024 };

/** Draws this many hostile pages in a separate Chromium, and reports what broke a promise. */
export async function fuzzRenderer({ pages, seed, timeoutMs }: RenderFuzzOptions): Promise<RenderFuzzReport> {
  const report: RenderFuzzReport = { pages: 0, outcomes: {}, slowestMs: 0, slowestPage: '', problems: [] };
  const drawing = new Set<string>();
  const canary = await openCanary((what) => report.problems.push(`${what} reached the canary: ${[...drawing]}`));
  const ways = new Map<string, HostilePage>();
  const others: SitePages = { '/endless': responses.endless, '/silent': responses.silent, '/small': 'x' };
  const site = await startSite({}, (request, response, url) => {
    // The proxy opens a connection for each request, where the browser itself would reuse them.
    if (request.headers.connection !== 'close') report.problems.push(`${url.pathname} was fetched without the proxy`);
    const page = ways.get(url.pathname);
    const other = others[url.pathname] ?? '<p>Another page.</p>';
    if (page) page.respond(response, page.html);
    else if (typeof other === 'function') other(request, response, url);
    else response.writeHead(200, { 'content-type': 'text/html' }).end(other);
  });
  const origin = `http://site.localhost:${new URL(site.origin).port}`;
  const fetcher = createFetcher({ allow: ['site.localhost'], resolve: async () => ['127.0.0.1'] });
  const chromium = await startChromium();
  const own = { address: chromium.address, proxyHost: '127.0.0.1', dataDir: '', pages: parallel, bounds, fetcher };
  const renderer = new Renderer({ ...own, timeoutMs, log: createLogger('silent') });
  /** For harmless pages, however slow the machine is. */
  const patient = new Renderer({ ...own, timeoutMs: patientMs, log: createLogger('silent') });
  const draw = (path: string, by = renderer) =>
    by.render({
      ...{ url: origin + path, lane: 'app', signal: new AbortController().signal },
      mayRequest: () => true,
      inTurn: (work) => work(),
    });
  const serversBefore = countServers();
  try {
    await draw('/small', patient);
    const before = await lookInside(chromium.address);
    const hostile = hostilePages(new Mutator(seed), canary.address);
    await Promise.all(
      Array.from({ length: parallel }, async () => {
        while (report.pages < pages) {
          const path = `/page${report.pages++}`;
          const page = hostile.next().value as HostilePage;
          ways.set(path, page);
          drawing.add(page.name);
          const watch = startWatch();
          const outcome = await draw(path).then(
            () => 'page',
            (error: unknown) => {
              if (!(error instanceof RenderError)) report.problems.push(`${page.name}: ${String(error)}`);
              return error instanceof Error ? error.message : String(error);
            },
          );
          const tookMs = Math.round(watch.passedMs());
          report.outcomes[outcome] = (report.outcomes[outcome] ?? 0) + 1;
          if (tookMs > report.slowestMs) Object.assign(report, { slowestMs: tookMs, slowestPage: page.name });
          if (watch.isLate(timeoutMs + graceMs)) report.problems.push(`${page.name}: took ${tookMs} ms`);
          drawing.delete(page.name);
          if (report.pages % pagesPerReport === 0) reportProgress(report.pages, pages, 'hostile pages');
        }
      }),
    );
    const left = await waitUntilEmpty(chromium.address, before);
    if (left !== undefined) report.problems.push(`left in Chromium: ${left}`);
    const { html } = await draw('/another', patient);
    if (!html.includes('Another page.')) report.problems.push('Nothing is drawn any more.');
    if (countServers() !== serversBefore) report.problems.push('A proxy is left.');
    if (!(await canary.canHear())) report.problems.push('The canary did not notice a connection.');
  } finally {
    await Promise.all([renderer.close(), patient.close()]);
    await chromium.close();
    await fetcher.close();
    await site.close();
    canary.close();
  }
  return report;
}

function countServers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap').length;
}

/** A service on the operator's machine, over TCP and UDP. */
async function openCanary(onHeard: (what: string) => void) {
  let isTried = false;
  const hear = (what: string): void => {
    if (!isTried) onHeard(what);
  };
  const tcp = createServer((socket) => {
    hear('A connection');
    socket.destroy();
  });
  tcp.listen(0, '127.0.0.1');
  await once(tcp, 'listening');
  const { port } = tcp.address() as AddressInfo;
  const udp = createSocket('udp4').on('message', () => hear('A datagram'));
  udp.bind(port, '127.0.0.1');
  await once(udp, 'listening');
  return {
    address: `127.0.0.1:${port}`,
    /** Whether it would notice a connection: a check that cannot fail proves nothing. */
    async canHear(): Promise<boolean> {
      isTried = true;
      const heard = once(tcp, 'connection').then(() => true);
      await fetch(`http://127.0.0.1:${port}/`).catch(() => {});
      return heard;
    },
    close() {
      tcp.close();
      udp.close();
    },
  };
}

type Inside = { contexts: number; pages: number; processes: number };

/** What Chromium has open, according to its debugging port. */
async function lookInside(address: string): Promise<Inside> {
  const version = (await (await fetch(`${address}/json/version`)).json()) as { webSocketDebuggerUrl: string };
  const socket = new WebSocket(version.webSocketDebuggerUrl);
  await once(socket, 'open');
  const replies = new Map<number, (result: unknown) => void>();
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(String(data)) as { id: number; result: unknown };
    replies.get(id)?.(result);
  });
  const ask = <T>(id: number, method: string) =>
    new Promise<T>((resolve) => {
      replies.set(id, resolve as (result: unknown) => void);
      socket.send(JSON.stringify({ id, method }));
    });
  const { browserContextIds } = await ask<{ browserContextIds: string[] }>(1, 'Target.getBrowserContexts');
  const { targetInfos } = await ask<{ targetInfos: { type: string }[] }>(2, 'Target.getTargets');
  const { processInfo } = await ask<{ processInfo: { type: string }[] }>(3, 'SystemInfo.getProcessInfo');
  socket.close();
  return {
    contexts: browserContextIds.length,
    pages: targetInfos.filter(({ type }) => !/^(browser|tab)$/.test(type)).length,
    processes: processInfo.filter(({ type }) => type === 'renderer').length,
  };
}

/**
 * Returns what is left of the pages after some time, or undefined if nothing is. Chromium keeps a process ready for
 * the next page.
 */
async function waitUntilEmpty(address: string, before: Inside): Promise<string | undefined> {
  for (const watch = startWatch(); ; ) {
    const now = await lookInside(address);
    const isEmpty = now.contexts <= before.contexts && now.pages <= before.pages;
    if (isEmpty && now.processes <= before.processes + 1) return undefined;
    if (watch.passedMs() > leftMsMax) return JSON.stringify({ before, now });
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
