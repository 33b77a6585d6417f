import { type Database, production } from '../../src/db/database.ts';
import { announceChange } from '../../src/http/streams/sse.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';

/** Streams of one kind, each of a different resource. */
export type Kind = {
  name: 'runs' | 'watches';
  prepare(db: Database, appId: string, ids: readonly string[]): Promise<void>;
  path(id: string): string;
  changeOne(db: Database, appId: string, id: string): Promise<void>;
  changeAll(db: Database, appId: string): Promise<void>;
};

export const runs: Kind = {
  name: 'runs',
  async prepare(db, appId, ids) {
    const automationId = newUuid();
    await db`insert into automations (app_id, id, sandbox_id, name, type) values (${appId}, ${automationId}, ${production}, 'b', 'invoked')`;
    await db`insert into automation_runs (app_id, id, sandbox_id, automation_id, type, status, payload)
      select ${appId}, id, ${production}, ${automationId}, 'invoked', 'running', '{}' from unnest(${ids}::uuid[]) id`;
  },
  path: (id) => `/api/v1/automation_runs/${formatId('automationRun', id)}/stream`,
  async changeOne(db, appId, id) {
    await db.begin(async (tx) => {
      await tx`update automation_runs
        set version = version + 1, changes = note_change(changes, version + 1, status, now(), null)
        where app_id = ${appId} and id = ${id}`;
      await announceChange(tx, 'run', appId, id);
    });
  },
  async changeAll(db, appId) {
    await db.begin(async (tx) => {
      await tx`update automation_runs
        set version = version + 1, changes = note_change(changes, version + 1, status, now(), null)
        where app_id = ${appId}`;
      await tx`select pg_notify('quarry_changes', 'run/' || app_id || '/' || id) from automation_runs where app_id = ${appId}`;
    });
  },
};

export const watches: Kind = {
  name: 'watches',
  async prepare(db, appId, ids) {
    await db`insert into users (app_id, id, sandbox_id, email, name)
      select ${appId}, id, ${production}, id || '@example.com', 'Reader' from unnest(${ids}::uuid[]) id`;
    await db`insert into kv_entries (app_id, sandbox_id, user_id, key, id, value)
      select ${appId}, ${production}, id, 'count', gen_random_uuid(), '0' from unnest(${ids}::uuid[]) id`;
  },
  path: (id) => `/api/v1/kv_watch?user=${formatId('user', id)}`,
  async changeOne(db, appId, id) {
    await db`update kv_entries set value = (value::bigint + 1)::text, version = version + 1
      where app_id = ${appId} and user_id = ${id}`;
  },
  async changeAll(db, appId) {
    await db`update kv_entries set value = (value::bigint + 1)::text, version = version + 1 where app_id = ${appId}`;
  },
};
