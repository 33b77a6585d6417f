import type { Db } from '../../db/database.ts';
import { lockRoom, noRoom } from '../../tenancy/room.ts';
import type { AutomationRow } from '../definitions/store.ts';

/**
 * Throws 429 if as many runs of the automation wait for their turn as may wait. Call it in the transaction that inserts
 * the run. Runs that events, schedules and other runs start are never refused: they wait.
 */
export async function requireBacklogRoom(tx: Db, automation: AutomationRow): Promise<void> {
  const { appId, id, maxPendingRuns: max } = automation;
  if (max === null) return;
  const message = `${max} runs of this automation already wait for their turn. Try again later.`;
  const room = { things: 'pending runs', max, message, of: id };
  await lockRoom(tx, automation, room);
  const waiting = await countPendingRuns(tx, appId, id, max);
  if (waiting >= max) throw noRoom(room, waiting, 'rate_limited');
}

/** Counts the runs that wait for their turn, up to a maximum. */
async function countPendingRuns(db: Db, appId: string, automationId: string, max: number): Promise<number> {
  const [{ count }] = await db<[{ count: number }]>`
    select count(*) as count from (
      select 1 from automation_runs
      where app_id = ${appId} and automation_id = ${automationId} and status = 'pending' limit ${max}) pending`;
  return count;
}
