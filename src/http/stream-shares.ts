import { AppError } from '../errors.ts';

/**
 * Counts this process's open event streams by app. An app may open as many streams as are still free: a single app
 * gets half of them, two get a third each, so the next app always finds room.
 */
export class StreamShares {
  readonly #streamsMax: number;
  readonly #byApp = new Map<string, number>();
  #open = 0;

  constructor(streamsMax: number) {
    this.#streamsMax = streamsMax;
  }

  take(appId: string): void {
    const ofApp = this.#byApp.get(appId) ?? 0;
    const free = this.#streamsMax - this.#open;
    if (ofApp + 1 > free) throw ofApp > 0 ? shareUsed(ofApp) : allUsed();
    this.#open += 1;
    this.#byApp.set(appId, ofApp + 1);
  }

  release(appId: string): void {
    const left = (this.#byApp.get(appId) ?? 0) - 1;
    this.#open -= 1;
    if (left > 0) this.#byApp.set(appId, left);
    else this.#byApp.delete(appId);
  }
}

const headers = { 'retry-after': '5' };

function shareUsed(open: number): AppError {
  const message = `Your app has ${open} open event streams in this process, which is its share. Close some first.`;
  return new AppError('rate_limited', message, { headers });
}

function allUsed(): AppError {
  return new AppError('unavailable', 'Too many event streams are open. Try again shortly.', { headers });
}
