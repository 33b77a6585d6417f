import type { Database } from '../../db/database.ts';
import { Shares } from '../../fairness/shares.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { UserCaller } from '../../tenancy/caller.ts';
import type { CredentialFacts } from '../../tenancy/credential.ts';
import { AppShares } from '../limits/app-shares.ts';

/** What all event streams of a process share, whatever their database. */
export type StreamBudget = { streams: AppShares; waits: AppShares; unread: Shares };

/**
 * @param limits.streamsMax the maximum number of open streams of all apps
 * @param limits.unreadBytesMax memory for what the readers of all streams have not read yet
 */
export function createStreamBudget(limits: { streamsMax: number; unreadBytesMax: number }): StreamBudget {
  return {
    streams: new AppShares(limits.streamsMax, 'event streams'),
    waits: new AppShares(limits.streamsMax, 'waiting requests'),
    unread: new Shares(limits.unreadBytesMax),
  };
}

export type StreamHubOptions = {
  /** A direct connection (no transaction pooler), for LISTEN. */
  listenDatabase: Database;
  log: Logger;
  streamSecondsMax: number;
  /** What the streams of this process share. */
  budget: StreamBudget;
  heartbeatMs?: number;
  /** How long a reader may stall before its connection is closed. */
  stalledMs?: number;
  /** Decides when a credential expires. By default the system's clock. */
  clock?: Clock;
  /** Returns the readers whose credential has expired or been revoked. Without it, no credential ever ends. */
  findEnded?<T extends CredentialFacts>(readers: readonly T[]): Promise<T[]>;
  /**
   * Loads these users with their current rights, in the same order. Without it, no reader ever loses sight of a
   * resource.
   */
  loadUsers?(users: readonly UserCaller[]): Promise<(UserCaller | undefined)[]>;
};
