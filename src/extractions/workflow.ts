import type { BlobStore } from '../blob/blob-store.ts';
import { writeConfigVersion } from '../configs/store.ts';
import type { CommitBatch, Crawl, CrawledPage, CrawlSink, PageFailure } from '../crawls/types.ts';
import type { Transaction } from '../db/database.ts';
import { setEventCause } from '../events/emit.ts';
import { insertFiles, type NewFile } from '../files/store.ts';
import { announceChange } from '../http/streams/sse.ts';
import { newUuid } from '../lib/ids.ts';
import { storableText } from '../lib/storable-text.ts';
import type { Owned } from '../tenancy/visible.ts';
import { claimNames, outputStem } from './names.ts';
import * as store from './store.ts';
import { startStructuring } from './structure/job.ts';
import { insertPending } from './structure/store.ts';
import { extractionTopic } from './topic.ts';

/** The name of extractions as consumers of crawls. It is stored. */
export const extractionConsumer = 'extraction';

/** A page's text, already in the blob store. Its rows are written at commit. */
type PreparedOutput = { fileId: string; blobKey: string; size: number; checksum: Buffer };

/** Writes crawled pages as outputs of an extraction. */
export function extractionSink(deps: { blobs: BlobStore }): CrawlSink<PreparedOutput> {
  const { blobs } = deps;
  return {
    async prepare(crawl, page) {
      const fileId = newUuid();
      const text = Buffer.from(storableText(page.markdown));
      const blob = await blobs.put(`${crawl.appId}/${fileId}`, text, { contentType: 'text/markdown' });
      return { fileId, blobKey: blob.key, size: blob.size, checksum: Buffer.from(blob.checksum, 'hex') };
    },

    discard: (prepared) => blobs.remove(prepared.blobKey),

    async commit(tx, crawl, batch) {
      const extraction = await store.lockRunningExtraction(tx, crawl.appId, crawl.id);
      if (extraction === undefined) return false;
      const outputs = batch.pages.length;
      const bytes = batch.pages.reduce((sum, { prepared }) => sum + prepared.size, 0);
      const names = await claimNames(
        tx,
        crawl,
        batch.pages.map(({ page }) => outputStem(page.url)),
      );
      // Sent together: they run in this order, and none needs another's result.
      await Promise.all([
        writeOutputs(tx, crawl, extraction, batch, names),
        store.updateProgress(tx, crawl.appId, crawl.id, batch.progress, { outputs, bytes }),
        announceChange(tx, extractionTopic, crawl.appId, crawl.id),
      ]);
      return true;
    },

    async finish(tx, crawl, verdict) {
      const extraction = await store.lockRunningExtraction(tx, crawl.appId, crawl.id);
      if (verdict.state === 'done' && extraction?.dataPending) return startStructuring(tx, extraction);
      const failure = verdict.state === 'failed' ? verdict.failure : undefined;
      await store.endExtraction(tx, crawl.appId, crawl.id, verdict.state, failure);
      await announceChange(tx, extractionTopic, crawl.appId, crawl.id);
    },
  };
}

async function writeOutputs(
  tx: Transaction,
  crawl: Crawl,
  extraction: store.ExtractionRow,
  { pages, failures }: CommitBatch<PreparedOutput>,
  names: string[],
): Promise<void> {
  if (pages.length + failures.length === 0) return;
  const owned: Owned = {
    orgId: extraction.orgId,
    teamId: extraction.teamId,
    userId: extraction.userId,
    agentId: extraction.agentId,
  };
  const prefix = extraction.destinationPath === null ? '' : `${extraction.destinationPath}/`;
  const files = pages.map(({ prepared }, index) => newFile(crawl, owned, prepared, `${prefix}${names[index]}`));
  const { causeTreeId, causeDepth } = extraction;
  if (causeTreeId !== null) await setEventCause(tx, { treeId: causeTreeId, depth: causeDepth });
  const inserted = insertFiles(tx, files);
  if (extraction.destinationKind === 'config') {
    await inserted;
    for (const file of files)
      await writeConfigVersion(tx, crawl, {
        owned,
        virtualPath: file.filename,
        contentType: file.contentType,
        contentHash: file.checksum,
        fileId: file.id,
      });
  }
  // The outputs so far are exactly the pages that finished or failed before this batch.
  const first = crawl.done + crawl.failed - pages.length - failures.length;
  const ordinalOf = (index: number): number => first + index;
  const ids = pages.map(() => newUuid());
  const written = store.insertOutputs(tx, crawl.appId, [
    ...pages.map(({ page, prepared }, index) => ({
      id: ids[index] ?? newUuid(),
      extractionId: crawl.id,
      ordinal: ordinalOf(index),
      state: 'done' as const,
      sourceUrl: page.url,
      title: storableText(page.title) ?? null,
      metadata: pageMetadata(page),
      page: { ...page.report, ...(page.ocr ? { ocr: page.ocr } : {}), truncated: page.truncated !== undefined },
      error: null,
      fileId: prepared.fileId,
      name: names[index] ?? null,
    })),
    ...failures.map((failure, index) => ({
      id: newUuid(),
      extractionId: crawl.id,
      ordinal: ordinalOf(pages.length + index),
      state: 'failed' as const,
      sourceUrl: failure.url,
      title: null,
      metadata: {},
      page: null,
      error: errorOf(failure.failure),
      fileId: null,
      name: null,
    })),
  ]);
  await Promise.all([inserted, written]);
  if (extraction.dataPending !== null) await insertPending(tx, extraction, ids);
}

function newFile(crawl: Crawl, owned: Owned, prepared: PreparedOutput, filename: string): NewFile {
  return {
    appId: crawl.appId,
    sandboxId: crawl.sandboxId,
    id: prepared.fileId,
    filename,
    contentType: 'text/markdown',
    size: prepared.size,
    checksum: prepared.checksum,
    blobKey: prepared.blobKey,
    width: null,
    height: null,
    shared: false,
    ...owned,
  };
}

function pageMetadata(page: CrawledPage): Record<string, unknown> {
  const { description, language, published, contentType, truncated, reader } = page;
  const members = {
    description: storableText(description),
    language,
    published,
    reader,
    content_type: storableText(contentType),
    truncated,
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== ''));
}

function errorOf(failure: PageFailure): store.StoredError {
  return { code: failure.code, message: failure.message };
}
