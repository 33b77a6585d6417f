import { setTimeout as wait } from 'node:timers/promises';
import type { Static } from 'typebox';
import { Batcher } from '../../db/batcher.ts';
import { type Database, type Db, isInUnit, isRefusedStatement, type Transaction } from '../../db/database.ts';
import { AppError, found } from '../../lib/errors.ts';
import { newUuid } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import type { ingestSchema } from '../schema.ts';
import type { SourceRow } from '../sources/store.ts';
import type { IngestionRow, IngestionView, NewItem } from './store.ts';
import * as store from './store.ts';
import { type KnowledgeWork, launchIngestion, leaseSeconds } from './workflow.ts';

export type StartDeps = {
  work: KnowledgeWork;
  /** Receives the errors of work that outlives its request. */
  onError: (error: unknown) => void;
};

export type NewIngestion = {
  /** Absent if the server itself begins it. */
  caller?: Caller;
  source: SourceRow;
  kind: IngestionRow['kind'];
  items: readonly NewItem[];
  onActive: NonNullable<Static<typeof ingestSchema>['on_active']>;
  metadata?: Record<string, unknown>;
  /** Additional writes in the transaction of the new ingestion. */
  also?: ((tx: Transaction, ingestion: IngestionRow) => Promise<void>) | undefined;
};

/** Contents of up to this size are processed within the request. */
const inlineBytesMax = 256 * 1024;
const inlineWaitMs = 2_000;
const insertTriesMax = 10;
/** Pushes of one source that share a transaction, and their bytes. */
const sharedMax = 32;
const sharedBytesMax = 1024 * 1024;

type Insertion = NewIngestion & {
  /** Whether it is processed within the request if it does not wait. */
  inline: boolean;
  /** Whether it may wait for another one. */
  waits: boolean;
};

type BeginOptions = {
  inline?: boolean;
  /** Whether it may share its transaction with other requests: not if the caller has one. */
  shares?: boolean;
};

/** How ingestions start: each with a job, and small ones within the request. */
export type IngestionStarts = {
  /** Inserts the ingestion and its job in one transaction, or returns the ingestion that is already active. */
  begin(db: Db, given: NewIngestion, options?: BeginOptions): Promise<{ ingestion: IngestionRow; isNew: boolean }>;
  /** Begins an ingestion, processes small contents immediately, and returns its state afterwards. */
  start(db: Db, caller: Caller, given: Omit<NewIngestion, 'caller'>, isInline?: boolean): Promise<IngestionView>;
  /** Whether the contents are small enough to be processed within the request. */
  isSmall(items: readonly NewItem[]): boolean;
  /** Processes small contents, and stops waiting if that takes long. */
  runInline(ingestions: IngestionRow[]): Promise<void>;
};

export function createIngestionStarts({ db: pool, work, onError }: StartDeps & { db: Database }): IngestionStarts {
  /** One transaction at a time for the requests that push into a source. Those that arrive meanwhile share the next. */
  const shared = new Batcher<Insertion, IngestionRow | undefined>({
    run: ([first, ...others]) => (first ? insert(pool, [first, ...others]) : Promise.resolve([])),
    ...{ itemsMax: sharedMax, bytesMax: sharedBytesMax, batchesMax: 1 },
    sizeOf: ({ items }) => sizeOf(items),
    failsForOne: isRefusedStatement,
  });

  async function begin(db: Db, given: NewIngestion, { inline = false, shares = false }: BeginOptions = {}) {
    const { caller, source, onActive } = given;
    let waits = onActive === 'queue';
    for (let tries = 0; tries < insertTriesMax; tries++) {
      const insertion = { ...given, inline, waits };
      const inserted =
        shares && waits
          ? await shared.add(`${source.appId}/${source.id}`, insertion)
          : (await insert(db, [insertion]))[0];
      if (inserted) return { ingestion: inserted, isNew: true };
      // The active ingestion may have ended since.
      const active = waits ? undefined : await store.findActiveIngestion(db, source.appId, source.id, caller);
      if (!active) continue;
      // The caller must not learn of an ingestion whose documents they cannot see.
      if (!active.isVisible) {
        waits = true;
        continue;
      }
      if (onActive === 'error')
        throw new AppError('conflict', 'Another ingestion of this source is active.', {
          details: { status: active.status },
        });
      return { ingestion: active, isNew: false };
    }
    throw new AppError('unavailable', 'The source is too busy. Try again in a moment.', {
      headers: { 'retry-after': '1' },
    });
  }

  const isSmall = (items: readonly NewItem[]) => !isInUnit() && sizeOf(items) <= inlineBytesMax;

  async function runInline(ingestions: IngestionRow[]): Promise<void> {
    const working = ingestions.map(({ appId, id }) => work.runIngestion(appId, id).catch(onError));
    if (working.length > 0) await Promise.race([Promise.all(working), wait(inlineWaitMs, undefined, { ref: false })]);
  }

  return {
    begin,
    isSmall,
    runInline,

    async start(db, caller, given, isInline = true) {
      const inline = isInline && given.kind !== 'pull' && isSmall(given.items);
      const shares = inline && given.kind !== 'restore';
      const { ingestion, isNew } = await begin(db, { ...given, caller }, { inline, shares });
      if (isNew && inline && !ingestion.queued) await runInline([ingestion]);
      const view = found(await store.findIngestion(db, caller, ingestion.id));
      return isNew ? view : { ...view, metadata: { ...view.metadata, already_active: true } };
    },
  };
}

/** The bytes of contents; infinite if one is a file. */
function sizeOf(items: readonly NewItem[]): number {
  return items.reduce((sum, { content }) => sum + (content?.length ?? Number.POSITIVE_INFINITY), 0);
}

/**
 * Inserts ingestions of one source: the first one as active unless it waits for one that is, and the others behind it.
 * Returns undefined for each if another one is active and they may not wait for it, or if one became active meanwhile.
 */
function insert(db: Db, given: readonly [Insertion, ...Insertion[]]): Promise<(IngestionRow | undefined)[]> {
  const [first, ...others] = given;
  const { source, also, inline, waits } = first;
  const { appId, id: sourceId } = source;
  return db.begin(async (tx) => {
    const insertRows = (some: readonly Insertion[], queued: boolean, isLast: boolean) => {
      const rows = some.map(({ kind, metadata = {}, items }) => ({ id: newUuid(), kind, metadata, items }));
      return store.insertIngestions(tx, { appId, sourceId, queued }, rows, isLast);
    };
    if (waits && (await store.lockActive(tx, appId, sourceId))) {
      const rows = await insertRows(given, true, also === undefined);
      for (const row of rows) await also?.(tx, row);
      return rows;
    }
    const [row] = await insertRows([first], false, false);
    if (!row) return given.map(() => undefined);
    await also?.(tx, row);
    // The work is done by `runInline`. The job is needed only if this process crashes.
    await launchIngestion(tx, source, row, inline ? (leaseSeconds + 1) * 1_000 : 0);
    return others.length === 0 ? [row] : [row, ...(await insertRows(others, true, true))];
  });
}
