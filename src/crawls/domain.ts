import { newUuid } from '../ids.ts';
import { Places } from '../jobs/places.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { EngineDeps } from './engine.ts';
import { HostGate } from './host-gate.ts';
import { hostLedger } from './host-store.ts';
import { crawlJob } from './jobs.ts';

type CrawlDeps = Omit<EngineDeps, 'gate' | 'places'> & { hostConcurrency: number; hostDelayMs: number };

/** Crawls have no routes: other domains start them, and their pages go to the sinks of those domains. */
export function createCrawls({ hostConcurrency, hostDelayMs, ...deps }: CrawlDeps) {
  const gate = new HostGate(hostLedger(deps.db, newUuid()), {
    concurrencyMax: hostConcurrency,
    delayMs: hostDelayMs,
    log: deps.log,
  });
  // Two apps may have a whole crawl's pages at work at the same time; more share.
  const places = new Places(2 * deps.concurrency);
  return { service: undefined, tasks: { [taskNames.crawl]: crawlJob({ ...deps, gate, places }) } };
}
