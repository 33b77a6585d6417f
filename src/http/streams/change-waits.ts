import { isInOpenUnit } from '../../db/database.ts';
import { callAfter } from '../../lib/clock.ts';
import type { CredentialFacts } from '../../tenancy/credential.ts';
import type { AppShares } from '../limits/app-shares.ts';
import type { EndsWithReader } from './stream.ts';

/** Who waits: with which credential, and how to learn that they are gone. */
export type WaitReader = CredentialFacts & { onGone(end: () => void): void };

/**
 * Requests that wait until a resource changes, then read it. They hold no connection to the database meanwhile. Each app has
 * its share of them.
 */
export class ChangeWaits {
  readonly #shares: AppShares;
  readonly #waits = new Map<string, Set<Wait>>();
  readonly #open = new Set<Wait>();
  #closed = false;

  constructor(shares: AppShares) {
    this.#shares = shares;
  }

  /** The waits that have not ended. */
  list(): Wait[] {
    return [...this.#open];
  }

  /** Starts to listen, so that no change is missed between a look and the wait for the next. 429 over the app's share. */
  open(appId: string, topics: readonly string[], reader: WaitReader): Wait {
    if (!this.#closed) this.#shares.take(appId);
    const wait = new Wait(reader, () => {
      this.#open.delete(wait);
      for (const topic of topics) {
        const waits = this.#waits.get(topic);
        waits?.delete(wait);
        if (waits?.size === 0) this.#waits.delete(topic);
      }
      if (held) this.#shares.release(appId);
    });
    const held = !this.#closed;
    this.#open.add(wait);
    reader.onGone(() => wait.end());
    for (const topic of topics) {
      const waits = this.#waits.get(topic);
      if (waits) waits.add(wait);
      else this.#waits.set(topic, new Set([wait]));
    }
    if (this.#closed) wait.end();
    return wait;
  }

  notify(topic: string): void {
    for (const wait of this.#waits.get(topic) ?? []) wait.wake();
  }

  /** Notifications may have been missed. */
  notifyAll(): void {
    for (const topic of this.#waits.keys()) this.notify(topic);
  }

  /** Ends every wait: the process stops. */
  close(): void {
    this.#closed = true;
    for (const wait of this.list()) wait.end();
  }
}

class Wait implements EndsWithReader {
  readonly identity: CredentialFacts['identity'];
  readonly credential: CredentialFacts['credential'];
  readonly #onClose: () => void;
  #isChanged = false;
  #isOpen = true;
  #hasEnded = false;
  #wake: () => void = () => {};

  constructor({ identity, credential }: CredentialFacts, onClose: () => void) {
    this.identity = identity;
    this.credential = credential;
    this.#onClose = onClose;
  }

  /** Whether to stop waiting: the process stops, the reader is gone, or their credential has ended. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  wake(): void {
    this.#isChanged = true;
    this.#wake();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  /** Resolves at the next change, including one since the last call, or after this time. */
  async next(ms: number): Promise<void> {
    // What others change could be locked by this request.
    if (isInOpenUnit()) throw new Error('A request waits within its transaction.');
    if (!this.#isChanged && !this.#hasEnded)
      await new Promise<void>((resolve) => {
        const cancel = callAfter(ms, resolve);
        this.#wake = () => {
          cancel();
          resolve();
        };
      });
    this.#wake = () => {};
    this.#isChanged = false;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#onClose();
  }
}
