import type { Db } from '../../db/database.ts';
import type { Logger } from '../../lib/log.ts';
import { isMovingApp } from '../store.ts';
import type { Directory } from './directory.ts';
import { MoveBusyError } from './errors.ts';
import { continueMove } from './move.ts';
import { dropSession, openSession } from './session.ts';
import { listActiveMoves } from './store.ts';

type ResumeOptions = {
  /** The directory's database. */
  db: Db;
  /** Read each time, because the settings may change. */
  directory(): Directory;
  log: Logger;
  everyMs?: number;
};

const resumeEveryMs = 5_000;
/** A move that fails is tried again after growing pauses. */
const pauseMs = { first: 30_000, max: 600_000 };

/**
 * Continues moves that nobody works on, because the command or the worker that did has ended. All workers of an
 * installation look; the lock of a move lets one of them in.
 */
export function resumeMoves({ db, directory, log, everyMs = resumeEveryMs }: ResumeOptions): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const failures = new Map<string, { pauseMs: number; nextMs: number }>();
  let working: Promise<void> = Promise.resolve();
  let isWorking = false;

  async function resume(): Promise<void> {
    if (!(await isMovingApp(db))) return;
    const moves = directory();
    const session = await openSession(moves.target, 'quarry-moves');
    const active = await listActiveMoves(session).finally(() => dropSession(session));
    for (const { id, appId } of active) {
      const failure = failures.get(id);
      if (stopping.signal.aborted || (failure !== undefined && failure.nextMs > performance.now())) continue;
      try {
        const row = await continueMove({ directory: moves, appId, signal: stopping.signal });
        failures.delete(id);
        log.info({ app: appId, from: row.source, to: row.target, step: row.step }, 'A move of an app has ended');
      } catch (error) {
        if (error instanceof MoveBusyError || stopping.signal.aborted) continue;
        const pause = Math.min(2 * (failure?.pauseMs ?? pauseMs.first / 2), pauseMs.max);
        failures.set(id, { pauseMs: pause, nextMs: performance.now() + pause });
        log.error({ err: error, app: appId }, 'A move of an app could not be continued');
      }
    }
  }

  const timer = setInterval(() => {
    if (isWorking) return;
    isWorking = true;
    working = resume()
      .catch((error: unknown) => log.warn({ err: error }, 'Could not read the moves of apps'))
      .finally(() => {
        isWorking = false;
      });
  }, everyMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await working;
    },
  };
}
