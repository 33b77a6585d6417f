const recentMs = 1_000;

/** Which apps have sent requests within the last second: what an app does in bulk gives way to the requests of others. */
export class RecentApps {
  readonly nowMs: () => number;
  /** The app of the last request, and the app that sent a request before it. */
  #last = { app: '', atMs: Number.NEGATIVE_INFINITY };
  #other = this.#last;

  /** @param nowMs milliseconds of a clock that never steps back */
  constructor(nowMs: () => number = () => performance.now()) {
    this.nowMs = nowMs;
  }

  /** Notes that an app has sent a request. */
  note(app: string): void {
    if (app !== this.#last.app) this.#other = this.#last;
    this.#last = { app, atMs: this.nowMs() };
  }

  /** Whether another app than this one has sent a request within the last second. */
  hasOthers(app: string): boolean {
    const { atMs } = this.#last.app === app ? this.#other : this.#last;
    return this.nowMs() - atMs < recentMs;
  }
}

/** The apps that send requests to this process: all of them share one event loop. */
export const recentApps = new RecentApps();
