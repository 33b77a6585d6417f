import type { Db } from '../db/database.ts';
import { AppError, type ErrorCode } from '../lib/errors.ts';
import type { Scope } from './caller.ts';

/** What a space (production or one sandbox), or one owner in it, may have only so many of. */
type Room = {
  /** What is counted, in the plural, such as `webhooks`. */
  things: string;
  max: number;
  /** The owner, if each has its own room. */
  of?: string;
  /** The sentence for a caller who finds no room, if this is not the room of a whole space. */
  message?: string;
};

/**
 * Throws 422 `quota_exceeded` if there is no room for one more. Until the transaction ends, others that ask for the same
 * room wait, so concurrent callers never exceed it: `count` must be a statement of its own, and the transaction inserts
 * what it asked for.
 */
export async function requireRoom(tx: Db, scope: Scope, room: Room, count: () => Promise<number>): Promise<void> {
  await lockRoom(tx, scope, room);
  const used = await count();
  if (used >= room.max) throw noRoom(room, used);
}

/** Waits for others that ask for the same room, until the transaction ends. */
export async function lockRoom(tx: Db, { appId, sandboxId }: Scope, { things, of = '' }: Pick<Room, 'things' | 'of'>) {
  const name = `room/${things}/${appId}/${sandboxId}/${of}`;
  await tx`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`;
}

export function noRoom(
  { things, max, message = `An app or a sandbox has at most ${max} ${things}. Delete one first.` }: Omit<Room, 'of'>,
  used: number,
  code: ErrorCode = 'quota_exceeded',
): AppError {
  return new AppError(code, message, {
    details: { quota: things.replaceAll(' ', '_'), limit: max, used, requested: 1 },
    ...(code === 'rate_limited' ? { headers: { 'retry-after': '60' } } : {}),
  });
}

/** What a space and one caller in it hold of something, after the caller took what it asks for. */
export type Holdings = { ofSpace: number; ofCaller: number };

/**
 * Whether a caller may hold this much. A caller that acts for the whole app may use everything. A user, an agent or an
 * inbound URL may hold as much as remains free: one of them gets half, two get a third each, and something always
 * remains for the next one and for the app.
 */
export function fitsShare({ ofSpace, ofCaller }: Holdings, max: number, isWholeApp: boolean): boolean {
  return ofSpace <= max && (isWholeApp || ofCaller <= max - ofSpace);
}
