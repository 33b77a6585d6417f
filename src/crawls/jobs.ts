import type { Db } from '../db/database.ts';
import { addJob } from '../jobs/queue.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Task } from '../jobs/workers.ts';
import { countOlderCrawls, insertCrawl, type NewCrawl } from './store.ts';
import type { EngineDeps } from './turn.ts';

/** Stored with the job, so its names are public. */
type CrawlPayload = { app_id: string; crawl_id: string };

/** How long a crawl runs before it makes room for others if the maximum number of crawls is active. */
const turnMs = 3_000;
/** Single links and the first turn of a site run before later turns of other sites. */
const priorities = { link: 0, site: 5, again: 10, againMax: 90 };
const attemptsMax = 12;

/** Stores a crawl that starts when the transaction commits. */
export async function startCrawl(db: Db, crawl: NewCrawl): Promise<void> {
  await insertCrawl(db, crawl);
  await addTurn(db, crawl.appId, crawl.id, priorities[crawl.settings.mode]);
}

function addTurn(db: Db, appId: string, id: string, priority: number, inMs?: number): Promise<void> {
  const payload: CrawlPayload = { app_id: appId, crawl_id: id };
  return addJob(db, taskNames.crawl, payload, {
    key: `crawl/${id}`,
    priority,
    maxAttempts: attemptsMax,
    inMs,
  });
}

/**
 * Runs a crawl turn by turn. A turn lasts until the crawl ends, unless other crawls wait for its slot. A crawl that
 * has had a turn waits behind those that have not, and further crawls of a tenant wait behind the first crawls of
 * other tenants.
 */
export function crawlJob(deps: EngineDeps): Task {
  return async (payload, { signal, isLastAttempt, waitOutside, isCrowded }) => {
    const { app_id: appId, crawl_id: id } = payload as CrawlPayload;
    // An idle server does not need the engine.
    const { runCrawlTurn } = await import('./engine.ts');
    const startedAt = performance.now();
    const mustYield = (): boolean => performance.now() - startedAt >= turnMs && isCrowded();
    const end = await runCrawlTurn(deps, appId, id, { signal, mustYield, waitOutside, isLastAttempt });
    if (end.over) return;
    const rank = await countOlderCrawls(deps.db, appId, id);
    await addTurn(deps.db, appId, id, Math.min(priorities.again + rank, priorities.againMax), end.inMs);
  };
}
