import { availableParallelism } from 'node:os';
import { type RecentApps, recentApps } from '../fairness/recent-apps.ts';

/** How long a job works in one turn while others wait for theirs. One that shows no work for as long waits for something. */
const turnMs = 1_000;
/** A job works for long after so many steps since it began or resumed. Others may be slow because the machine is. */
const longSteps = 100;
/** How long a turn is kept for a job that has yet to be claimed. */
const claimMs = 250;
const lookMs = 100;

type TurnsOptions = {
  /** Those that send requests to this process. */
  apps?: RecentApps | undefined;
  /** The processors of the machine. */
  processors?: number | undefined;
  /** How many slots an app holds, with those of jobs that are being claimed. */
  heldBy(app: string): number;
  /** Called when an app that was refused a slot may have one. */
  onFree(): void;
};

/** What one job does with its turns. */
export type JobTurn = {
  /**
   * Notes that the job has worked and will continue. Returns a promise to wait for if it is the turn of others of its
   * app; the promise also resolves when `signal` is aborted.
   */
  giveWay(signal: AbortSignal): Promise<void> | undefined;
  /** Notes that the job has left its slot, or waits outside of it. */
  rest(): void;
};

type Work = {
  isInSlot: boolean;
  steps: number;
  /** Whether it has made `longSteps` steps since it began or resumed. */
  isLong: boolean;
  /** When its turn began, and when it last showed that it works. */
  sinceMs: number;
  workedMs: number;
  paused: { promise: Promise<void>; resolve: () => void } | undefined;
};

type AppWork = {
  /** Jobs in slots, and those that have worked for long since they resumed outside of one. */
  works: Set<Work>;
  /** Those whose turn is over, the longest first. */
  paused: Work[];
  /** Whether jobs that are due were refused a slot since the last one was claimed. */
  isWanted: boolean;
  /** Whether the last turn was kept for one of those. */
  wasKept: boolean;
  /** Until when the next turn is kept for one of those. */
  claimUntilMs: number;
};

/**
 * While other apps send requests to this process, as many jobs of an app work at a time as the machine has processors:
 * they share the event loop and the database with those requests. A job that shows no work for a second mostly waits
 * for something else and keeps no other waiting, and neither does one that is slow. Those that work for long, step after
 * step, have turns of a second: half as many as there are processors work at a time. The rest is left to short jobs.
 */
