import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { networkOf } from '../lib/network.ts';
import type { Scope } from '../tenancy/caller.ts';
import { foldEmail } from '../tenancy/email.ts';
import * as store from './limits-store.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const pairFailuresPerMinute = 5;
const addressFailuresPerMinute = 10;
const mailboxFailuresPerHour = 100;
/** Successes are also limited, because each costs a password hash. */
const pairAttemptsPerMinute = 60;
/** A pending attempt older than this was lost with its process and counts as failed. */
const pendingMsMax = 10_000;
const waitMs = 50;
const waitsMax = 100;

/** The origin of a sign-in attempt. `mailbox` is absent if the attempt names no e-mail address. */
type Attempt = { address: string; mailbox?: Scope & { email: string } };

/**
 * Limits failed sign-in attempts across all processes, and all cells: `directory` counts them. An attempt reserves a slot in every window before it starts, so
 * that concurrent attempts cannot exceed the limit, and releases the slots when it succeeds.
 */
export function createSignInLimiter({ db, directory, clock }: { db: Database; directory: Database; clock: Clock }) {
  /** 429 `rate_limited` while a window is full of failures. Waits while it is full of attempts in progress. */
  async function reserveAttempt(windows: store.AttemptWindow[]): Promise<string> {
    const id = newUuid();
    for (let waits = 0; ; waits++) {
      const now = clock.now();
      const full = await store.reserveAttempt(directory, windows, id, now, pendingMsMax);
      if (full === undefined) return id;
      if (!full.mayClear || waits >= waitsMax) throw tooMany('sign-in attempts', full.freeAt.getTime() - now.getTime());
      await pause(waitMs);
    }
  }

  return {
    /** Counts a request of any outcome. 429 if the address sent too many of its kind in a minute. */
    async takeTurn(what: string, from: string, perMinute: number): Promise<void> {
      const now = clock.now();
      const windows = [{ bucket: `${what}/${networkOf(from)}`, max: perMinute, ms: minuteMs, countsAll: true }];
      const full = await store.reserveAttempt(directory, windows, newUuid(), now, pendingMsMax);
      if (full !== undefined) throw tooMany('requests', full.freeAt.getTime() - now.getTime());
    },

    /**
     * Runs the check of a password or token. `invalid_credentials` thrown by it counts as a failure; after a success,
     * the address is known for this user.
     */
    async attempt<T extends { userId: string } | undefined>(who: Attempt, check: () => Promise<T>): Promise<T> {
      const { mailbox } = who;
      const address = networkOf(who.address);
      const isKnown = mailbox !== undefined && (await store.isKnownAddress(db, mailbox, address));
      const windows = windowsOf(address, mailbox, isKnown);
      const id = await reserveAttempt(windows);
      let user: T;
      try {
        user = await check();
      } catch (error) {
        const failed = error instanceof AppError && error.code === 'invalid_credentials';
        await (failed ? store.countFailure(directory, id, windows) : store.releaseAttempt(directory, id, windows));
        throw error;
      }
      const [counting, freed] = partition(windows);
      await store.countFailure(directory, id, counting);
      await store.releaseAttempt(directory, id, freed);
      if (user && mailbox) await store.recordAddress(db, mailbox.appId, user.userId, address, clock.now());
      return user;
    },
  };
}

/** Splits windows into those that also count successes and those that count only failures. */
function partition(windows: store.AttemptWindow[]): [store.AttemptWindow[], store.AttemptWindow[]] {
  return [windows.filter(({ countsAll }) => countsAll), windows.filter(({ countsAll }) => !countsAll)];
}

function windowsOf(address: string, mailbox: Attempt['mailbox'], isKnown: boolean): store.AttemptWindow[] {
  const ofAddress = { bucket: `address/${address}`, max: addressFailuresPerMinute, ms: minuteMs };
  if (mailbox === undefined) return [ofAddress];
  const email = hash('sha256', foldEmail(mailbox.email), 'base64url');
  const name = `${mailbox.appId}/${mailbox.sandboxId}/${email}`;
  return [
    ofAddress,
    { bucket: `pair/${name}/${address}`, max: pairFailuresPerMinute, ms: minuteMs },
    { bucket: `all/${name}/${address}`, max: pairAttemptsPerMinute, ms: minuteMs, countsAll: true },
    // Failures from elsewhere do not lock out an address from which the user has signed in before.
    { bucket: `mailbox/${name}`, max: isKnown ? Number.MAX_SAFE_INTEGER : mailboxFailuresPerHour, ms: hourMs },
  ];
}

/** The same message for every window, so that it reveals nothing about the e-mail. */
function tooMany(what: string, waitedMs: number): AppError {
  const seconds = Math.max(1, Math.ceil(waitedMs / 1_000));
  return new AppError('rate_limited', `Too many ${what}. Try again in ${seconds} s.`, {
    headers: { 'retry-after': String(seconds) },
  });
}
