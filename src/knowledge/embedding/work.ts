import { EmbeddingError } from '../../content/embed/embedder.ts';
import type { SharedEmbedder } from '../../content/embed/in-lanes.ts';
import type { Database, Transaction } from '../../db/database.ts';
import type { JobContext } from '../../jobs/workers.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { noteRefusal } from '../documents/store.ts';
import { embedStoredDocuments } from '../index/indexing.ts';
import { deleteOtherVectors, type IndexState, lockIndex } from '../index/store.ts';
import { settleEmbedding } from '../ingestion/store.ts';
import { findSourceById, type SourceRow } from '../sources/store.ts';
import type { Embedders } from './embedders.ts';
import * as store from './store.ts';

export type EmbeddingDeps = { db: Database; clock: Clock; log: Logger; embedders: Embedders };
type Controls = Partial<Pick<JobContext, 'signal' | 'waitOutside' | 'crowdedOut'>>;

const documentsPerStep = 50;

/**
 * Embeds the documents of the app's sources that have named this embedder, or have returned to the installation's, and
 * lets searches use the new vectors.
 */
export async function embedSources(
  deps: EmbeddingDeps,
  appId: string,
  of: store.NamedInSandbox | null,
  controls: Controls,
): Promise<void> {
  for (const row of await store.listPendingEmbedders(deps.db, appId, of, deps.clock.now())) {
    if (controls.signal?.aborted) return;
    const source = await findSourceById(deps.db, appId, row.sourceId);
    if (source) await embedSource(deps, source, row, controls);
  }
}

async function embedSource(
  deps: EmbeddingDeps,
  source: SourceRow,
  row: store.EmbedderRow,
  controls: Controls,
): Promise<void> {
  const { db, clock, log } = deps;
  try {
    const embedder = await openTarget(deps, source, row);
    if (row.space !== null && embedder.model !== row.space) {
      // The model was changed. Its new vectors are computed like those of another embedder.
      await store.moveToSpace(db, row, embedder.model, clock.now());
      row.space = embedder.model;
      row.tries = 0;
    }
    await embedAll(deps, row, outside(embedder, controls), controls.signal);
    if (!controls.signal?.aborted) await finish(deps, row, embedder.model, controls.signal);
  } catch (error) {
    if (!(error instanceof EmbeddingError || error instanceof AppError)) throw error;
    log.warn(
      { err: error, source: source.id },
      'The embedder of a source failed; its documents wait for their vectors',
    );
    await store.noteFailure(db, row, error.message, clock.now());
  }
}

function openTarget({ embedders }: EmbeddingDeps, source: SourceRow, row: store.EmbedderRow): Promise<SharedEmbedder> {
  if (row.name === null) return Promise.resolve(embedders.base);
  const { appId, sandboxId, userId, agentId } = source;
  return embedders.open(source, row.name, {
    origin: { appId, sandboxId, userId, agentId },
    onUsed: (tx, use) => store.addUse(tx, row, use),
  });
}

/**
 * The embedder for a job, which holds no slot while a remote service computes the vectors. If the service does not
 * respond and other jobs of the app have no room, the embedder fails.
 */
export function outside(embedder: SharedEmbedder, { waitOutside, crowdedOut }: Controls): SharedEmbedder {
  if (embedder.local || waitOutside === undefined) return embedder;
  return {
    ...embedder,
    async embed(lane, texts, purpose, signal) {
      const until = AbortSignal.any([signal, crowdedOut].filter((each) => each !== undefined));
      try {
        return await waitOutside(() => embedder.embed(lane, texts, purpose, until));
      } catch (error) {
        if (!crowdedOut?.aborted || signal?.aborted) throw error;
        throw new EmbeddingError('The model did not respond, and many others of the app are waiting.', {
          cause: error,
        });
      }
    },
  };
}

/** Embeds what lacks vectors, until a look at all documents finds none. Throws EmbeddingError if all texts fail. */
async function embedAll(
  { db, log }: EmbeddingDeps,
  row: store.EmbedderRow,
  embedder: SharedEmbedder,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (let after: store.PlacedDocument | undefined; ; ) {
    const documents = await store.listDocumentsToEmbed(db, row, embedder.model, after, documentsPerStep);
    if (documents.length === 0 && after === undefined) return;
    if (signal?.aborted) return;
    after = documents.at(-1);
    if (after === undefined) continue;
    const ids = documents.map(({ id }) => id);
    try {
      await embedStoredDocuments(db, embedder, row, ids, signal);
    } catch (error) {
      if (!(error instanceof EmbeddingError) || !(await doesEmbed(embedder, row.appId, signal))) throw error;
      for (const id of ids)
        await embedStoredDocuments(db, embedder, row, [id], signal).catch(async (error: unknown) => {
          if (!(error instanceof EmbeddingError)) throw error;
          log.warn({ err: error, document: id }, 'The embedder refused a document');
          await noteRefusal(db, row.appId, id, embedder.model, error.message);
        });
    }
  }
}

/** Whether the embedder embeds a harmless text, so that a failure was due to the other text. */
export async function doesEmbed(
  embedder: SharedEmbedder,
  appId: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  try {
    await embedder.embed(appId, ['A short sentence.'], 'passage', signal);
    return true;
  } catch (error) {
    if (error instanceof EmbeddingError) return false;
    throw error;
  }
}

/** Chunks whose vectors one transaction deletes. */
const chunksPerBatch = 2_000;

/**
 * Lets searches use the vectors unless documents still lack them, and then deletes those of other models. There may be
 * millions, also of an embedder that was named in between, and the index is locked meanwhile: each batch has a transaction
 * of its own, and the work is pending until the last one.
 */
async function finish(
  { db, clock }: EmbeddingDeps,
  row: store.EmbedderRow,
  model: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { appId, sourceId } = row;
  const range = await onLocked(db, row, async (tx, index, { name, space, servingSpace, completedAt }) => {
    const { waiting, refused } = await store.countLacking(tx, row, model);
    if (waiting > 0) return undefined;
    const hasOthers = completedAt === null || servingSpace !== space;
    await store.serveEmbedder(tx, row, { name, space, pending: hasOthers || refused > 0 });
    return hasOthers ? index : undefined;
  });
  for (let from = 0; range !== undefined && from < range.nextOrdinal; ) {
    signal?.throwIfAborted();
    const to = Math.max(from, range.firstOrdinal) + chunksPerBatch;
    await onLocked(db, row, (tx) => deleteOtherVectors(tx, { appId, sourceId }, model, from, to));
    from = to;
  }
  if (range !== undefined)
    await onLocked(db, row, async (tx) => {
      const { waiting, refused } = await store.countLacking(tx, row, model);
      await store.completeEmbedder(tx, row, { pending: waiting + refused > 0, now: clock.now() });
    });
  await settleEmbedding(db, appId, sourceId, model);
}

/** Runs work on the locked index of the source, unless it is gone or has named another embedder meanwhile. */
async function onLocked<T>(
  db: Database,
  row: store.EmbedderRow,
  work: (tx: Transaction, index: IndexState, current: store.EmbedderRow) => Promise<T>,
): Promise<T | undefined> {
  return db.begin(async (tx) => {
    const index = await lockIndex(tx, row);
    const current = index && (await store.findEmbedder(tx, row));
    if (index === undefined || current?.name !== row.name || current.space !== row.space) return undefined;
    return work(tx, index, current);
  });
}
