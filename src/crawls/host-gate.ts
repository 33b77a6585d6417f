import type { Logger } from '../log.ts';
import { type HostClaim, type HostLedger, leaseMs, type ShareGrant } from './host-shares.ts';
import { pause } from './signals.ts';

type HostGateOptions = {
  /** Concurrent requests to one host, over all crawls and processes. */
  concurrencyMax: number;
  /** Pause between the starts of two requests to one host when the site requests none. */
  delayMs: number;
  log: Logger;
};

type Waiting = { app: string; go: () => void };

type Host = ShareGrant & {
  name: string;
  running: number;
  waiting: Waiting[];
  /** Of each app: its requests that run, and when it last got a slot. */
  apps: Map<string, { running: number; servedAt: number }>;
  /** Requests, waiting or active, whose robots.txt requires a delay between them. */
  polite: number;
  /** The most that were active or waiting since the last claim. */
  peak: number;
  wanted: number;
  claimedAt: number;
  /** After this time the share may belong to others. */
  validUntil: number;
};

/** How often a process without a slot claims one, how often a share is renewed, and when an unused one is released. */
const tickMs = 250;
const renewMs = 1_000;
const hostsClaimedMax = 500;

/**
 * Delays requests so that no host receives more than its limit, whichever crawls, tenants and processes they are for.
 * A process has a share of each host that it crawls, renews it once a second, and starts requests within it without
 * asking the database.
 */
