import { type Clock, systemClock } from '../lib/clock.ts';

/** The maximum number of concurrent waits of one task in this process: in total and for one app. */
export type WaitBounds = { jobsMax: number; jobsOfAppMax: number };

const retryMsMin = 5_000;
const retryMsMax = 15_000;
/** A job that has waited this long for one response makes room for others of its app. */
const patienceMs = 10_000;

/** The jobs of this process that wait for an external response or have resumed after one. */
export class WaitingJobs {
  readonly #bounds: Record<string, WaitBounds>;
  readonly #clock: Clock;
  /** By task, then by app: since when each waits, the longest first; undefined for a job that works after a wait. */
  readonly #jobs = new Map<string, Map<string, Map<AbortController, number | undefined>>>();

  constructor(bounds: Record<string, WaitBounds>, clock: Clock = systemClock) {
    this.#bounds = bounds;
    this.#clock = clock;
  }

  /** Whether one more job of the task and app, which may have to wait, may start. */
  hasRoom(task: string, app: string): boolean {
    const bounds = this.#bounds[task];
    if (bounds === undefined) return true;
    const apps = this.#jobs.get(task) ?? new Map<string, ReadonlyMap<unknown, unknown>>();
    const total = [...apps.values()].reduce((sum, jobs) => sum + jobs.size, 0);
    return total < bounds.jobsMax && (apps.get(app)?.size ?? 0) < bounds.jobsOfAppMax;
  }

  /** Aborts the job of the task and app that has waited the longest for one response, if that is too long. */
  askForRoom(task: string, app: string): void {
    const jobs = this.#jobs.get(task)?.get(app) ?? new Map<AbortController, number | undefined>();
    const longAgo = this.#clock.now().getTime() - patienceMs;
    for (const [job, since] of jobs) {
      if (since === undefined || job.signal.aborted) continue;
      if (since > longAgo) break;
      job.abort();
      break;
    }
  }

  /** The delay before a retry. Random, so that jobs do not all return together. */
  retryMs(): number {
    return retryMsMin + Math.random() * (retryMsMax - retryMsMin);
  }

  /** Notes that a job begins to wait, or to work after a wait. */
  note(task: string, app: string, job: AbortController, does: 'wait' | 'work'): void {
    const apps = this.#jobs.get(task) ?? new Map<string, Map<AbortController, number | undefined>>();
    this.#jobs.set(task, apps);
    const jobs = apps.get(app) ?? new Map<AbortController, number | undefined>();
    apps.set(app, jobs);
    jobs.delete(job);
    jobs.set(job, does === 'wait' ? this.#clock.now().getTime() : undefined);
  }

  /** Notes that a job has ended. */
  forget(task: string, app: string, job: AbortController): void {
    const apps = this.#jobs.get(task);
    const jobs = apps?.get(app);
    jobs?.delete(job);
    if (jobs?.size === 0) apps?.delete(app);
  }
}
