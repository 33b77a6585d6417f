import type { Db, Transaction } from '../../db/database.ts';
import { isDatabaseUnavailable } from '../../db/errors.ts';
import { keepLease } from '../../jobs/lease.ts';
import { addJob } from '../../jobs/queue.ts';
import { taskNames } from '../../jobs/task-names.ts';
import type { JobContext } from '../../jobs/workers.ts';
import { AppError } from '../../lib/errors.ts';
import { newUuid } from '../../lib/ids.ts';
import { servingEmbedder } from '../embedding/embedders.ts';
import { outside } from '../embedding/work.ts';
import { findCreatableKind } from '../kinds/index.ts';
import { findSourceById, type SourceRow } from '../sources/store.ts';
import { restoreVersions } from '../versions/restore.ts';
import { knowledgeSink, startPull } from './crawl-sink.ts';
import type { KnowledgeWorkDeps } from './deps.ts';
import { PushTurn } from './push-turn.ts';
import { IngestionRun, type ItemWork, LeaseLost } from './run.ts';
import * as store from './store.ts';

export const leaseSeconds = 10;
/** The interval at which work on an ingestion checks whether its source still exists. */
export const heartbeatMs = 1_500;

/** The controls of the job that does the work; empty if a request does it. */
export type JobControls = Partial<Pick<JobContext, 'signal' | 'waitOutside' | 'crowdedOut'>>;

type Turn = PushTurn<ItemWork> | undefined;

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
  const { db, embedder, log } = given;
  const embedderOf = (source: SourceRow) => servingEmbedder(given.embedders, source);
  const deps: KnowledgeWorkDeps = { ...given, launch, embedderOf };

  /**
   * Runs an ingestion to its end unless another process does, and in a job also the pushes that wait behind it, for a
   * while. Returns whether it has ended or was deleted.
   */
  async function runIngestion(appId: string, id: string, controls: JobControls = {}): Promise<boolean> {
    // A request waits for its own document, not for others.
    const turn = controls.waitOutside === undefined ? undefined : new PushTurn<ItemWork>(controls.signal);
    try {
      const hasEnded = await runOne(appId, id, controls, turn);
      for (let next = turn?.takeNext(); next !== undefined; next = turn?.takeNext())
        if (!(await runNext(appId, next, controls, turn))) break;
      return hasEnded;
    } finally {
      turn?.end();
    }
  }

  /** Runs an ingestion after another one. If it does not end, its own job, which waits meanwhile, is due now. */
  async function runNext(appId: string, id: string, controls: JobControls, turn: Turn): Promise<boolean> {
    try {
      if (await runOne(appId, id, controls, turn)) return true;
    } catch (error) {
      log.warn({ err: error, ingestion: id }, 'An ingestion was interrupted and continues in its own job');
    }
    await addIngestJob(db, appId, id);
    return false;
  }

  async function runOne(appId: string, id: string, { signal, ...controls }: JobControls, turn: Turn): Promise<boolean> {
    const holder = newUuid();
    const ingestion = await store.claimIngestion(db, appId, id, holder, leaseSeconds);
    if (!ingestion) return store.isFinished(db, appId, id);
    const lease = keepLease({
      ...{ everyMs: heartbeatMs, signal },
      renew: () => store.renewLease(db, appId, id, holder, leaseSeconds),
      onError: (error) => log.warn({ err: error, ingestion: id }, 'A lease was not renewed'),
    });
    const stop = lease.signal;
    const ofRun = {
      ...{ ...deps, embedder: outside(embedder, controls) },
      embedderOf: async (source: SourceRow) => outside(await embedderOf(source), controls),
    };
    const run = new IngestionRun(ofRun, ingestion, { holder, signal: stop, turn });
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
      lease.end();
    }
  }

  return { runIngestion, sink: knowledgeSink(deps), deps };
}

/** Starts an active ingestion: a crawl for web pages, otherwise a job. */
export async function launchIngestion(
  tx: Transaction,
  source: SourceRow,
  ingestion: Pick<store.IngestionRow, 'id' | 'kind'>,
  inMs?: number,
): Promise<void> {
  const pull = ingestion.kind === 'pull' ? findCreatableKind(source.type)?.pull : undefined;
  if (pull?.by === 'crawl') return startPull(tx, source, ingestion.id, pull.settings(source.payload));
  await addIngestJob(tx, source.appId, ingestion.id, inMs);
}

function addIngestJob(db: Db, appId: string, ingestionId: string, inMs?: number): Promise<void> {
  return addJob(db, taskNames.ingest, { appId, ingestionId }, { key: `ingest/${ingestionId}`, inMs });
}

/** The same for an ingestion that waited until now. If the caller runs it next itself, its job is due after a crash. */
export async function launch(
  tx: Transaction,
  appId: string,
  sourceId: string,
  ingestionId: string,
  mayContinue = false,
): Promise<boolean> {
  const source = await findSourceById(tx, appId, sourceId);
  const kind = await store.findKind(tx, appId, ingestionId);
  if (!source || !kind) return false;
  const isOfCaller = mayContinue && kind === 'push';
  await launchIngestion(tx, source, { id: ingestionId, kind }, isOfCaller ? (leaseSeconds + 1) * 1_000 : undefined);
  return isOfCaller;
}

/** Whether a retry may help: the parsers are busy or stopping, or the database is restarting. */
export function isTransient(error: unknown): boolean {
  if (error instanceof AppError) return error.code === 'unavailable';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return isDatabaseUnavailable(error) || /^(40|ECONNREFUSED|ECONNRESET)/.test(code);
}