export class Turns {
  readonly #apps: RecentApps;
  readonly #besideOthers: number;
  readonly #longBesideOthers: number;
  readonly #heldBy: (app: string) => number;
  readonly #onFree: () => void;
  readonly #work = new Map<string, AppWork>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ apps = recentApps, processors = availableParallelism(), heldBy, onFree }: TurnsOptions) {
    this.#apps = apps;
    this.#besideOthers = processors;
    this.#longBesideOthers = Math.max(1, Math.floor(processors / 2));
    this.#heldBy = heldBy;
    this.#onFree = onFree;
  }

  /** Whether an app that holds so many slots may have another one. */
  mayTake(app: string, held: number): boolean {
    if (!this.#apps.hasOthers(app)) return true;
    const own = this.#work.get(app);
    const isNext =
      own === undefined ||
      own.paused.length === 0 ||
      own.claimUntilMs > this.#apps.nowMs() ||
      this.#countLong(own) >= this.#longBesideOthers;
    const mayTake = isNext && this.#countWorking(own, held) < this.#besideOthers;
    if (own !== undefined && !mayTake) own.isWanted = true;
    return mayTake;
  }

  /** Notes that a job of the app runs in a slot. */
  begin(app: string): JobTurn {
    const own = this.#workOf(app);
    const nowMs = this.#apps.nowMs();
    const work: Work = { isInSlot: true, steps: 0, isLong: false, sinceMs: nowMs, workedMs: nowMs, paused: undefined };
    own.works.add(work);
    own.isWanted = false;
    own.claimUntilMs = 0;
    return {
      giveWay: (signal) => this.#giveWay(app, work, signal),
      rest: () => this.#rest(app, work),
    };
  }

  #workOf(app: string): AppWork {
    const known = this.#work.get(app);
    if (known) return known;
    const own = { works: new Set<Work>(), paused: [], isWanted: false, wasKept: false, claimUntilMs: 0 };
    this.#work.set(app, own);
    return own;
  }

  #rest(app: string, work: Work): void {
    const own = this.#work.get(app);
    own?.works.delete(work);
    this.#resume(app, work);
    work.isInSlot = false;
    work.steps = 0;
    work.isLong = false;
    work.sinceMs = Number.POSITIVE_INFINITY;
    if (own === undefined) return;
    this.#pass(app, own);
    if (own.works.size === 0) this.#work.delete(app);
  }

  #giveWay(app: string, work: Work, signal: AbortSignal): Promise<void> | undefined {
    if (work.paused) return work.paused.promise;
    work.steps += 1;
    if (work.steps < longSteps) return undefined;
    const nowMs = this.#apps.nowMs();
    work.workedMs = nowMs;
    // It has resumed outside of its slot. Such a job counts once it works for long.
    work.sinceMs = Math.min(work.sinceMs, nowMs);
    if (work.isLong && nowMs - work.sinceMs < turnMs) return undefined;
    const own = this.#workOf(app);
    own.works.add(work);
    const hasTurn = !work.isLong && this.#countLong(own) < this.#longBesideOthers;
    work.isLong = true;
    if (hasTurn) return undefined;
    const hasRoom =
      this.#countWorking(own, this.#heldBy(app)) <= this.#besideOthers &&
      this.#countLong(own) <= this.#longBesideOthers;
    const isWanted = own.isWanted || own.paused.length > 0 || !hasRoom;
    if (signal.aborted || !isWanted || !this.#apps.hasOthers(app)) {
      work.sinceMs = nowMs;
      return undefined;
    }
    const paused = Promise.withResolvers<void>();
    work.paused = paused;
    own.paused.push(work);
    const resume = () => this.#resume(app, work);
    signal.addEventListener('abort', resume, { once: true });
    this.#timer ??= setInterval(() => this.#look(), lookMs).unref();
    this.#pass(app, own);
    return paused.promise.finally(() => signal.removeEventListener('abort', resume));
  }

  /** Passes turns that are free to jobs of the app: one that is due and one that waits for its next turn alternate. */
  #pass(app: string, own: AppWork): void {
    const nowMs = this.#apps.nowMs();
    const hasOthers = this.#apps.hasOthers(app);
    while (own.paused.length > 0) {
      const isKept = own.claimUntilMs > nowMs ? 1 : 0;
      if (hasOthers && this.#countWorking(own, this.#heldBy(app)) + isKept >= this.#besideOthers) return;
      if (hasOthers && this.#countLong(own) >= this.#longBesideOthers) {
        if (own.isWanted) this.#onFree();
        own.isWanted = false;
        return;
      }
      own.wasKept = own.isWanted && !own.wasKept;
      const [next] = own.paused;
      if (!own.wasKept && next) this.#resume(app, next);
      if (!own.wasKept) continue;
      own.isWanted = false;
      own.claimUntilMs = nowMs + claimMs;
      this.#onFree();
    }
  }

  #resume(app: string, work: Work): void {
    const { paused } = work;
    if (paused === undefined) return;
    const own = this.#work.get(app);
    if (own) own.paused = own.paused.filter((other) => other !== work);
    work.paused = undefined;
    work.sinceMs = this.#apps.nowMs();
    work.workedMs = work.sinceMs;
    paused.resolve();
  }

  #look(): void {
    let isPaused = false;
    for (const [app, own] of this.#work) {
      this.#pass(app, own);
      isPaused ||= own.paused.length > 0;
    }
    if (isPaused) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** @param held the slots of the app; those without a job here are being claimed */
  #countWorking(own: AppWork | undefined, held: number): number {
    const nowMs = this.#apps.nowMs();
    const works = [...(own?.works ?? [])];
    const working = works.filter((work) => isWorking(work, nowMs));
    return working.length + held - works.filter(({ isInSlot }) => isInSlot).length;
  }

  #countLong({ works }: AppWork): number {
    const nowMs = this.#apps.nowMs();
    return [...works].filter((work) => work.isLong && isWorking(work, nowMs)).length;
  }
}

function isWorking({ paused, workedMs }: Work, nowMs: number): boolean {
  return paused === undefined && nowMs - workedMs < turnMs;
}
