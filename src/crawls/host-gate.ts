import { setTimeout as wait } from 'node:timers/promises';

type HostGateOptions = {
  /** Requests to one host at the same time, over all crawls of this process. */
  concurrencyMax: number;
  /** Pause between the starts of two requests to one host, when the site asks for none. */
  delayMs: number;
};

type Host = { running: number; nextAtMs: number; waiting: (() => void)[] };

/** Holds requests back so that no host gets more than its share, whichever crawls and tenants they are for. */
export class HostGate {
  readonly #options: HostGateOptions;
  readonly #hosts = new Map<string, Host>();

  constructor(options: HostGateOptions) {
    this.#options = options;
  }

  /**
   * Waits for a turn at the host and runs `request` in it. `delayMs` is what robots.txt asks for: with it, requests
   * follow one another.
   */
  async run<T>(host: string, delayMs: number | undefined, signal: AbortSignal, request: () => Promise<T>): Promise<T> {
    const gate = this.#hosts.get(host) ?? { running: 0, nextAtMs: 0, waiting: [] };
    this.#hosts.set(host, gate);
    if (this.#hosts.size > hostsKept) this.#forgetIdle();
    const concurrency = delayMs ? 1 : this.#options.concurrencyMax;
    while (gate.running >= concurrency) await turn(gate, signal);
    signal.throwIfAborted();
    gate.running += 1;
    try {
      const pause = Math.max(delayMs ?? 0, this.#options.delayMs);
      const now = performance.now();
      const startAt = Math.max(now, gate.nextAtMs);
      gate.nextAtMs = startAt + pause;
      if (startAt > now) await wait(startAt - now, undefined, { signal });
      return await request();
    } finally {
      gate.running -= 1;
      gate.waiting.shift()?.();
      if (gate.running === 0 && gate.waiting.length === 0 && gate.nextAtMs <= performance.now())
        this.#hosts.delete(host);
    }
  }

  #forgetIdle(): void {
    const now = performance.now();
    for (const [name, host] of this.#hosts)
      if (host.running === 0 && host.waiting.length === 0 && host.nextAtMs <= now) this.#hosts.delete(name);
  }
}

const hostsKept = 1_000;

/** Waits until somebody leaves. Whoever gives up meanwhile takes nobody's turn. */
function turn(host: Host, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const go = (): void => {
      signal.removeEventListener('abort', giveUp);
      resolve();
    };
    const giveUp = (): void => {
      host.waiting.splice(host.waiting.indexOf(go), 1);
      reject(signal.reason);
    };
    host.waiting.push(go);
    signal.addEventListener('abort', giveUp, { once: true });
  });
}
