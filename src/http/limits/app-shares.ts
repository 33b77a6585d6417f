import type { ServerResponse } from 'node:http';
import { Shares } from '../../fairness/shares.ts';
import { AppError } from '../../lib/errors.ts';
import { whenClosed } from '../closed.ts';

/** Shares of what this process holds open for apps, or for holders of another kind. */
export class AppShares {
  readonly #shares: Shares;
  /** What takes a place, in the plural, such as `event streams`. */
  readonly #things: string;
  readonly #holder: string;

  constructor(placesMax: number, things: string, holder = 'app') {
    this.#shares = new Shares(placesMax);
    this.#things = things;
    this.#holder = holder;
  }

  get taken(): number {
    return this.#shares.held;
  }

  /** Throws 429 when the app has used its share, and 503 when it has none and nothing is free. */
  take(appId: string, count = 1): void {
    const ofApp = this.#shares.of(appId);
    if (!this.#shares.fits(appId, count)) throw ofApp > 0 ? this.#shareUsed(ofApp) : this.#allUsed();
    this.#shares.add(appId, count);
  }

  /** The same, until the response ends. */
  takeUntilClosed(response: ServerResponse, appId: string, count = 1): void {
    this.take(appId, count);
    whenClosed(response, () => this.release(appId, count));
  }

  release(appId: string, count = 1): void {
    this.#shares.add(appId, -count);
  }

  #shareUsed(open: number): AppError {
    const message = `Your ${this.#holder} has ${open} open ${this.#things} in this process, which is its share. Close some first.`;
    return new AppError('rate_limited', message, { headers });
  }

  #allUsed(): AppError {
    return new AppError('unavailable', `Too many ${this.#things} are open. Try again shortly.`, { headers });
  }
}

const headers = { 'retry-after': '5' };
