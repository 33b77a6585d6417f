/*
 * Triggers of identity_issuers: identity_issuers_changed notifies every process of changed rights.
 */
import type { Db, Transaction } from '../db/database.ts';
import { setGroupsOfUser } from '../groups/service.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { OrgRole, Scope } from '../tenancy/caller.ts';
import { hasEmail } from '../tenancy/email.ts';
import { inScope } from '../tenancy/visible.ts';
import type { ClaimMapping } from './schema.ts';

export type IssuerRow = Scope & {
  id: string;
  issuer: string;
  audience: string;
  jwksUrl: string | null;
  createsUsers: boolean;
  linksByEmail: boolean;
  claims: ClaimMapping;
  clientId: string | null;
  clientSecret: Buffer | null;
  createdAt: Date;
  updatedAt: Date;
};

/** The organisation, role and teams to which a token's claims are mapped. Undefined: the mapping has none. */
export type MappedRights = {
  org?: { id: string | null; role: OrgRole; of: string[] };
  teams?: { ids: string[]; of: string[] };
  /** The groups that the token names; `overage` if it leaves out groups of the user. */
  groups?: { names: string[]; overage: boolean };
};

export async function insertIssuer(db: Db, row: IssuerRow): Promise<void> {
  await db`insert into identity_issuers ${db({ ...row, claims: db.json(row.claims) })}`;
}

export async function updateIssuer(db: Db, row: IssuerRow): Promise<void> {
  const { audience, jwksUrl, createsUsers, linksByEmail, clientId, clientSecret, updatedAt } = row;
  const change = { audience, jwksUrl, createsUsers, linksByEmail, clientId, clientSecret, updatedAt };
  await db`update identity_issuers i set ${db({ ...change, claims: db.json(row.claims) })}
    where ${inScope(db, row, 'i')} and i.id = ${row.id}`;
}

export async function findIssuer(db: Db, scope: Scope, id: string): Promise<IssuerRow | undefined> {
  return db<IssuerRow[]>`select i.* from identity_issuers i where ${inScope(db, scope, 'i')} and i.id = ${id}`.first();
}

export async function findIssuerByName(db: Db, scope: Scope, issuer: string): Promise<IssuerRow | undefined> {
  return db<IssuerRow[]>`
    select i.* from identity_issuers i where ${inScope(db, scope, 'i')} and i.issuer = ${issuer}`.first();
}

export function countIssuers(db: Db, scope: Scope): Promise<number> {
  return db<
    [{ total: number }]
  >`select count(*) as total from identity_issuers i where ${inScope(db, scope, 'i')}`.then(([row]) => row.total);
}

export async function listIssuers(db: Db, scope: Scope, page: PageRequest): Promise<[IssuerRow[], number]> {
  const rows = await db<IssuerRow[]>`
    select i.* from identity_issuers i where ${inScope(db, scope, 'i')}
    order by i.created_at desc, i.id desc limit ${page.pageSize} offset ${page.offset}`;
  return [rows, await countIssuers(db, scope)];
}

export async function deleteIssuer(db: Db, scope: Scope, id: string): Promise<boolean> {
  return db`delete from identity_issuers i where ${inScope(db, scope, 'i')} and i.id = ${id}`.any();
}

/** An account at an issuer. Its user is null after the user was deleted. */
type AccountRow = {
  userId: string | null;
  epoch: number | null;
  sessionsEndedAt: Date | null;
  applied: unknown;
  appliedIssuedAt: Date | null;
};

export async function findAccount(
  db: Db,
  { appId, sandboxId, issuer }: IssuerRow,
  subject: string,
): Promise<AccountRow | undefined> {
  return db<AccountRow[]>`
    select a.user_id, u.session_epoch as epoch, u.sessions_ended_at, a.applied, a.applied_issued_at
    from external_accounts a left join users u on u.app_id = a.app_id and u.id = a.user_id
    where a.app_id = ${appId} and a.sandbox_id = ${sandboxId} and a.issuer = ${issuer} and a.subject = ${subject}`.first();
}

/** Returns false if the account, or another account of this issuer for this user, exists. */
export async function insertAccount(
  db: Db,
  { appId, sandboxId, issuer }: IssuerRow,
  account: { subject: string; userId: string; now: Date },
): Promise<boolean> {
  return db`
    insert into external_accounts (app_id, sandbox_id, issuer, subject, user_id, created_at)
    values (${appId}, ${sandboxId}, ${issuer}, ${account.subject}, ${account.userId}, ${account.now})
    on conflict do nothing`.any();
}

/**
 * The user with this address; or one whose address PostgreSQL lower-cases to the same text, which the unique index of 0.1.0
 * still refuses: it is not that user (`isSame` false).
 */
export async function findUserByEmail(
  db: Db,
  scope: Scope,
  email: string,
): Promise<{ id: string; isSame: boolean } | undefined> {
  return db<{ id: string; isSame: boolean }[]>`
    select u.id, ${hasEmail(db, email)} as is_same from users u
    where ${inScope(db, scope, 'u')} and (${hasEmail(db, email)} or lower(u.email) = lower(${email}))
    order by is_same desc limit 1`.first();
}

/**
 * Applies what a token says, unless a newer token was applied. Only the organisations and teams that the app has
 * mapped change, and the groups of the issuer: a user leaves those that the token no longer names.
 */
export async function applyRights(
  db: Transaction,
  row: IssuerRow,
  account: { subject: string; userId: string; issuedAt: Date },
  rights: MappedRights,
): Promise<void> {
  const { appId, sandboxId, issuer } = row;
  const newest = await db`
    update external_accounts set applied = ${db.json(rights)}, applied_issued_at = ${account.issuedAt},
      groups_overage = ${rights.groups?.overage ?? false}
    where app_id = ${appId} and sandbox_id = ${sandboxId} and issuer = ${issuer} and subject = ${account.subject}
      and (applied_issued_at is null or applied_issued_at <= ${account.issuedAt})`;
  if (newest.count === 0) return;
  const { org, teams, groups } = rights;
  if (groups !== undefined) await setGroupsOfUser(db, row, issuer, account.userId, groups.names);
  if (org !== undefined)
    await db`
      update users u set org_id = o.id, org_role = case when o.id is not null then ${org.role} end, updated_at = now()
      from (select (select id from orgs where app_id = ${appId} and sandbox_id = ${sandboxId} and id = ${org.id}) as id) o
      where ${inScope(db, row, 'u')} and u.id = ${account.userId}
        and (o.id is not null or u.org_id = any(${org.of}::uuid[]))
        and (u.org_id, u.org_role) is distinct from (o.id, case when o.id is not null then ${org.role} end)`;
  if (teams === undefined) return;
  await db`delete from team_memberships where app_id = ${appId} and user_id = ${account.userId}
    and team_id = any(${teams.of}::uuid[]) and team_id <> all(${teams.ids}::uuid[])`;
  await db`
    insert into team_memberships (app_id, id, team_id, user_id, role)
    select t.app_id, gen_random_uuid(), t.id, ${account.userId}::uuid, 'member' from teams t
    where t.app_id = ${appId} and t.sandbox_id = ${sandboxId} and t.id = any(${teams.ids}::uuid[])
      and not exists (select 1 from team_memberships m
        where m.app_id = ${appId} and m.team_id = t.id and m.user_id = ${account.userId})`;
}
