import { requireSafeUrl } from '../content/fetch/safe-url.ts';
import { startCrawl } from '../crawls/jobs.ts';
import { normalizeUrl } from '../crawls/page-url.ts';
import type { Db } from '../db/database.ts';
import { AppError } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { type Caller, canSeeWholeApp } from '../tenancy/caller.ts';
import { requireQuotaLeft } from '../tenancy/quotas.ts';
import type { Owned } from '../tenancy/visible.ts';
import { type ExtractionDeps, noDataYet, type PreparedExtraction } from './prepared.ts';
import type { ExtractionRequest } from './request.ts';
import * as store from './store.ts';
import { insertSchema } from './structure/store.ts';
import { extractionConsumer } from './workflow.ts';

type UrlRequest = Exclude<ExtractionRequest, { kind: 'document' }>;

/** Prepares a link or a site. The job starts when the transaction commits. */
export async function prepareCrawl(
  { db, fetcher }: ExtractionDeps,
  caller: Caller,
  owned: Owned,
  request: UrlRequest,
): Promise<PreparedExtraction> {
  const { settings, destination, wanted } = request;
  const url = requireSafeUrl(fetcher, 'url', settings.startUrl);
  if (settings.ignoreRobots && !canSeeWholeApp(caller))
    throw new AppError('forbidden', 'Ignoring robots.txt requires a secret key or a developer token.', {
      fields: [{ field: 'ignore_robots', message: 'requires a secret key' }],
    });
  await requireQuotaLeft(db, caller, 'pages');
  const id = newUuid();
  const commit = async (tx: Db) => {
    await store.insertExtraction(tx, caller, {
      ...owned,
      id,
      kind: request.kind,
      state: 'running',
      destinationKind: destination.kind,
      destinationPath: destination.prefix ?? null,
      fileId: null,
      url: settings.startUrl,
      maxPages: settings.maxPages,
      options: settings,
      ...(wanted && noDataYet),
    });
    if (wanted) await insertSchema(tx, { appId: caller.appId, id }, wanted);
    // Pages of a site appear under several spellings of a URL. A link is requested exactly as given.
    url.hash = '';
    const startUrl = (request.kind === 'site' && normalizeUrl(url.href)) || url.href;
    await startCrawl(tx, {
      appId: caller.appId,
      sandboxId: caller.sandboxId,
      id,
      consumer: extractionConsumer,
      collectionId: null,
      settings: { ...settings, startUrl },
    });
    await store.updateProgress(
      tx,
      caller.appId,
      id,
      { discovered: 1, done: 0, failed: 0, waiting: 0 },
      { outputs: 0, bytes: 0 },
    );
    return id;
  };
  return { commit, discard: async () => {} };
}
