import { hash } from 'node:crypto';
import { startCrawl } from '../../crawls/jobs.ts';
import type { CommitBatch, Crawl, CrawlSettings, CrawlSink } from '../../crawls/types.ts';
import type { Db, Transaction } from '../../db/database.ts';
import { findDocumentByUrl, listHeldUrls, listUnseenDocuments, markDocumentsSeen } from '../documents/store.ts';
import { groupWrites, removeDocument, writeDocuments } from '../index/indexing.ts';
import { type IndexState, lockIndex } from '../index/store.ts';
import { findSourceById, type SourceRow } from '../sources/store.ts';
import { type KnowledgeWorkDeps, queueEmbedding, queueIndexWork } from './deps.ts';
import { type PreparedInput, prepareInput } from './prepare.ts';
import { addError, addWritten, emptyStats, type Stats } from './stats.ts';
import * as store from './store.ts';

/** The name of this consumer in stored crawls. */
export const knowledgeConsumer = 'knowledge';

/** Starts the crawl of a pull that has become active, once the transaction commits. */
export async function startPull(
  db: Db,
  source: SourceRow,
  ingestionId: string,
  settings: CrawlSettings,
): Promise<void> {
  await store.startIngestion(db, source.appId, ingestionId);
  await startCrawl(db, {
    appId: source.appId,
    sandboxId: source.sandboxId,
    id: ingestionId,
    consumer: knowledgeConsumer,
    collectionId: source.id,
    settings,
  });
}

/** Writes the pages of a crawl as documents of its source. */
export function knowledgeSink(deps: KnowledgeWorkDeps): CrawlSink<PreparedInput | undefined> {
  const { db, embedder } = deps;
  return {
    async listHeld(crawl, urls) {
      const { appId, sourceId } = keyOf(crawl);
      return listHeldUrls(db, appId, sourceId, urls);
    },

    async prepare(crawl, page, signal) {
      const { appId, sourceId } = keyOf(crawl);
      const source = await findSourceById(db, appId, sourceId);
      if (!source) return undefined;
      const old = await findDocumentByUrl(db, appId, sourceId, page.url);
      const text = Buffer.from(page.markdown);
      return prepareInput({ ...deps, embedder: await deps.embedderOf(source) }, source, {
        documentId: old?.id ?? null,
        text: page.markdown,
        fragments: page.fragments,
        title: page.title ?? null,
        metadata: null,
        truncated: page.truncated,
        reader: page.reader,
        contentType: page.contentType === '' ? null : page.contentType,
        fileId: null,
        bytesHash: hash('sha256', text, 'buffer'),
        bytes: text.length,
        pages: 1,
        sourceUrl: page.url,
        seenBy: crawl.id,
        signal,
      });
    },

    discard: async () => {},

    async commit(tx, crawl, batch) {
      const pull = await lockPull(tx, crawl);
      if (!pull) return false;
      const stats = { ...emptyStats(), ...pull.ingestion.stats };
      await write(tx, crawl, pull.index, batch, stats);
      const { discovered, done, failed, waiting } = batch.progress;
      const total = Math.min(discovered, crawl.settings.maxPages);
      const progress = { pages_read: Math.min(done + failed + waiting, total), pages_total: total };
      await store.setStats(tx, crawl.appId, crawl.id, { ...stats, progress });
      return true;
    },

    async finish(tx, crawl, verdict) {
      const pull = await lockPull(tx, crawl);
      if (!pull) return;
      const { appId, sourceId } = keyOf(crawl);
      const { progress: _progress, ...counted } = pull.ingestion.stats;
      const stats: Stats = { ...emptyStats(), ...counted };
      if (verdict.state === 'done')
        for (const id of await listUnseenDocuments(tx, appId, sourceId, crawl.id))
          if (await removeDocument(tx, { appId, sourceId }, id)) stats.removed += 1;
      const isLocal = pull.ingestion.namesEmbedder ? false : embedder.local;
      const pending = !isLocal && stats.documents > 0;
      if (pending) await queueEmbedding(tx, { appId: crawl.appId });
      await store.finishIngestion(tx, appId, crawl.id, {
        status: verdict.state === 'done' ? 'succeeded' : 'failed',
        error: verdict.state === 'done' ? null : { code: verdict.failure.code, message: verdict.failure.message },
        metadata: pending ? { embedding: 'pending' } : {},
        stats,
      });
      const next = await store.promoteQueued(tx, appId, sourceId);
      if (next !== undefined) await deps.launch(tx, appId, sourceId, next);
    },
  };
}

function keyOf({ appId, collectionId }: Crawl) {
  return { appId, sourceId: collectionId ?? '' };
}

/** The locked index and ingestion of a crawl. A document is deleted under the same lock, so deletions are visible. */
async function lockPull(tx: Transaction, crawl: Crawl) {
  const index = await lockIndex(tx, keyOf(crawl));
  const ingestion = index && (await store.lockRunning(tx, crawl.appId, crawl.id));
  return ingestion && { index, ingestion };
}

async function write(
  tx: Transaction,
  crawl: Crawl,
  index: IndexState,
  batch: CommitBatch<PreparedInput | undefined>,
  stats: Stats,
): Promise<void> {
  const key = keyOf(crawl);
  const unchanged: string[] = [];
  const removed = await store.listPullRemovals(
    tx,
    key.appId,
    crawl.id,
    batch.pages.map(({ page }) => page.url),
  );
  const changed: PreparedInput[] = [];
  for (const { page, prepared } of batch.pages) {
    if (removed.has(page.url)) continue;
    if (prepared) changed.push(prepared);
    else {
      unchanged.push(page.url);
      stats.unchanged += 1;
      stats.pages += 1;
    }
  }
  for (const group of groupWrites(changed)) {
    const results = await writeDocuments(tx, key, index, group, () => queueIndexWork(tx, key));
    for (const [i, prepared] of group.entries()) if (results[i]) addWritten(stats, prepared);
  }
  for (const failure of batch.failures) {
    // A page that its server cannot currently return stays as it is. Only a page that is gone is deleted.
    if (!failure.gone) unchanged.push(failure.lastUrl ?? failure.url);
    addError(stats, { url: failure.url, code: failure.failure.code, message: failure.failure.message });
  }
  await markDocumentsSeen(tx, key.appId, key.sourceId, unchanged, crawl.id);
}
