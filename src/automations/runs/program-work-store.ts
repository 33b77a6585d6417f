import type { Db } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import type { RunRow } from './store.ts';

/** SQL for runs that external workers claim. */

/** Claims the oldest run that waits for an external worker; undefined if there is none. */
export async function claimRun(
  db: Db,
  automation: { appId: string; id: string },
  now: Date,
  leaseSeconds: number,
): Promise<RunRow | undefined> {
  const leaseUntil = new Date(now.getTime() + leaseSeconds * 1_000);
  return db<RunRow[]>`
    update automation_runs r set status = 'running', lease_until = ${leaseUntil}, lease_seconds = ${leaseSeconds},
      claim = gen_random_uuid(),
      version = r.version + 1, changes = note_change(r.changes, r.version + 1, 'running', ${now}, ${leaseUntil}),
      started_at = coalesce(r.started_at, ${now}), updated_at = ${now}
    from (select app_id, id from automation_runs
      where app_id = ${automation.appId} and automation_id = ${automation.id} and status = 'pending'
        and graph_version is null
      order by created_at, id limit 1 for update skip locked) oldest
    where r.app_id = oldest.app_id and r.id = oldest.id
    returning r.*`.first();
}

export async function setLease(db: Db, run: { appId: string; id: string }, until: Date): Promise<void> {
  await db`update automation_runs set lease_until = ${until} where app_id = ${run.appId} and id = ${run.id}`;
}

/** Sets runs with an expired claim back to pending and returns them. */
export async function releaseExpiredLeases(
  db: Db,
  now: Date,
  countMax: number,
): Promise<{ appId: string; id: string }[]> {
  return db`
    update automation_runs r set status = 'pending', lease_until = null, version = r.version + 1,
      changes = note_change(r.changes, r.version + 1, 'pending', ${now}, null), updated_at = ${now}
    from (select app_id, id from automation_runs l where lease_until <= ${now} and ${isInUse(db, 'l.app_id')}
      order by lease_until limit ${countMax} for update skip locked) late
    where r.app_id = late.app_id and r.id = late.id and r.status = 'running'
    returning r.app_id, r.id`;
}
