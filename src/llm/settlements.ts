import { AsyncResource } from 'node:async_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import type { Database, Db } from '../db/database.ts';
import { ConnectionError, isDatabaseUnavailable } from '../db/errors.ts';
import { isRefusedByMove } from '../db/fences.ts';
import type { Logger } from '../lib/log.ts';

/** The wait before a settlement is repeated. It doubles from the first to the last. */
const pauseMs = { first: 500, last: 60_000 };
/** Beyond these, what a process could not settle stays reserved, as after a kill. */
const waitingMax = 10_000;
/** A settlement that PostgreSQL refuses although others succeed is of an app that was moved away. */
const triesMax = 100;
/** How long a process that stops tries to settle what is left. */
const lastMs = 1_000;

type Waiting = { run(): Promise<void>; tries: number };

export type Settlements = {
  /** Runs the work in a transaction that is committed once, even if the response to its commit is lost. */
  settle(work: (tx: Db) => Promise<void>): Promise<void>;
  /** Runs a statement that may take effect twice. */
  write(statement: () => Promise<void>): Promise<void>;
  /** Makes a last attempt before the process stops, within a second. What fails stays reserved. */
  close(): Promise<void>;
};

/**
 * Replaces reservations by what was used, also if the database does not respond at that moment: the work is then repeated
 * in the background, and the call does not fail (docs/decisions/0811).
 */
export function createSettlements({ db, log }: { db: Database; log: Logger }): Settlements {
  let waiting: Waiting[] = [];
  let pause = pauseMs.first;
  let timer: NodeJS.Timeout | undefined;
  let repeating: Promise<void> = Promise.resolve();

  async function attempt(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      if (!mayPass(error) || waiting.length >= waitingMax) throw error;
      log.warn({ err: error }, 'The use of a model could not be written, and is written later');
      // Statements wait in the lane of the app for which they are made.
      waiting.push({ run: AsyncResource.bind(run), tries: 0 });
      repeatLater();
    }
  }

  function repeatLater(): void {
    timer ??= setTimeout(() => {
      repeating = repeat();
    }, pause).unref();
  }

  async function repeat(): Promise<void> {
    const given = waiting;
    waiting = [];
    const failed: Waiting[] = [];
    let isDown = false;
    for (const each of given) {
      if (isDown) waiting.push(each);
      else
        try {
          await each.run();
        } catch (error) {
          isDown = isDatabaseUnavailable(error);
          if (mayPass(error) && ++each.tries < triesMax) failed.push(each);
          else log.error({ err: error }, 'The use of a model cannot be written: it stays reserved');
        }
    }
    // The next attempt begins with another one: this one may fail for a reason of its own.
    waiting.push(...failed);
    timer = undefined;
    pause = isDown ? Math.min(2 * pause, pauseMs.last) : pauseMs.first;
    if (waiting.length > 0) repeatLater();
  }

  return {
    settle(work) {
      let transaction: string | undefined;
      return attempt(async () => {
        if (transaction !== undefined && (await isCommitted(db, transaction))) return;
        await db.begin(async (tx) => {
          const [row] = await tx<[{ id: string }]>`select pg_current_xact_id()::text as id`;
          transaction = row.id;
          await work(tx);
        });
      });
    },

    write: attempt,

    async close() {
      clearTimeout(timer);
      const lastAttempt = repeating.then(() => (waiting.length > 0 ? repeat() : undefined));
      await Promise.race([lastAttempt, wait(lastMs, undefined, { ref: false })]);
      clearTimeout(timer);
      if (waiting.length > 0)
        log.warn({ calls: waiting.length }, 'The use of models was not written: it stays reserved');
    },
  };
}

function mayPass(error: unknown): boolean {
  return isDatabaseUnavailable(error) || isRefusedByMove(error);
}

/** Whether a transaction took effect. One that is too old to be known may have, so it is not repeated. */
async function isCommitted(db: Db, transaction: string): Promise<boolean> {
  const [row] = await db<[{ status: string | null }]>`select pg_xact_status(${transaction}::text::xid8) as status`;
  // Its session may not have noticed yet that the connection is lost.
  if (row.status === 'in progress') throw new ConnectionError('CONNECTION_CLOSED', 'The settlement has not ended yet.');
  return row.status !== 'aborted';
}
