/*
 * Triggers of users: users_grants deletes the grants to the user; users_changed notifies every process of changed
 * rights; pause_automations pauses the automations that run as the user.
 */
import type { Db } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Caller, OrgRole, Scope } from '../tenancy/caller.ts';
import { hasEmail } from '../tenancy/email.ts';
import { inScope, userVisible } from '../tenancy/visible.ts';

export type UserRow = {
  appId: string;
  id: string;
  sandboxId: string;
  email: string | null;
  name: string | null;
  orgId: string | null;
  orgName: string | null;
  orgRole: OrgRole | null;
  isSystemUser: boolean;
  groupsOverage: boolean;
  metadata: Record<string, unknown>;
  createdAt: Date;
  updatedAt: Date;
};

type NewUser = {
  id: string;
  email: string | null;
  name: string | null;
  passwordHash: string | null;
  orgId: string | null;
  orgRole: OrgRole | null;
  isSystemUser: boolean;
  metadata: Record<string, unknown>;
};

const columns = (db: Db, { appId }: Scope) => db`
  u.app_id, u.id, u.sandbox_id, u.email, u.name, u.org_id, o.name as org_name,
  case when u.org_id is not null then coalesce(u.org_role, 'member') end as org_role,
  u.is_system_user, u.metadata, u.created_at, u.updated_at,
  exists (select from external_accounts e where e.app_id = ${appId} and e.user_id = u.id and e.groups_overage)
    as groups_overage
  from users u left join orgs o on o.app_id = u.app_id and o.id = u.org_id`;

export async function insertUser(db: Db, scope: Scope, user: NewUser): Promise<void> {
  await db`insert into users (app_id, sandbox_id, id, email, name, password_hash, org_id, org_role, is_system_user, metadata)
    values (${scope.appId}, ${scope.sandboxId}, ${user.id}, ${user.email}, ${user.name}, ${user.passwordHash},
      ${user.orgId}, ${user.orgRole}, ${user.isSystemUser}, ${db.json(user.metadata as never)})`;
}

export async function findUser(db: Db, caller: Caller, id: string): Promise<UserRow | undefined> {
  return db<UserRow[]>`select ${columns(db, caller)} where u.id = ${id} and ${userVisible(db, caller, 'u')}`.first();
}

/** Finds a user of the app and sandbox without a visibility check: for the user's own sign-in. */
export async function findUserInScope(db: Db, scope: Scope, id: string): Promise<UserRow | undefined> {
  return db<UserRow[]>`select ${columns(db, scope)} where u.id = ${id} and ${inScope(db, scope, 'u')}`.first();
}

export async function findPassword(db: Db, scope: Scope, email: string) {
  return db<{ id: string; passwordHash: string | null; sessionEpoch: number }[]>`
    select u.id, u.password_hash, u.session_epoch from users u where ${inScope(db, scope, 'u')} and ${hasEmail(db, email)}`.first();
}

type UserFilter = { search?: string | undefined; org?: string | undefined };

export async function listUsers(
  db: Db,
  caller: Caller,
  page: PageRequest,
  filter: UserFilter,
): Promise<[UserRow[], number]> {
  const search = filter.search ?? null;
  const where = db`${userVisible(db, caller, 'u')}
    and (${search}::text is null or position(lower(${search}) in lower(coalesce(u.email, '') || ' ' || coalesce(u.name, ''))) > 0)
    and (${filter.org ?? null}::uuid is null or u.org_id = ${filter.org ?? null})`;
  return readWithTotal(
    db<UserRow[]>`select ${columns(db, caller)} where ${where}
      order by u.created_at desc, u.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from users u where ${where}`,
  );
}

type UserChange = {
  email?: string | undefined;
  name?: string | undefined;
  passwordHash?: string | undefined;
  /** When the password was changed. */
  now?: Date;
  orgId?: string | null | undefined;
  orgRole?: OrgRole | undefined;
  metadata?: Record<string, unknown> | undefined;
};

export async function updateUser(db: Db, scope: Scope, id: string, change: UserChange): Promise<boolean> {
  return db`
    with before as (select u.org_id from users u where ${inScope(db, scope, 'u')} and u.id = ${id}),
    -- Who leaves an org leaves its teams.
    left_teams as (
      delete from team_memberships m using teams t, before
      where ${change.orgId !== undefined} and m.app_id = ${scope.appId} and m.user_id = ${id}
        and t.app_id = m.app_id and t.id = m.team_id and t.org_id = before.org_id
        and before.org_id is distinct from ${change.orgId ?? null}::uuid)
    update users u set
      email = coalesce(${change.email ?? null}, u.email),
      name = coalesce(${change.name ?? null}, u.name),
      password_hash = coalesce(${change.passwordHash ?? null}, u.password_hash),
      session_epoch = u.session_epoch + case when ${change.passwordHash !== undefined} then 1 else 0 end,
      sessions_ended_at = case when ${change.passwordHash !== undefined} then ${change.now ?? null}::timestamptz else u.sessions_ended_at end,
      org_id = case when ${change.orgId !== undefined} then ${change.orgId ?? null}::uuid else u.org_id end,
      -- A role is one in an org: who comes to another one comes as a member, unless the change says more.
      org_role = case
        when ${change.orgId === undefined} or u.org_id is not distinct from ${change.orgId ?? null}::uuid
          then coalesce(${change.orgRole ?? null}, u.org_role)
        when ${change.orgId ?? null}::uuid is not null then coalesce(${change.orgRole ?? null}, 'member')
      end,
      metadata = coalesce(${change.metadata ? db.json(change.metadata as never) : null}::jsonb, u.metadata),
      updated_at = now()
    where ${inScope(db, scope, 'u')} and u.id = ${id}`.any();
}

/** Ends all sessions and tokens of the user. */
export async function beginSessionEpoch(db: Db, scope: Scope, id: string, now: Date): Promise<void> {
  await db`update users u set session_epoch = u.session_epoch + 1, sessions_ended_at = ${now} where ${inScope(db, scope, 'u')} and u.id = ${id}`;
}

/** Marks the user's personal tokens as revoked. The new epoch has already ended them. */
export async function revokePersonalTokens(db: Db, scope: Scope, id: string): Promise<void> {
  await db`update personal_tokens set revoked_at = now()
    where app_id = ${scope.appId} and user_id = ${id} and revoked_at is null`;
}
