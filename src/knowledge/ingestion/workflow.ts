import { EmbeddingError } from '../../content/embed/embedder.ts';
import type { SharedEmbedder } from '../../content/embed/in-lanes.ts';
import type { Transaction } from '../../db/database.ts';
import { isDatabaseUnavailable } from '../../db/errors.ts';
import { isInUse } from '../../db/fences.ts';
import { isBehind } from '../../jobs/store.ts';
import { taskNames } from '../../jobs/task-names.ts';
import type { JobContext } from '../../jobs/workers.ts';
import { AppError } from '../../lib/errors.ts';
import { newUuid } from '../../lib/ids.ts';
import { listAppsToEmbed, listUnembeddedDocuments, noteRefusal } from '../documents/store.ts';
import { servingEmbedder } from '../embedding/embedders.ts';
import { listPendingNames, noteAllPending } from '../embedding/store.ts';
import { doesEmbed, embedSources, outside } from '../embedding/work.ts';
import { compactSource } from '../index/compact.ts';
import { embedStoredDocuments } from '../index/indexing.ts';
import { purgeSource } from '../index/purge.ts';
import { listSourcesToCompact, mergeSegments, type SourceKey } from '../index/store.ts';
import { findCreatableKind } from '../kinds/index.ts';
import { learnSources, listAppsToLearn } from '../learning/train.ts';
import { findSourceById, type SourceRow } from '../sources/store.ts';
import { restoreVersions } from '../versions/restore.ts';
import { knowledgeSink, startPull } from './crawl-sink.ts';
import { type EmbeddingOrder, type KnowledgeWorkDeps, queueEmbedding, queueLearning } from './deps.ts';
import { IngestionRun, LeaseLost } from './run.ts';
import * as store from './store.ts';

export const leaseSeconds = 10;
/** The interval at which work on an ingestion checks whether its source still exists. */
export const heartbeatMs = 1_500;
const deadChunksMin = 1_000;
/** When a job looks again whether the one before it, for the same embedder, has ended. */
const turnMs = 5_000;

/** The controls of the job that does the work; empty if a request does it. */
export type JobControls = Partial<Pick<JobContext, 'jobId' | 'signal' | 'waitOutside' | 'crowdedOut'>>;

export type KnowledgeWork = ReturnType<typeof createKnowledgeWork>;

/** Restores versions, or pulls in a job as the kind of the source defines it. Crawls pull web pages. */
async function pullSource(run: IngestionRun, source: SourceRow): Promise<store.IngestionError | undefined> {
  if (run.restore !== undefined) return restoreVersions(run, source, run.restore);
  const pull = findCreatableKind(source.type)?.pull;
  if (pull?.by === 'job') return pull.run(run, source);
  return { code: 'unsupported_content', message: 'This type of source has nothing to pull from.' };
}

