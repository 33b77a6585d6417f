import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import ipaddr from 'ipaddr.js';
import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import { AppError } from '../errors.ts';
import { newUuid } from '../ids.ts';
import type { Scope } from '../tenancy/caller.ts';
import * as store from './attempts-store.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const pairFailuresPerMinute = 5;
const addressFailuresPerMinute = 10;
const mailboxFailuresPerHour = 100;
/** Each success costs the work of a password hash too. */
const pairAttemptsPerMinute = 60;
/** An attempt that is under way for longer has died with its process and counts as failed. */
const pendingMsMax = 10_000;
const waitMs = 50;
const waitsMax = 100;

/** Somebody who tries to sign in. `mailbox` is absent where no e-mail is named. */
type Attempt = { address: string; mailbox?: Scope & { email: string } };

/**
 * Limits failed attempts to sign in, for all processes together. An attempt takes its place in every window before it
 * begins, so that many at the same time are not all let through, and gives it back when it succeeds.
 */
export function createSignInLimiter({ db, clock }: { db: Database; clock: Clock }) {
  /** 429 `rate_limited` while a window is full. Waits where it is full of attempts that are under way. */
  async function takePlace(windows: store.Window[]): Promise<string> {
    const id = newUuid();
    for (let waits = 0; ; waits++) {
      const now = clock.now();
      const full = await store.takePlaces(db, windows, id, now, pendingMsMax);
      if (full === undefined) return id;
      if (!full.mayClear || waits >= waitsMax) throw tooMany(full.freeAt.getTime() - now.getTime());
      await pause(waitMs);
    }
  }

  return {
    /**
     * Runs the check of a password or token. What it throws as `invalid_credentials` is a failure that counts; after a
     * success the address is known as one of the user's.
     */
    async attempt<T extends { userId: string } | undefined>(who: Attempt, check: () => Promise<T>): Promise<T> {
      const { mailbox } = who;
      const address = networkOf(who.address);
      const isKnown = mailbox !== undefined && (await store.isKnownAddress(db, mailbox, address));
      const windows = windowsOf(address, mailbox, isKnown);
      const id = await takePlace(windows);
      let user: T;
      try {
        user = await check();
      } catch (error) {
        const failed = error instanceof AppError && error.code === 'invalid_credentials';
        await (failed ? store.keepPlaces(db, id, windows) : store.leavePlaces(db, id, windows));
        throw error;
      }
      const [counting, freed] = partition(windows);
      await store.keepPlaces(db, id, counting);
      await store.leavePlaces(db, id, freed);
      if (user && mailbox) await store.keepAddress(db, mailbox.appId, user.userId, address, clock.now());
      return user;
    },
  };
}

/** Windows that count a success, and those that do not. */
function partition(windows: store.Window[]): [store.Window[], store.Window[]] {
  return [windows.filter(({ countsAll }) => countsAll), windows.filter(({ countsAll }) => !countsAll)];
}

function windowsOf(address: string, mailbox: Attempt['mailbox'], isKnown: boolean): store.Window[] {
  const ofAddress = { bucket: `address/${address}`, max: addressFailuresPerMinute, ms: minuteMs };
  if (mailbox === undefined) return [ofAddress];
  const email = createHash('sha256').update(mailbox.email.toLowerCase()).digest('base64url');
  const name = `${mailbox.appId}/${mailbox.sandboxId}/${email}`;
  return [
    ofAddress,
    { bucket: `pair/${name}/${address}`, max: pairFailuresPerMinute, ms: minuteMs },
    { bucket: `all/${name}/${address}`, max: pairAttemptsPerMinute, ms: minuteMs, countsAll: true },
    // Whoever signed in from here before is never kept out by the failures of others.
    { bucket: `mailbox/${name}`, max: isKnown ? Number.MAX_SAFE_INTEGER : mailboxFailuresPerHour, ms: hourMs },
  ];
}

/** An IPv4 address; of an IPv6 address the /64, which one subscriber has to itself. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return `${parsed.toNormalizedString().split(':').slice(0, 4).join(':')}::/64`;
}

/** The same words whatever window is full: they say nothing about the e-mail. */
function tooMany(waitedMs: number): AppError {
  const seconds = Math.max(1, Math.ceil(waitedMs / 1_000));
  return new AppError('rate_limited', `Too many attempts to sign in. Try again in ${seconds} s.`, {
    headers: { 'retry-after': String(seconds) },
  });
}
