import { Shares } from '../../fairness/shares.ts';
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
