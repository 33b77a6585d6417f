import { newUuid } from '../ids.ts';
import { taskNames } from '../jobs/task-names.ts';
import { WorkSlots } from '../jobs/work-slots.ts';
import { limits } from '../limits.ts';
import { BodyMemory } from './body-memory.ts';
import type { EngineDeps } from './engine.ts';
import { HostGate } from './host-gate.ts';
import { createHostLedger } from './host-store.ts';
import { crawlJob } from './jobs.ts';

type CrawlDeps = Omit<EngineDeps, 'gate' | 'workSlots' | 'bodies'> & { hostConcurrency: number; hostDelayMs: number };

/** Crawls have no routes: other domains start them, and the sinks of those domains receive their pages. */
export function createCrawls({ hostConcurrency, hostDelayMs, ...deps }: CrawlDeps) {
  const gate = new HostGate(createHostLedger(deps.db, newUuid()), {
    concurrencyMax: hostConcurrency,
    delayMs: hostDelayMs,
    log: deps.log,
  });
  // Two apps can each have a whole crawl's pages active. More apps share the slots.
  const workSlots = new WorkSlots(2 * deps.concurrency);
  const bodies = new BodyMemory(limits.crawlBodyBytesMax);
  return { service: undefined, tasks: { [taskNames.crawl]: crawlJob({ ...deps, gate, workSlots, bodies }) } };
}