export class HostGate {
  readonly #ledger: HostLedger;
  readonly #options: HostGateOptions;
  readonly #hosts = new Map<string, Host>();
  readonly #due = new Set<Host>();
  #claiming = false;
  #served = 0;
  #failedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(ledger: HostLedger, options: HostGateOptions) {
    this.#ledger = ledger;
    this.#options = options;
  }

  /**
   * Waits for the app's turn at the host and runs `request` in it. `delayMs` is the delay that robots.txt requires: with it,
   * requests run one after another.
   */
  async run<T>(
    { name, app }: { name: string; app: string },
    delayMs: number | undefined,
    signal: AbortSignal,
    request: () => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const host = this.#hostOf(name);
    const polite = delayMs ? 1 : 0;
    host.polite += polite;
    try {
      await this.#enter(host, app, signal);
      try {
        const pauseMs = Math.max(delayMs ?? 0, this.#options.delayMs);
        const waitMs = pauseMs === 0 ? 0 : await this.#ledger.takeTurn(name, pauseMs);
        if (waitMs > 0) await pause(waitMs, signal);
        signal.throwIfAborted();
        return await request();
      } finally {
        host.running -= 1;
        appOf(host, app).running -= 1;
      }
    } finally {
      host.polite -= polite;
      this.#admit(host);
    }
  }

  #hostOf(name: string): Host {
    const known = this.#hosts.get(name);
    if (known !== undefined) return known;
    const none = { running: 0, polite: 0, peak: 0, wanted: 0, allowed: 0, held: 0, claimedAt: 0, validUntil: 0 };
    const host: Host = { name, waiting: [], apps: new Map(), ...none };
    this.#hosts.set(name, host);
    this.#timer ??= setInterval(() => this.#tick(), tickMs).unref();
    return host;
  }

  /** Waits for a slot. An aborted request takes none. */
  #enter(host: Host, app: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', giveUp);
        host.running += 1;
        const held = appOf(host, app);
        held.running += 1;
        held.servedAt = ++this.#served;
        resolve();
      };
      const giveUp = (): void => {
        host.waiting.splice(host.waiting.indexOf(waiting), 1);
        reject(signal.reason);
      };
      const waiting = { app, go };
      signal.addEventListener('abort', giveUp, { once: true });
      host.waiting.push(waiting);
      this.#admit(host);
    });
  }

  /** Starts what the share allows, and claims a different share when this one does not fit. */
  #admit(host: Host): void {
    host.peak = Math.max(host.peak, host.running + host.waiting.length);
    const isValid = performance.now() < host.validUntil;
    const limit = this.#limitOf(host);
    const slots = isValid ? Math.min(limit, host.allowed) : 0;
    for (let next = takeNext(host, slots); next !== undefined; next = takeNext(host, slots)) next.go();
    const needsMore = host.waiting.length > 0 && (!isValid || this.#wantedOf(host) > host.wanted);
    if (needsMore || host.held > Math.max(host.running, host.allowed)) this.#claimSoon(host);
  }

  #limitOf(host: Host): number {
    return host.polite > 0 ? 1 : this.#options.concurrencyMax;
  }

  /** Room to grow; the rest is for other processes. */
  #wantedOf(host: Host): number {
    return Math.min(this.#limitOf(host), 2 * host.peak);
  }

  #tick(): void {
    const now = performance.now();
    for (const host of this.#hosts.values()) {
      const isStarving = host.running === 0 && host.waiting.length > 0;
      if (isStarving || now - host.claimedAt >= renewMs) this.#claimSoon(host);
    }
    if (this.#hosts.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Claims of the same moment share one statement. */
  #claimSoon(host: Host): void {
    if (performance.now() - this.#failedAt < renewMs) return;
    this.#due.add(host);
    if (this.#claiming) return;
    this.#claiming = true;
    setImmediate(() => void this.#claimDue());
  }

  async #claimDue(): Promise<void> {
    try {
      while (this.#due.size > 0) await this.#claim([...this.#due].slice(0, hostsClaimedMax));
    } catch (error) {
      // Shares stay valid for a while, and the next tick claims again.
      this.#failedAt = performance.now();
      this.#due.clear();
      // Releasing a share loses nothing, as when the process stops.
      if ([...this.#hosts.values()].some((host) => !isIdle(host)))
        this.#options.log.warn({ err: error }, 'Could not renew the shares of hosts');
    } finally {
      this.#claiming = false;
    }
  }

  async #claim(hosts: Host[]): Promise<void> {
    const sentAt = performance.now();
    const claims = hosts.map((host) => {
      this.#due.delete(host);
      return { host: host.name, claim: this.#claimOf(host, sentAt) };
    });
    const grants = await this.#ledger.claim(claims).finally(() => {
      hosts.forEach((host, at) => {
        if (claims[at]?.claim === undefined && isIdle(host)) this.#hosts.delete(host.name);
      });
    });
    for (const host of hosts) {
      const grant = grants.get(host.name);
      if (grant === undefined) continue;
      Object.assign(host, grant);
      host.validUntil = sentAt + leaseMs - renewMs;
      this.#admit(host);
    }
  }

  /** Undefined when nothing used the host since the last claim. Releases take effect before the claim is sent. */
  #claimOf(host: Host, now: number): HostClaim['claim'] {
    host.peak = Math.max(host.peak, host.running + host.waiting.length);
    host.wanted = this.#wantedOf(host);
    host.allowed = now < host.validUntil ? Math.min(host.allowed, host.wanted) : 0;
    host.claimedAt = now;
    host.peak = host.running + host.waiting.length;
    if (host.wanted > 0)
      return { inUse: Math.max(host.running, host.allowed), wanted: host.wanted, slotsMax: this.#limitOf(host) };
    host.validUntil = 0;
    return undefined;
  }
}

function appOf(host: Host, app: string): { running: number; servedAt: number } {
  const known = host.apps.get(app) ?? { running: 0, servedAt: 0 };
  host.apps.set(app, known);
  return known;
}

/**
 * The request that gets the next slot: of the app with the fewest running, then of the one that was served longest ago.
 * The last free slot is only for an app that has none: a host that hangs for one app still has a slot for the next.
 */
function takeNext(host: Host, slots: number): Waiting | undefined {
  if (host.running >= slots) return undefined;
  const isLast = host.running === slots - 1;
  let next: Waiting | undefined;
  for (const waiting of host.waiting) {
    const { running, servedAt } = appOf(host, waiting.app);
    if (isLast && running > 0) continue;
    const best = next && appOf(host, next.app);
    if (best === undefined || running < best.running || (running === best.running && servedAt < best.servedAt))
      next = waiting;
  }
  if (next !== undefined) host.waiting.splice(host.waiting.indexOf(next), 1);
  return next;
}

function isIdle(host: Host): boolean {
  return host.running === 0 && host.waiting.length === 0;
}
