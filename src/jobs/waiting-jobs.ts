/** The maximum number of concurrent waits of one task in this process: in total and for one app. */
export type WaitBounds = { jobsMax: number; jobsOfAppMax: number };

const retryMsMin = 5_000;
const retryMsMax = 15_000;

/** Counts the jobs of this process that wait for an external response or have resumed after one. */
export class WaitingJobs {
  readonly #bounds: Record<string, WaitBounds>;
  /** By task, then by app. */
  readonly #counts = new Map<string, Map<string, number>>();

  constructor(bounds: Record<string, WaitBounds>) {
    this.#bounds = bounds;
  }

  /** Whether one more job of the task and app, which may have to wait, may start. */
  hasRoom(task: string, app: string): boolean {
    const bounds = this.#bounds[task];
    if (bounds === undefined) return true;
    const apps = this.#counts.get(task) ?? new Map<string, number>();
    const total = [...apps.values()].reduce((sum, count) => sum + count, 0);
    return total < bounds.jobsMax && (apps.get(app) ?? 0) < bounds.jobsOfAppMax;
  }

  /** The delay before a retry. Random, so that jobs do not all return together. */
  retryMs(): number {
    return retryMsMin + Math.random() * (retryMsMax - retryMsMin);
  }

  /** Counts a job. Returns a function to call when it has ended. */
  add(task: string, app: string): () => void {
    const apps = this.#counts.get(task) ?? new Map<string, number>();
    this.#counts.set(task, apps);
    apps.set(app, (apps.get(app) ?? 0) + 1);
    return () => {
      const left = (apps.get(app) ?? 1) - 1;
      if (left > 0) apps.set(app, left);
      else apps.delete(app);
    };
  }
}
