import type { ServerResponse } from 'node:http';
import type { Shares } from '../../fairness/shares.ts';
import { whenClosed } from '../closed.ts';

type UnreadOptions = {
  /** What the streams of all apps hold in this process. */
  memory: Shares;
  /** How long a reader may read nothing of what waits for it. */
  stalledMs: number;
  /** The same while the reader's app has used its share. */
  stalledInFullShareMs: number;
};

/** The streams of one app that have unread bytes, and those that wait for room. */
type Streams = { holding: Set<Outlet>; waiting: Set<Outlet> };

/**
 * Counts what event streams have sent and their readers have not read, by app. While an app has used its share, its
 * streams wait until their readers have read or were disconnected. Every stream may exceed a limit by one event.
 */
export class UnreadBytes {
  readonly #options: UnreadOptions;
  readonly #byApp = new Map<string, Streams>();
  readonly #memory: Shares;

  constructor(options: UnreadOptions) {
    this.#options = options;
    this.#memory = options.memory;
  }

  get bytes(): number {
    return this.#memory.held;
  }

  /** @param onReady called when a stream that was full can be written to. */
  open(response: ServerResponse, appId: string, onReady: () => void): Outlet {
    const outlet = new Outlet(this, response, appId, onReady);
    whenClosed(response, () => this.count(outlet, 0));
    return outlet;
  }

  /** Closes the connections of readers that stall. */
  closeStalled(): void {
    const now = performance.now();
    const { stalledMs, stalledInFullShareMs } = this.#options;
    for (const [appId, { holding }] of this.#byApp) {
      const patienceMs = this.isFull(appId) ? Math.min(stalledMs, stalledInFullShareMs) : stalledMs;
      for (const outlet of holding) {
        outlet.stalledAtMs ??= now;
        if (now - outlet.stalledAtMs > patienceMs) outlet.response.destroy();
      }
    }
  }

  isFull(appId: string): boolean {
    return this.#memory.of(appId) > 0 && !this.#memory.fits(appId);
  }

  /** Calls the stream back when its app has less unread data. Some of the unread data must be its own. */
  wait(outlet: Outlet): void {
    this.#byApp.get(outlet.appId)?.waiting.add(outlet);
  }

  count(outlet: Outlet, bytes: number): void {
    const { appId } = outlet;
    const streams = this.#byApp.get(appId) ?? { holding: new Set(), waiting: new Set() };
    this.#byApp.set(appId, streams);
    this.#memory.add(appId, bytes - outlet.bytes);
    outlet.bytes = bytes;
    if (bytes > 0) streams.holding.add(outlet);
    else streams.holding.delete(outlet);
    if (this.#memory.of(appId) === 0) this.#byApp.delete(appId);
    if (streams.waiting.size === 0 || this.isFull(appId)) return;
    const ready = [...streams.waiting];
    streams.waiting.clear();
    for (const each of ready) each.onReady();
  }
}

/** The response of one stream. */
export class Outlet {
  readonly response: ServerResponse;
  readonly appId: string;
  readonly onReady: () => void;
  readonly #unread: UnreadBytes;
  /** The bytes that were sent and that the connection has not taken. */
  bytes = 0;
  /** When a check first found bytes here after the connection last took some. */
  stalledAtMs: number | undefined;
  #isFull = false;

  constructor(unread: UnreadBytes, response: ServerResponse, appId: string, onReady: () => void) {
    this.#unread = unread;
    this.response = response;
    this.appId = appId;
    this.onReady = onReady;
  }

  /** Whether the reader or its app has too much unread data. The stream is then called back later. */
  get isFull(): boolean {
    this.#isFull = this.bytes >= unreadBytesOfStreamMax;
    if (this.#isFull) return true;
    if (!this.#unread.isFull(this.appId)) return false;
    this.#unread.wait(this);
    return true;
  }

  write(text: string): void {
    this.response.write(text, (error) => {
      if (error) return;
      this.stalledAtMs = undefined;
      this.#count();
      if (!this.#isFull || this.bytes >= unreadBytesOfStreamMax) return;
      this.#isFull = false;
      this.onReady();
    });
    this.#count();
  }

  #count(): void {
    const { response } = this;
    this.#unread.count(this, response.destroyed ? 0 : response.writableLength);
  }
}

/** With this much unread data, a stream waits before it sends the next event. */
const unreadBytesOfStreamMax = 64 * 1024;
