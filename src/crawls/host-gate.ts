import type { Logger } from '../lib/log.ts';
import { type AppCounts, type HostClaim, type HostLedger, leaseMs, type ShareGrant } from './host-shares.ts';
import { pause } from './signals.ts';

type HostGateOptions = {
  /** The maximum number of concurrent requests to one host, over all crawls and processes. */
  concurrencyMax: number;
  /** The pause between the starts of two requests to one host, if the site requests none. */
  delayMs: number;
  log: Logger;
};

type Waiting = { app: string; go: () => void };

type App = {
  running: number;
  /**
   * When the app may be served next. If the app has requests in several processes, each of its turns counts that many
   * times.
   */
  turn: number;
  /** Whether the app sent requests since the last claim. */
  isActive: boolean;
};

type Host = ShareGrant & {
  name: string;
  running: number;
  waiting: Waiting[];
  apps: Map<string, App>;
  /** The turn of the app that was served last. */
  turn: number;
  /** The number of requests, waiting or active, whose robots.txt requires a delay between them. */
  polite: number;
  /** The highest number of active and waiting requests since the last claim. */
  peak: number;
  wanted: number;
  claimedAt: number;
  /** After this time, others may have the share. */
  validUntil: number;
};

/** How often a process without a slot claims one, how often a share is renewed, and when an unused one is released. */
const tickMs = 250;
const renewMs = 1_000;
const hostsClaimedMax = 500;
/** The number of apps that a claim names. Further apps have no weight of their own. */
const appsClaimedMax = 100;

/**
 * Delays requests so that no host receives more than its limit, whichever crawls, tenants and processes they are for.
 * A process has a share of each host that it crawls, renews it once a second, and starts requests within the share
 * without asking the database.
 */
export class HostGate {
  readonly #ledger: HostLedger;
  readonly #options: HostGateOptions;
  readonly #hosts = new Map<string, Host>();
  readonly #due = new Set<Host>();
  #claiming = false;
  #failedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(ledger: HostLedger, options: HostGateOptions) {
    this.#ledger = ledger;
    this.#options = options;
  }

  /**
   * Waits for the app's turn at the host and runs `request` in it. `delayMs` is the delay that robots.txt requires.
   * If it is set, requests run one after another.
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
    const none = { running: 0, turn: 0, polite: 0, peak: 0, wanted: 0, claimedAt: 0, validUntil: 0 };
    const share = { allowed: 0, held: 0, isShared: false, elsewhere: {} };
    const host: Host = { name, waiting: [], apps: new Map(), ...none, ...share };
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
        const served = appOf(host, app);
        served.running += 1;
        host.turn = turnOf(host, served);
        served.turn = host.turn + (host.elsewhere[app]?.processes ?? 1);
        resolve();
      };
      const giveUp = (): void => {
        host.waiting.splice(host.waiting.indexOf(waiting), 1);
        reject(signal.reason);
      };
      const waiting = { app, go };
      signal.addEventListener('abort', giveUp, { once: true });
      host.waiting.push(waiting);
      const known = appOf(host, app);
      // This app gets the last free slot of all processes if it has none.
      if (host.isShared && !known.isActive) this.#claimSoon(host);
      known.isActive = true;
      this.#admit(host);
    });
  }

  /** Starts the requests that fit the share, and claims a different share if it does not fit. */
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

  /** Includes room to grow. The rest is left to other processes. */
  #wantedOf(host: Host): number {
    return Math.min(this.#limitOf(host), 2 * host.peak);
  }

  #tick(): void {
    const now = performance.now();
    for (const host of this.#hosts.values()) {
      // The process waits for a slot, or keeps one that others need.
      const isUrgent = host.running === 0 && (host.waiting.length > 0 || host.isShared);
      if (isUrgent || now - host.claimedAt >= renewMs) this.#claimSoon(host);
    }
    if (this.#hosts.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Claims made at the same moment share one statement. */
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
      // If the process only releases shares, for example because it is stopping, the failure does no harm.
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

  /** Undefined if nothing used the host since the last claim. Releases take effect before the claim is sent. */
  #claimOf(host: Host, now: number): HostClaim['claim'] {
    host.peak = Math.max(host.peak, host.running + host.waiting.length);
    host.wanted = this.#wantedOf(host);
    host.allowed = now < host.validUntil ? Math.min(host.allowed, host.wanted) : 0;
    host.claimedAt = now;
    host.peak = host.running + host.waiting.length;
    const apps = takeActiveApps(host);
    if (host.wanted > 0)
      return { inUse: Math.max(host.running, host.allowed), wanted: host.wanted, slotsMax: this.#limitOf(host), apps };
    host.validUntil = 0;
    return undefined;
  }
}

function appOf(host: Host, app: string): App {
  const known = host.apps.get(app) ?? { running: 0, turn: 0, isActive: false };
  host.apps.set(app, known);
  return known;
}

/** An app gets no credit for the time it was idle. */
function turnOf(host: Host, { turn }: App): number {
  return Math.max(host.turn, turn);
}

/** The apps that have requests now or have sent some since the last call. */
function takeActiveApps(host: Host): AppCounts {
  const waiting = new Set(host.waiting.map(({ app }) => app));
  const active = [...host.apps].filter(([, { isActive }]) => isActive);
  for (const [name, app] of host.apps) {
    app.isActive = app.running > 0 || waiting.has(name);
    if (!app.isActive && app.turn <= host.turn) host.apps.delete(name);
  }
  return Object.fromEntries(active.slice(0, appsClaimedMax).map(([name, { running }]) => [name, running]));
}

/**
 * Chooses the request that gets the next slot: from the app with the fewest active requests in all processes, and
 * among those from the app whose turn it is. The last free slot is reserved for an app that has none, so a host that
 * hangs for one app still has a slot for the next. If processes share the host, the division between them reserves
 * that slot.
 */
function takeNext(host: Host, slots: number): Waiting | undefined {
  if (host.running >= slots) return undefined;
  const isLast = host.running === slots - 1 && !host.isShared;
  let next: { waiting: Waiting; active: number; turn: number } | undefined;
  for (const waiting of host.waiting) {
    const app = appOf(host, waiting.app);
    if (isLast && app.running > 0) continue;
    const active = app.running + (host.elsewhere[waiting.app]?.running ?? 0);
    const turn = turnOf(host, app);
    if (next === undefined || active < next.active || (active === next.active && turn < next.turn))
      next = { waiting, active, turn };
  }
  if (next !== undefined) host.waiting.splice(host.waiting.indexOf(next.waiting), 1);
  return next?.waiting;
}

function isIdle(host: Host): boolean {
  return host.running === 0 && host.waiting.length === 0;
}
