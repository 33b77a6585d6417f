import { AppError } from '../errors.ts';

/**
 * Counts what this process holds open for each app. An app may have as many as are still free: a single app gets half
 * of the places, two get a third each, so the next app always finds room.
 */
export class AppShares {
  readonly #placesMax: number;
  /** What takes a place, in the plural, such as `event streams`. */
  readonly #things: string;
  readonly #byApp = new Map<string, number>();
  #taken = 0;

  constructor(placesMax: number, things: string) {
    this.#placesMax = placesMax;
    this.#things = things;
  }

  /** Throws 429 when the app has used its share, and 503 when it has none and nothing is free. */
  take(appId: string, count = 1): void {
    const ofApp = this.#byApp.get(appId) ?? 0;
    const free = this.#placesMax - this.#taken;
    if (ofApp + count > free) throw ofApp > 0 ? this.#shareUsed(ofApp) : this.#allUsed();
    this.#taken += count;
    this.#byApp.set(appId, ofApp + count);
  }

  release(appId: string, count = 1): void {
    const left = (this.#byApp.get(appId) ?? 0) - count;
    this.#taken -= count;
    if (left > 0) this.#byApp.set(appId, left);
    else this.#byApp.delete(appId);
  }

  #shareUsed(open: number): AppError {
    const message = `Your app has ${open} open ${this.#things} in this process, which is its share. Close some first.`;
    return new AppError('rate_limited', message, { headers });
  }

  #allUsed(): AppError {
    return new AppError('unavailable', `Too many ${this.#things} are open. Try again shortly.`, { headers });
  }
}

const headers = { 'retry-after': '5' };
