import type { Db, Statement } from '../db/database.ts';
import { runOfUser } from './of-user.ts';
import type { Subject } from './store.ts';

const pageRunsMax = 500;

/**
 * The ids of the runs of the user and of all that those started, in pages, each run once: it has one parent at most, and
 * runs that are the user's own are not read again below another. Of runs that wait to be followed, only ids are held.
 */
export async function* listRunsOfUser(db: Db, subject: Subject): AsyncGenerator<string[]> {
  const own = (each: Db) => runOfUser(each, subject);
  let last: string | undefined;
  do {
    const after = last === undefined ? db`true` : db`t.id > ${last}`;
    const ids = await readIds(db, subject, db`${own(db)} and ${after} order by t.id limit ${pageRunsMax}`);
    last = ids.at(-1);
    const pages = ids.length === 0 ? [] : [ids];
    for (let page = pages.pop(); page !== undefined; page = pages.pop()) {
      yield page;
      const started = await readIds(
        db,
        subject,
        db`t.parent_run_id = any(${page}::uuid[]) and ${own(db)} is not true order by t.id`,
      );
      for (let at = 0; at < started.length; at += pageRunsMax) pages.push(started.slice(at, at + pageRunsMax));
    }
  } while (last !== undefined);
}

async function readIds(db: Db, { appId }: Subject, chosen: Statement): Promise<string[]> {
  const rows = await db<{ id: string }[]>`select t.id from automation_runs t where t.app_id = ${appId} and ${chosen}`;
  return rows.map(({ id }) => id);
}
