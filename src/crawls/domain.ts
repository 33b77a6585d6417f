import type { Database } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import { newUuid } from '../lib/ids.ts';
import { HostGate } from './host-gate.ts';
import { createHostLedger } from './host-store.ts';
import { crawlJob } from './jobs.ts';
import type { EngineDeps } from './turn.ts';

/*
 * Crawls of links and sites for other domains, which start them and take their pages.
 * - `engine.ts` runs one crawl as a job: it takes a batch of addresses, reads them, and commits the pages together with
 *   the new addresses. After a crash, the job continues with the next batch.
 * - `frontier.ts` and `scope.ts` decide which addresses belong to it; `robots.ts` and `sitemaps.ts` what a site allows and
 *   announces.
 * - `host-gate.ts` and `host-shares.ts` bound the requests to each host, over all processes.
 * - `read-page.ts` fetches one page and has it parsed; `retry.ts` says when a failure is tried again.
 * A consumer registers a `CrawlSink` (types.ts), which receives the pages inside the crawl's transaction.
 */

type CrawlDeps = Omit<EngineDeps, 'gate'> & {
  /** The database that counts requests to hosts. */
  directory: Database;
  hostConcurrency: number;
  hostDelayMs: number;
};

/** Crawls have no routes: other domains start them, and the sinks of those domains receive their pages. */
export function createCrawls({ directory, hostConcurrency, hostDelayMs, ...deps }: CrawlDeps) {
  const gate = new HostGate(createHostLedger(directory, newUuid()), {
    concurrencyMax: hostConcurrency,
    delayMs: hostDelayMs,
    log: deps.log,
  });
  return { service: undefined, tasks: { [taskNames.crawl]: crawlJob({ ...deps, gate }) } };
}
