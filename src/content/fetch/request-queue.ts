import { FetchError } from './errors.ts';

export type RequestLimits = {
  /** The maximum number of concurrent requests in this process. */
  requestsMax: number;
  /** The shares of one app, of one host, and of one app at one host. */
  ofAppMax: number;
  ofHostMax: number;
  ofAppAtHostMax: number;
};

type Queue = { app: string; host: string; open: number; waiting: (() => void)[] };

/**
 * Takes turns for requests to other hosts: an unresponsive host uses up only the share of the apps that request it,
 * and delays no other app and no other host.
 */
export class RequestQueue {
  readonly #bounds: RequestLimits;
  /** Queues by app and host. Entries without waiting or open requests are removed. */
  readonly #queues = new Map<string, Queue>();
  readonly #ofApp = new Map<string, number>();
  readonly #ofHost = new Map<string, number>();
  #open = 0;

  constructor(bounds: RequestLimits) {
    this.#bounds = bounds;
  }

  /** Waits for a turn. Returns a function that ends the turn. Throws FetchError `aborted`. */
  async take(app: string, host: string, signal: AbortSignal): Promise<() => void> {
    const key = `${app} ${host}`;
    const queue = this.#queues.get(key) ?? { app, host, open: 0, waiting: [] };
    this.#queues.set(key, queue);
    if (queue.waiting.length > 0 || !this.#mayOpen(queue)) await this.#wait(key, queue, signal);
    else this.#count(queue, 1);
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#count(queue, -1);
      this.#forgetIdle(key, queue);
      this.#openNext();
    };
  }

  #wait(key: string, queue: Queue, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', giveUp);
        this.#count(queue, 1);
        resolve();
      };
      const giveUp = (): void => {
        queue.waiting.splice(queue.waiting.indexOf(go), 1);
        this.#forgetIdle(key, queue);
        reject(new FetchError('aborted', 'The request was aborted.'));
      };
      if (signal.aborted) return giveUp();
      queue.waiting.push(go);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  /**
   * Opens all requests that may be opened: one that ends may make room for its app at one host and for another app at
   * another host.
   */
  #openNext(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) next.waiting.shift()?.();
  }

  /** Among the eligible apps, the one with the fewest open requests goes first. */
  #next(): Queue | undefined {
    let next: Queue | undefined;
    for (const queue of this.#queues.values()) {
      if (queue.waiting.length === 0 || !this.#mayOpen(queue)) continue;
      if (next === undefined || this.#openOf(queue.app) < this.#openOf(next.app)) next = queue;
    }
    return next;
  }

  #openOf(app: string): number {
    return this.#ofApp.get(app) ?? 0;
  }

  #mayOpen({ app, host, open }: Queue): boolean {
    const { requestsMax, ofAppMax, ofHostMax, ofAppAtHostMax } = this.#bounds;
    return (
      this.#open < requestsMax &&
      open < ofAppAtHostMax &&
      this.#openOf(app) < ofAppMax &&
      (this.#ofHost.get(host) ?? 0) < ofHostMax
    );
  }

  #count(queue: Queue, by: 1 | -1): void {
    queue.open += by;
    this.#open += by;
    add(this.#ofApp, queue.app, by);
    add(this.#ofHost, queue.host, by);
  }

  #forgetIdle(key: string, queue: Queue): void {
    if (queue.open === 0 && queue.waiting.length === 0) this.#queues.delete(key);
  }
}

function add(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
