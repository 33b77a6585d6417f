import type { SharedEmbedder } from '../../content/embed/in-lanes.ts';
import type { Database, Db, Transaction } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError } from '../../lib/errors.ts';
import { type Caller, canSeeWholeApp, type Scope } from '../../tenancy/caller.ts';
import { lockIndex, type SourceKey } from '../index/store.ts';
import { queueEmbedding } from '../ingestion/deps.ts';
import type { NamedEmbedder, OpenEmbedder } from './embedders.ts';
import * as store from './store.ts';

type EmbeddingDeps = {
  db: Database;
  clock: Clock;
  base: SharedEmbedder;
  open: OpenEmbedder;
};

/** How far the vectors of a source are, and what they have used. */
export type EmbeddingStatus = {
  row: store.EmbedderRow | undefined;
  /** Whether documents wait for vectors, searches for those of the embedder that is named, or others to be deleted. */
  isRunning: boolean;
  documents: number;
  done: number;
  estimate: { embedder: string; documents: number; tokens: number; cost: number | null } | undefined;
};

export type EmbeddingService = ReturnType<typeof createEmbeddingService>;

/** The embedders that sources name. */
export function createEmbeddingService({ db, clock, base, open }: EmbeddingDeps) {
  return {
    /**
     * The embedder that a source may name. 403 unless the caller sees the whole app, because the app pays for it; 422 on
     * `embedder` if there is none of this name.
     */
    async require(caller: Caller, name: string): Promise<NamedEmbedder> {
      requireOperator(caller);
      return open(caller, name, { origin: caller });
    },

    requireOperator,

    /** Names the embedder of a source that is being created. */
    nameFirst: (tx: Db, key: SourceKey, name: string, { model }: Pick<NamedEmbedder, 'model'>) =>
      store.insertEmbedder(tx, key, { name, space: model, now: clock.now() }),

    /** Names another embedder, or none. A job computes its vectors; until then, searches use those before. */
    async rename(tx: Transaction, key: SourceKey, name: string | null, space: string | null): Promise<void> {
      if (!(await lockIndex(tx, key))) return;
      const current = await store.findEmbedder(tx, key);
      if ((current?.name ?? null) === name && (current?.space ?? null) === space) return;
      await store.nameEmbedder(tx, key, { name, space, now: clock.now() });
      await queueEmbedding(tx, { appId: key.appId });
    },

    /** Has a job compare the embedders of a space with the models that their names stand for. */
    async recheck(tx: Db, scope: Scope): Promise<void> {
      if (await store.noteAllPending(tx, scope)) await queueEmbedding(tx, { appId: scope.appId });
    },

    /** How far the vectors of a source are, and what those of another embedder would cost. */
    async status(caller: Caller, key: SourceKey, name: string | undefined): Promise<EmbeddingStatus> {
      const row = await store.findEmbedder(db, key);
      const { documents, done, waiting } = await store.measureSource(db, key, row?.space ?? base.model);
      const isRunning =
        waiting > 0 ||
        (row !== undefined && (row.completedAt === null || !isServing(row) || (await hasMoved(caller, row))));
      const estimated = name === undefined ? undefined : await estimate(caller, key, name);
      return { row, isRunning, documents, done, estimate: estimated };
    },
  };

  /** Whether the model of the embedder now has another space, or cannot be used, which no job has noticed yet. */
  async function hasMoved(caller: Caller, { name, space, pending }: store.EmbedderRow): Promise<boolean> {
    if (!pending || name === null) return false;
    const found = await open(caller, name, { origin: caller }).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error;
    });
    return found?.model !== space;
  }

  async function estimate(caller: Caller, key: SourceKey, name: string): Promise<EmbeddingStatus['estimate']> {
    const { model, prices } = await open(caller, name, { origin: caller });
    const { documents, done, bytes, chunks } = await store.measureSource(db, key, model);
    const tokens = Math.ceil(bytes / bytesPerToken) + chunks * tokensPerChunk;
    const cost = prices === undefined ? null : Math.ceil((tokens / 1_000_000) * prices.input);
    return { embedder: name, documents: documents - done, tokens, cost };
  }
}

/** What a text is likely to need, and what a chunk has beyond its text: its title and headings. */
const bytesPerToken = 4;
const tokensPerChunk = 16;

function isServing(row: store.EmbedderRow): boolean {
  return row.name === row.servingName && row.space === row.servingSpace;
}

function requireOperator(caller: Caller): void {
  if (!canSeeWholeApp(caller)) throw new AppError('forbidden', 'Only a secret key or a developer sets embedder.');
}
