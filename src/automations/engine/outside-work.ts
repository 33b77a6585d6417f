import { callAfter } from '../../lib/clock.ts';
import type { NodeError } from '../nodes/kind.ts';
import type { RunClaims } from './work-claims.ts';

/** The result of an attempt's work. A `fault` is a failure of the infrastructure, not of the node. */
type Outcome<Output> = { output: Output } | { error: NodeError } | { fault: unknown };
export type FinishedWork<Output> = { commandId: string; attempt: number; outcome: Outcome<Output> };

type OutsideTask<Output> = {
  commandId: string;
  attempt: number;
  timeoutSeconds: number;
  run(signal: AbortSignal): Promise<Output>;
  /** Converts an error into the node's failure. Throws faults of the infrastructure. */
  describe(error: unknown): NodeError;
};

/**
 * The external work of a run in this process, several pieces concurrently. Each piece is claimed from before its start
 * is written until its result is written.
 */
export class OutsideWork<Output> {
  readonly #claims: RunClaims;
  readonly #stopping: AbortSignal;
  /** Commands whose claims are not released yet, in whatever state their work is. */
  readonly #claimed = new Set<string>();
  readonly #active = new Map<string, AbortController>();
  readonly #finished: FinishedWork<Output>[] = [];
  #wake: () => void = () => {};

  constructor(claims: RunClaims, stopping: AbortSignal) {
    this.#claims = claims;
    this.#stopping = stopping;
  }

  /** Claims the work. Returns false if another process does it. */
  async take(commandId: string): Promise<boolean> {
    const isTaken = await this.#claims.take(commandId);
    if (isTaken) this.#claimed.add(commandId);
    return isTaken;
  }

  async release(commandId: string): Promise<void> {
    this.#claimed.delete(commandId);
    await this.#claims.release([commandId]);
  }

  /** Starts claimed work. */
  launch(task: OutsideTask<Output>): void {
    const { commandId, attempt, timeoutSeconds } = task;
    const controller = new AbortController();
    this.#active.set(commandId, controller);
    let isLate = false;
    const endTimer = callAfter(timeoutSeconds * 1_000, () => {
      isLate = true;
      controller.abort();
    });
    // Work that ignores its signal must not keep a closed process alive until its timeout.
    controller.signal.addEventListener('abort', endTimer, { once: true });
    const timedOut = { code: 'timeout', message: `The node took longer than ${timeoutSeconds} seconds.` };
    const describe = (error: unknown) => (isLate ? timedOut : task.describe(error));
    void task
      .run(AbortSignal.any([controller.signal, this.#stopping]))
      .then(
        (output): Outcome<Output> => ({ output }),
        (error: unknown): Outcome<Output> => ({ error: describe(error) }),
      )
      .catch((fault: unknown): Outcome<Output> => ({ fault }))
      .then((outcome) => {
        endTimer();
        this.#active.delete(commandId);
        if (this.#stopping.aborted) this.#wake();
        else this.finish({ commandId, attempt, outcome });
      });
  }

  finish(finished: FinishedWork<Output>): void {
    this.#finished.push(finished);
    this.#wake();
  }

  /** Whether any work is active, or has a result that is not yet applied. */
  get isBusy(): boolean {
    return this.#active.size > 0 || this.#finished.length > 0;
  }

  get isActive(): boolean {
    return this.#active.size > 0;
  }

  has(commandId: string): boolean {
    return this.#active.has(commandId);
  }

  /** The oldest result, which is kept until `drop`. */
  get next(): FinishedWork<Output> | undefined {
    return this.#finished[0];
  }

  drop(finished: FinishedWork<Output>): void {
    const at = this.#finished.indexOf(finished);
    if (at >= 0) this.#finished.splice(at, 1);
  }

  /** Aborts the work of commands that are no longer wanted. */
  abortExcept(isWanted: (commandId: string) => boolean): void {
    for (const [commandId, controller] of this.#active) if (!isWanted(commandId)) controller.abort();
  }

  /** Ends the current wait. */
  wake(): void {
    this.#wake();
  }

  /** Resolves at the next result, when the process stops, or after the delay (at most a minute). */
  async wait(delayMs: number | undefined): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = delayMs === undefined ? undefined : setTimeout(resolve, Math.min(delayMs, waitMsMax));
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.#finished.length > 0 || this.#stopping.aborted) this.#wake();
    });
    this.#wake = () => {};
  }

  /** Aborts everything and releases all claims, so that the next worker of the run does not wait for this one. */
  async close(): Promise<void> {
    for (const controller of this.#active.values()) controller.abort();
    if (this.#claimed.size > 0) await this.#claims.release([...this.#claimed]);
  }
}

const waitMsMax = 60_000;
