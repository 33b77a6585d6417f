import { EmbeddingError } from '../../content/embed/embedder.ts';
import { isBehind } from '../../jobs/store.ts';
import type { JobContext } from '../../jobs/workers.ts';
import { listAppsToEmbed, listUnembeddedDocuments, noteRefusal } from '../documents/store.ts';
import { embedStoredDocuments } from '../index/indexing.ts';
import { type EmbeddingOrder, queueEmbedding } from '../ingestion/deps.ts';
import { listSourcesMarkedPending, settleEmbedding } from '../ingestion/store.ts';
import { listPendingNames, noteAllPending } from './store.ts';
import { doesEmbed, type EmbeddingDeps, embedSources, outside } from './work.ts';

type Controls = Pick<JobContext, 'signal' | 'waitOutside' | 'crowdedOut'>;

/** When a job looks again whether the one before it, for the same embedder, has ended. */
const turnMs = 5_000;

/** The jobs that embed documents which were stored without vectors, or have those of another embedder. */
export function createEmbeddingJobs(deps: EmbeddingDeps) {
  const { db, clock } = deps;
  /** Whether this process has compared the sources' embedders with the models of the operator, which may have changed. */
  let isCompared = false;

  return {
    /** Queues a job for every app that has documents without vectors, or ingestions marked as waiting for them. */
    async embedAll(): Promise<void> {
      if (!isCompared) await noteAllPending(db);
      isCompared = true;
      for (const appId of await listAppsToEmbed(db, deps.embedders.base.model)) await queueEmbedding(db, { appId });
    },

    /**
     * Embeds what lacks vectors of an embedder that a sandbox names, or of the installation's. Each named one has a job
     * of its own, so that one which does not respond delays no other's sources.
     */
    async embedPending(
      order: EmbeddingOrder,
      { jobId, ...controls }: Controls & Pick<JobContext, 'jobId'>,
    ): Promise<void> {
      const { appId, sandboxId, embedder: name } = order;
      const named = sandboxId === undefined || name === undefined ? null : { sandboxId, name };
      if (named === null)
        for (const each of await listPendingNames(db, appId, clock.now()))
          await queueEmbedding(db, { appId, sandboxId: each.sandboxId, embedder: each.name });
      const same = { sandboxId: sandboxId ?? null, embedder: name ?? null };
      if (await isBehind(db, { appId, id: Number(jobId) }, same)) return queueEmbedding(db, order, turnMs);
      if (named === null) await embedUnnamed(deps, appId, controls);
      await embedSources(deps, appId, named, controls);
    },
  };
}

/** Embeds what lacks vectors of the installation's embedder, until none is left or it fails for all. */
async function embedUnnamed(deps: EmbeddingDeps, appId: string, { signal, ...controls }: Controls): Promise<void> {
  const { db, log } = deps;
  const embedder = deps.embedders.base;
  const embedderOfJob = outside(embedder, controls);
  const tried = new Set<string>();
  // Includes sources without an attempt, because documents may be deleted or replaced before their turn.
  const settle = async () => {
    const marked = await listSourcesMarkedPending(db, appId);
    for (const sourceId of new Set([...tried, ...marked])) await settleEmbedding(db, appId, sourceId, embedder.model);
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
