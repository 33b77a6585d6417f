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
  /**
   * Reserves something in a transaction. If the response to its commit is lost, it fails, and what it may have reserved is
   * released as soon as the database says that it was committed.
   */
  reserve<T>(work: (tx: Db) => Promise<T>, release: (tx: Db, reserved: T) => Promise<void>): Promise<T>;
  /** Runs the work in a transaction that is committed once, even if the response to its commit is lost. */
  settle(work: (tx: Db) => Promise<void>): Promise<void>;
  /** Runs a statement that may take effect twice. */
  write(statement: () => Promise<void>): Promise<void>;
  /** Makes a last attempt before the process stops, within a second. What fails stays reserved. */
  close(): Promise<void>;
};

/**
 * Replaces reservations by what was used, even if the database does not respond at that moment: the work is then repeated
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
      if (!mayPass(error) || !runLater(run)) throw error;
      log.warn({ err: error }, 'The use of a model could not be written, and is written later');
    }
  }

  /** False if too much waits already. */
  function runLater(run: () => Promise<void>): boolean {
    if (waiting.length >= waitingMax) return false;
    // Statements wait in the lane of the app for which they are made.
    waiting.push({ run: AsyncResource.bind(run), tries: 0 });
    repeatLater();
    return true;
  }

  /** A transaction that takes effect once, however often it is run. */
  function once(work: (tx: Db) => Promise<void>): () => Promise<void> {
    let transaction: string | undefined;
    return async () => {
      // One that is too old to be known may have taken effect.
      if (transaction !== undefined && (await findOutcome(db, transaction)) !== 'aborted') return;
      await db.begin(async (tx) => {
        transaction = await readTransaction(tx);
        await work(tx);
      });
    };
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
    async reserve(work, release) {
      let sent: { transaction: string; release(): Promise<void> } | undefined;
      try {
        return await db.begin(async (tx) => {
          const transaction = await readTransaction(tx);
          const reserved = await work(tx);
          sent = { transaction, release: once((later) => release(later, reserved)) };
          return reserved;
        });
      } catch (error) {
        const lost = sent;
        // One that is too old to be known stays: a budget that allows too little is better than one that allows too much.
        if (lost !== undefined && mayPass(error))
          runLater(async () => {
            if ((await findOutcome(db, lost.transaction)) === 'committed') await lost.release();
          });
        throw error;
      }
    },

    settle: (work) => attempt(once(work)),
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

async function readTransaction(tx: Db): Promise<string> {
  const [row] = await tx<[{ id: string }]>`select pg_current_xact_id()::text as id`;
  return row.id;
}

/** How a transaction has ended; null if it is too old to be known. */
async function findOutcome(db: Db, transaction: string): Promise<'committed' | 'aborted' | null> {
  const [row] = await db<[{ status: 'committed' | 'aborted' | 'in progress' | null }]>`
    select pg_xact_status(${transaction}::text::xid8) as status`;
  // Its session may not have noticed yet that the connection is lost.
  if (row.status === 'in progress')
    throw new ConnectionError('CONNECTION_CLOSED', 'The transaction has not ended yet.');
  return row.status;
}
