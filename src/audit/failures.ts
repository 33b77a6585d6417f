import { newUuid } from '../lib/ids.ts';
import type { AuditEntry } from './store.ts';

const windowMs = 60_000;
const addressesMax = 20;
const entriesMax = 10_000;

/**
 * Failed attempts by unidentified callers. Attempts within a minute with the same action, key, outcome and address share
 * one entry, so that a flood becomes a count instead of a row for each attempt.
 */
export class FailureCounter {
  readonly #entries = new Map<string, AuditEntry & { attempts: number; written: number; alike: string }>();
  /** The number of addresses that have an entry, by kind of attempt. */
  readonly #addresses = new Map<string, number>();

  /** Returns false if the attempt was not counted because there are too many different ones. */
  count(entry: AuditEntry): boolean {
    this.#forgetBefore(entry.at);
    const { appId, sandboxId, actorId, action, status, address } = entry;
    const alike = `${appId}/${sandboxId}/${actorId}/${action}/${status}`;
    const known = this.#entries.get(`${alike}/${address}`);
    if (known) return this.#add(known);
    const addresses = this.#addresses.get(alike) ?? 0;
    const from = addresses < addressesMax ? address : null;
    const name = `${alike}/${from}`;
    const other = this.#entries.get(name);
    if (other) return this.#add(other);
    if (this.#entries.size >= entriesMax) return false;
    this.#addresses.set(alike, addresses + 1);
    this.#entries.set(name, { ...entry, id: newUuid(), resource: null, address: from, attempts: 1, written: 0, alike });
    return true;
  }

  /** Returns entries whose count has grown since this was last called. */
  takeUnsaved(): AuditEntry[] {
    const unwritten = [...this.#entries.values()].filter(({ attempts, written }) => attempts > written);
    return unwritten.map((entry) => {
      entry.written = entry.attempts;
      const { written: _written, alike: _alike, ...row } = entry;
      return row;
    });
  }

  #add(entry: { attempts: number }): true {
    entry.attempts += 1;
    return true;
  }

  #forgetBefore(now: Date): void {
    for (const [name, { at, attempts, written, alike }] of this.#entries) {
      if (now.getTime() - at.getTime() < windowMs) return;
      if (attempts > written) continue;
      this.#entries.delete(name);
      const left = (this.#addresses.get(alike) ?? 0) - 1;
      if (left > 0) this.#addresses.set(alike, left);
      else this.#addresses.delete(alike);
    }
  }
}
