import { AsyncLocalStorage } from 'node:async_hooks';
import { retryOnConflict } from './retry.ts';
import type { Compiled, Result, Row } from './sql.ts';
import type { Scope } from './transaction.ts';
import type { Transaction } from './types.ts';

/** Runs work in a new transaction on a separate connection. */
export type OpenTransaction = (work: (tx: Transaction, scope: Scope) => Promise<void>) => Promise<void>;

/** What a statement joins: a unit, or the savepoint of one of its transactions. */
type Frame = { readonly unit: Unit; readonly turns: Turns; readonly scope?: Scope };

const frames = new AsyncLocalStorage<Frame | undefined>();

/**
 * One transaction for everything that some work writes, without the work being aware of it. The transaction opens
 * with the first write. Until then, reads run outside of it, so no connection waits for an upload or a parser. From
 * then on, every statement of the work runs in it, each in a savepoint, so that a failed statement can be caught as
 * usual.
 */
export class Unit {
  /** The pool whose statements join the transaction. */
  readonly pool: object;
  readonly #open: OpenTransaction;
  readonly #end = Promise.withResolvers<void>();
  #opening: Promise<{ tx: Transaction; scope: Scope }> | undefined;
  #ended: Promise<void> = Promise.resolve();
  readonly #after: (() => Promise<void>)[] = [];
  #isOver = false;

  constructor(pool: object, open: OpenTransaction) {
    this.pool = pool;
    this.#open = open;
    this.#end.promise.catch(() => {});
  }

  /** The frame that a statement joins at this point; undefined outside of a unit and after its end. */
  static current(): Frame | undefined {
    const frame = frames.getStore();
    return frame === undefined || frame.unit.#isOver ? undefined : frame;
  }

  /** Runs the work and then `finish` in the same transaction, and commits. If either throws, nothing is written. */
  async run<T>(work: () => Promise<T>, finish: (tx: Transaction, result: T) => Promise<void>): Promise<T> {
    const turns = new Turns();
    try {
      const result = await frames.run({ unit: this, turns }, work);
      await turns.take(async () => {
        const { tx } = await this.#transaction();
        await finish(tx, result);
      });
      this.#isOver = true;
      this.#end.resolve();
      await this.#ended;
      return result;
    } catch (error) {
      this.#isOver = true;
      this.#end.reject(error);
      await this.#ended.catch(() => {});
      throw error;
    } finally {
      for (const work of this.#after) await runApart(work);
    }
  }

  /** Runs work when the transaction has ended, committed or not. The work must not throw. */
  runAfter(work: () => Promise<void>): void {
    this.#after.push(work);
  }

  /** Whether a statement may still run outside of the transaction. */
  mayRunOutside(text: string): boolean {
    return this.#opening === undefined && isRead(text);
  }

  get isOpen(): boolean {
    return this.#opening !== undefined;
  }

  async execute(frame: Frame, compiled: Compiled): Promise<Result<Row[]>> {
    return this.begin(frame, (_tx, scope) => scope.execute(compiled));
  }

  /** Runs work in a savepoint, repeated after a conflict. Statements of the work that use the pool join it. */
  begin<T>(frame: Frame, work: (tx: Transaction, scope: Scope) => Promise<T>): Promise<T> {
    return frame.turns.take(async () => {
      const outer = frame.scope ?? (await this.#transaction()).scope;
      return retryOnConflict(() =>
        outer.runSavepoint((tx, scope) => frames.run({ unit: this, turns: new Turns(), scope }, () => work(tx, scope))),
      );
    });
  }

  #transaction(): Promise<{ tx: Transaction; scope: Scope }> {
    this.#opening ??= new Promise((resolve, reject) => {
      this.#ended = this.#open(async (tx, scope) => {
        resolve({ tx, scope });
        await this.#end.promise;
      });
      this.#ended.catch(reject);
    });
    return this.#opening;
  }
}

/** Runs work outside of the current unit, so that its writes are committed whatever happens to the unit. */
export function runApart<T>(work: () => Promise<T>): Promise<T> {
  return frames.run(undefined, work);
}

/** Runs cleanup work after the end of the current unit, or immediately if there is none. */
export async function runAfterwards(work: () => Promise<void>): Promise<void> {
  const frame = Unit.current();
  if (frame === undefined) await work();
  else frame.unit.runAfter(work);
}

/** Whether the calling code is part of a unit. If so, it must not start work that continues after its response. */
export function isInUnit(): boolean {
  return Unit.current() !== undefined;
}

/** Whether the calling code is part of a unit whose transaction is open. If so, it must not wait for others. */
export function isInOpenUnit(): boolean {
  return Unit.current()?.unit.isOpen === true;
}

/** Savepoints of one transaction cannot overlap. */
class Turns {
  #last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

const writes =
  /\b(?:insert|update|delete|merge|truncate|lock|share|call|do|add_job|pg_notify|pg_advisory\w*|pg_try_advisory\w*|nextval|setval|app_use|kv_use|kv_count)\b/i;
const known = new Map<string, boolean>();
const knownMax = 5_000;

/** Whether a statement only reads. If in doubt, it counts as a write. */
export function isRead(text: string): boolean {
  let read = known.get(text);
  if (read === undefined) {
    read = /^\s*(?:select|with)\b/i.test(text) && !writes.test(text);
    if (known.size < knownMax) known.set(text, read);
  }
  return read;
}
