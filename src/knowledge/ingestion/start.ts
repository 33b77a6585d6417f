import { setTimeout as wait } from 'node:timers/promises';
import type { Static } from 'typebox';
import { type Db, isInUnit, type Transaction } from '../../db/database.ts';
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

/** How ingestions start: each with a job, and small ones within the request. */
export type IngestionStarts = {
  /** Inserts the ingestion and its job in one transaction, or returns the ingestion that is already active. */
  begin(db: Db, given: NewIngestion, inline?: boolean): Promise<{ ingestion: IngestionRow; isNew: boolean }>;
  /** Begins an ingestion, processes small contents immediately, and returns its state afterwards. */
  start(db: Db, caller: Caller, given: Omit<NewIngestion, 'caller'>, isInline?: boolean): Promise<IngestionView>;
  /** Whether the contents are small enough to be processed within the request. */
  isSmall(items: readonly NewItem[]): boolean;
  /** Processes small contents, and stops waiting if that takes long. */
  runInline(ingestions: IngestionRow[]): Promise<void>;
};

export function createIngestionStarts({ work, onError }: StartDeps): IngestionStarts {
  async function begin(db: Db, given: NewIngestion, inline = false) {
    const { caller, source, onActive } = given;
    let waits = onActive === 'queue';
    for (let tries = 0; tries < insertTriesMax; tries++) {
      const inserted = await insert(db, given, inline, waits);
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

  const isSmall = (items: readonly NewItem[]) =>
    !isInUnit() && items.reduce((sum, { content }) => sum + (content?.length ?? Infinity), 0) <= inlineBytesMax;

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
      const { ingestion, isNew } = await begin(db, { ...given, caller }, inline);
      if (isNew && inline && !ingestion.queued) await runInline([ingestion]);
      const view = found(await store.findIngestion(db, caller, ingestion.id));
      return isNew ? view : { ...view, metadata: { ...view.metadata, already_active: true } };
    },
  };
}

/**
 * Returns undefined if another ingestion of the source is active and this one may not wait for it, or if one became
 * active meanwhile.
 */
function insert(db: Db, { source, kind, items, metadata = {}, also }: NewIngestion, inline: boolean, waits: boolean) {
  const { appId, id: sourceId } = source;
  return db.begin(async (tx) => {
    const id = newUuid();
    const queued = waits && (await store.lockActive(tx, appId, sourceId));
    const isLast = queued && also === undefined;
    const row = await store.insertIngestion(tx, { appId, id, sourceId, kind, metadata, queued }, items, isLast);
    if (!row) return undefined;
    await also?.(tx, row);
    if (queued) return row;
    // The work is done by `runInline`. The job is needed only if this process crashes.
    await launchIngestion(tx, source, row, inline ? (leaseSeconds + 1) * 1_000 : 0);
    return row;
  });
}