/** The steps of ingestion. Each may run twice, because the transaction that does the work records it. */
export function createKnowledgeWork(given: Omit<KnowledgeWorkDeps, 'launch' | 'embedderOf'>) {
  const { db, embedder, log, addJob } = given;
  const deps: KnowledgeWorkDeps = { ...given, launch, embedderOf };
  /** Whether this process has compared the sources' embedders with the models of the operator, which may have changed. */
  let isCompared = false;

  async function embedderOf(source: SourceRow): Promise<SharedEmbedder> {
    return servingEmbedder(given.embedders, source);
  }

  /** Starts an active ingestion: a crawl for web pages, otherwise a job. */
  async function launchIngestion(
    tx: Transaction,
    source: SourceRow,
    ingestion: Pick<store.IngestionRow, 'id' | 'kind'>,
    runAt?: Date,
  ): Promise<void> {
    const pull = ingestion.kind === 'pull' ? findCreatableKind(source.type)?.pull : undefined;
    if (pull?.by === 'crawl') return startPull(tx, source, ingestion.id, pull.settings(source.payload));
    const payload = { appId: source.appId, ingestionId: ingestion.id };
    const key = `ingest/${ingestion.id}`;
    await addJob(tx, taskNames.ingest, payload, runAt === undefined ? { key } : { key, runAt });
  }

  async function launch(tx: Transaction, appId: string, sourceId: string, ingestionId: string): Promise<void> {
    const source = await findSourceById(tx, appId, sourceId);
    const kind = await store.findKind(tx, appId, ingestionId);
    if (source && kind) await launchIngestion(tx, source, { id: ingestionId, kind });
  }

  /** Runs an ingestion to its end unless another process does. Returns whether it has ended or was deleted. */
  async function runIngestion(appId: string, id: string, { signal, ...controls }: JobControls = {}): Promise<boolean> {
    const holder = newUuid();
    const ingestion = await store.claimIngestion(db, appId, id, holder, leaseSeconds);
    if (!ingestion) return isFinished(appId, id);
    const lost = new AbortController();
    const heartbeat = setInterval(() => {
      store
        .renewLease(db, appId, id, holder, leaseSeconds)
        .then((held) => held || lost.abort())
        .catch((error: unknown) => log.warn({ err: error, ingestion: id }, 'A lease was not renewed'));
    }, heartbeatMs);
    const stop = signal ? AbortSignal.any([signal, lost.signal]) : lost.signal;
    const ofRun = {
      ...{ ...deps, embedder: outside(embedder, controls) },
      embedderOf: async (source: SourceRow) => outside(await embedderOf(source), controls),
    };
    // A request waits for its own document, not for others.
    const mayLead = controls.waitOutside !== undefined;
    const run = new IngestionRun(ofRun, ingestion, { holder, signal: stop, mayLead });
    try {
      await run.work(pullSource);
      return true;
    } catch (error) {
      if (stop.aborted) {
        await store.releaseLease(db, appId, id, holder);
        return false;
      }
      if (error instanceof LeaseLost) return true;
      if (isTransient(error)) {
        await store.releaseLease(db, appId, id, holder).catch(() => {});
        throw error;
      }
      log.error({ err: error, ingestion: id }, 'An ingestion failed');
      await run.fail({ code: 'internal_error', message: 'An internal error occurred.' });
      return true;
    } finally {
      clearInterval(heartbeat);
    }
  }

  async function isFinished(appId: string, id: string): Promise<boolean> {
    const [row] = await db<{ status: string; queued: boolean }[]>`
      select status, queued from knowledge_ingestions where app_id = ${appId} and id = ${id}`;
    return row === undefined || row.queued || row.status === 'succeeded' || row.status === 'failed';
  }

  /** Embeds what lacks vectors of the installation's embedder, until none is left or it fails for all. */
  async function embedUnnamed(appId: string, { signal, ...controls }: JobControls): Promise<void> {
    const embedderOfJob = outside(embedder, controls);
    const tried = new Set<string>();
    // Includes sources without an attempt, because documents may be deleted or replaced before their turn.
    const settle = async () => {
      const marked = await store.listSourcesMarkedPending(db, appId);
      for (const sourceId of new Set([...tried, ...marked]))
        await store.settleEmbedding(db, appId, sourceId, embedder.model);
    };
    for (;;) {
      const pending = await listUnembeddedDocuments(db, appId, embedder.model, 50);
      if (pending.length === 0) return settle();
      for (const document of pending) {
        if (signal?.aborted) return settle();
        tried.add(document.sourceId);
        try {
          await embedStoredDocuments(db, embedderOfJob, document, [document.id], signal);
        } catch (error) {
          if (!(error instanceof EmbeddingError)) throw error;
          if (!(await doesEmbed(embedderOfJob, appId, signal))) {
            log.warn({ err: error }, 'The embedder failed; documents wait for their vectors');
            return settle();
          }
          log.warn({ err: error, document: document.id }, 'The embedder refused a document');
          await noteRefusal(db, appId, document.id, embedder.model, error.message);
        }
      }
    }
  }

  return {
    runIngestion,
    launchIngestion,
    launch,
    sink: knowledgeSink(deps),
    deps,

    /** Queues a job for every app that has documents without vectors, or ingestions marked as waiting for them. */
    async embedAll(): Promise<void> {
      if (!isCompared) await noteAllPending(db);
      isCompared = true;
      for (const appId of await listAppsToEmbed(db, embedder.model)) await queueEmbedding(db, addJob, { appId });
    },

    /**
     * Embeds what lacks vectors of an embedder that a sandbox names, or of the installation's. Each named one has a job
     * of its own, so that one which does not respond delays no other's sources.
     */
    async embedPending(order: EmbeddingOrder, { jobId, ...controls }: JobControls = {}): Promise<void> {
      const { appId, sandboxId, embedder: name } = order;
      const named = sandboxId === undefined || name === undefined ? null : { sandboxId, name };
      if (named === null)
        for (const each of await listPendingNames(db, appId, given.clock.now()))
          await queueEmbedding(db, addJob, { appId, sandboxId: each.sandboxId, embedder: each.name });
      const same = { sandboxId: sandboxId ?? null, embedder: name ?? null };
      if (jobId !== undefined && (await isBehind(db, { appId, id: Number(jobId) }, same)))
        return queueEmbedding(db, addJob, order, new Date(Date.now() + turnMs));
      if (named === null) await embedUnnamed(appId, controls);
      await embedSources(given, appId, named, controls);
    },

    /** Merges the segments of a source until none is due. */
    async mergeSource(key: SourceKey): Promise<void> {
      while (await db.begin((tx) => mergeSegments(tx, key)));
    },

    compactSource: (key: SourceKey, signal?: AbortSignal) => compactSource(deps, key, signal),

    /** Queues a job for every app that has a source whose model is due. */
    async learnAll(): Promise<void> {
      for (const appId of await listAppsToLearn(deps)) await queueLearning(db, addJob, appId);
    },

    /** Trains the models of an app's sources that are due. */
    learnSources: (appId: string, signal?: AbortSignal) => learnSources(deps, appId, signal),

    /** Queues the compaction of sources whose index is mostly replaced or deleted chunks. */
    async compactWasteful(): Promise<void> {
      for (const { appId, sourceId } of await listSourcesToCompact(db, deadChunksMin, 20))
        await addJob(db, taskNames.compactIndex, { appId, sourceId }, { key: `compact_index/${sourceId}` });
    },

    /** Deletes the indexes of deleted sources. */
    async purgeRemoved(): Promise<void> {
      for (;;) {
        const removed = await db<SourceKey[]>`
          select app_id, source_id from removed_knowledge_sources s where ${isInUse(db, 's.app_id')} limit 20`;
        if (removed.length === 0) return;
        for (const key of removed) await purgeSource(db, key);
      }
    },
  };
}

/** Whether a retry may help: the parsers are busy or stopping, or the database is restarting. */
export function isTransient(error: unknown): boolean {
  if (error instanceof AppError) return error.code === 'unavailable';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return isDatabaseUnavailable(error) || /^(40|ECONNREFUSED|ECONNRESET)/.test(code);
}
