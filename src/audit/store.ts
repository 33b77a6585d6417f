import type { Db } from '../db/database.ts';
import { sweepRows } from '../db/delete-batch.ts';
import { isInUse } from '../db/fences.ts';
import { readWithTotal } from '../db/pages.ts';
import type { ActorKind } from '../http/route/audit.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Scope } from '../tenancy/caller.ts';

/** One change in the audit log: who made it, what it was, and its outcome. Never contains secrets or contents. */
export type AuditEntry = {
  appId: string;
  id: string;
  sandboxId: string;
  at: Date;
  actorKind: ActorKind;
  actorId: string;
  /** The kind of credential, such as `secret_key`. */
  credential: string;
  action: string;
  method: string;
  route: string;
  resource: string | null;
  /** Null while the request is in progress, and forever if the process stopped before responding. */
  status: number | null;
  requestId: string;
  address: string | null;
  /** For failed attempts, how many this entry represents. */
  attempts: number | null;
};

const columns = [
  'appId',
  'id',
  'sandboxId',
  'at',
  'actorKind',
  'actorId',
  'credential',
  'action',
  'method',
  'route',
  'resource',
  'status',
  'requestId',
  'address',
  'attempts',
] as const satisfies readonly (keyof AuditEntry)[];

export async function insertAuditEntries(db: Db, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length > 0) await db`insert into audit_entries ${db(entries, columns)}`;
}

/** Upserts counts of failed attempts. */
export async function upsertFailedAttempts(db: Db, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await db`insert into audit_entries ${db(entries, columns)}
    on conflict (app_id, id) do update set attempts = greatest(audit_entries.attempts, excluded.attempts)
      where audit_entries.segment is null`;
}

/** Stores the outcome of a change whose entry was written before it began, unless the entry is already sealed. */
export async function endAuditEntry(
  db: Db,
  { appId, id, status, resource }: Pick<AuditEntry, 'appId' | 'id' | 'status' | 'resource'>,
): Promise<void> {
  await db`update audit_entries set status = ${status}, resource = ${resource} 
    where app_id = ${appId} and id = ${id} and segment is null`;
}

type CredentialKind = 'user' | 'secret_key' | 'publishable_key' | 'personal_token' | 'developer_token';

/** Uses of one credential since they were last written. */
export type CredentialUse = {
  kind: CredentialKind;
  /** Undefined for a developer without a chosen app. */
  scope: { appId: string; sandboxId: string } | undefined;
  /** Its id, or for tokens their digest: a request does not carry the id of its token. */
  credential: string | Buffer;
  firstAt: Date;
  lastAt: Date;
  requests: number;
  refused: number;
};

/**
 * Sets the last use of developer tokens. Returns the id of each, by its digest.
 * @param directory the database of developers
 */
export async function noteDeveloperTokens(directory: Db, uses: readonly CredentialUse[]): Promise<Map<string, string>> {
  const used = uses.filter(({ kind }) => kind === 'developer_token');
  if (used.length === 0) return new Map();
  const rows = await directory<{ digest: string; id: string }[]>`
    update developer_tokens t set last_used_at = greatest(t.last_used_at, given.at)
    from (select credential, max(at) as at from ${rowsOf(directory, used)} group by credential) given
    where t.digest = decode(given.credential, 'hex') returning given.credential as digest, t.id`;
  return new Map(rows.map(({ digest, id }) => [digest, id]));
}

/**
 * Adds to the day's counts and sets the last use of keys and personal tokens.
 * @param developerTokens the ids of developer tokens, by digest
 */
export async function addCredentialUses(
  db: Db,
  uses: readonly CredentialUse[],
  developerTokens: ReadonlyMap<string, string>,
): Promise<void> {
  const known = uses.flatMap((use) => {
    if (typeof use.credential === 'string') return [use];
    const id = use.scope && developerTokens.get(use.credential.toString('hex'));
    return id === undefined ? [] : [{ ...use, credential: id }];
  });
  await countUses(db, known, false);
  await db`
    update api_keys k set last_used_at = greatest(k.last_used_at, given.at)
    from ${rowsOf(db, known)} where k.app_id = given.app_id and k.id = given.credential::uuid and given.kind like '%_key'`;
  const personal = uses.filter(({ kind }) => kind === 'personal_token');
  if (personal.length === 0) return;
  await countUses(db, personal, true);
  await db`
    update personal_tokens t set last_used_at = greatest(t.last_used_at, given.at)
    from (select app_id, credential, max(at) as at from ${rowsOf(db, personal)} group by app_id, credential) given
    where t.app_id = given.app_id and t.digest = decode(given.credential, 'hex')`;
}

async function countUses(db: Db, uses: readonly CredentialUse[], areDigests: boolean): Promise<void> {
  if (uses.length === 0) return;
  const id = areDigests ? db`t.id` : db`given.credential::uuid`;
  const join = areDigests
    ? db`join personal_tokens t on t.app_id = given.app_id and t.digest = decode(given.credential, 'hex')`
    : db``;
  await db`
    insert into credential_uses as u
      (app_id, sandbox_id, day, kind, credential_id, first_at, last_at, requests, refused)
    select given.app_id, given.sandbox_id, (given.at at time zone 'UTC')::date, given.kind, ${id},
      min(given.first_at), max(given.at), sum(given.requests), sum(given.refused)
    from ${rowsOf(db, uses)} ${join} group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
    on conflict (app_id, sandbox_id, day, kind, credential_id) do update set
      last_at = greatest(u.last_at, excluded.last_at), requests = u.requests + excluded.requests,
      refused = u.refused + excluded.refused`;
}

function rowsOf(db: Db, uses: readonly CredentialUse[]) {
  const text = ({ credential }: CredentialUse) =>
    typeof credential === 'string' ? credential : credential.toString('hex');
  return db`unnest(${uses.map(({ scope }) => scope?.appId ?? null)}::uuid[],
    ${uses.map(({ scope }) => scope?.sandboxId ?? null)}::uuid[], ${uses.map(({ kind }) => kind)}::text[],
    ${uses.map(text)}::text[], ${uses.map(({ firstAt }) => firstAt.toISOString())}::text[]::timestamptz[],
    ${uses.map(({ lastAt }) => lastAt.toISOString())}::text[]::timestamptz[], ${uses.map(({ requests }) => requests)}::bigint[],
    ${uses.map(({ refused }) => refused)}::bigint[])
    as given (app_id, sandbox_id, kind, credential, first_at, at, requests, refused)`;
}

type AuditFilter = {
  actorId?: string | undefined;
  action?: string | undefined;
  resource?: string | undefined;
  since?: Date | undefined;
  until?: Date | undefined;
};

/** One page of entries, newest first, and the total number. */
export async function listEntries(
  db: Db,
  { appId, sandboxId }: Scope,
  filter: AuditFilter,
  page: PageRequest,
): Promise<[AuditEntry[], number]> {
  const { actorId, action, resource, since, until } = filter;
  const where = db`app_id = ${appId} and sandbox_id = ${sandboxId}
    ${actorId === undefined ? db`` : db`and actor_id = ${actorId}`}
    ${action === undefined ? db`` : db`and action = ${action}`}
    ${resource === undefined ? db`` : db`and resource = ${resource}`}
    ${since === undefined ? db`` : db`and at >= ${since}`}
    ${until === undefined ? db`` : db`and at < ${until}`}`;
  return readWithTotal(
    db<AuditEntry[]>`
      select * from audit_entries where ${where} order by at desc, id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from audit_entries where ${where}`,
  );
}

export type CredentialUseRow = {
  kind: CredentialKind;
  credentialId: string;
  day: Date;
  firstAt: Date;
  lastAt: Date;
  requests: number;
  refused: number;
};

/** One page of uses, newest day first, and the total number. */
export async function listUses(
  db: Db,
  { appId, sandboxId }: Scope,
  credentialId: string | undefined,
  page: PageRequest,
): Promise<[CredentialUseRow[], number]> {
  const where = db`app_id = ${appId} and sandbox_id = ${sandboxId}
    ${credentialId === undefined ? db`` : db`and credential_id = ${credentialId}`}`;
  return readWithTotal(
    db<CredentialUseRow[]>`
      select kind, credential_id, day, first_at, last_at, requests, refused from credential_uses where ${where}
      order by day desc, last_at desc, credential_id limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from credential_uses where ${where}`,
  );
}

const deletedAtOnce = 10_000;

/** Deletes older rows. Returns their number. */
export async function deleteOldEntries(db: Db, before: Date): Promise<number> {
  const day = db`(${before}::timestamptz at time zone 'UTC')::date`;
  let gone = await sweepRows(db, { table: 'credential_uses', order: 'day', where: db`t.day < ${day}` });
  for (;;) {
    const entries = await db`
      delete from audit_entries where (app_id, id) in (
        select e.app_id, e.id from audit_entries e where e.at < ${before} and ${isInUse(db, 'e.app_id')}
        order by e.at limit ${deletedAtOnce} for update skip locked)`;
    gone += entries.count;
    if (entries.count < deletedAtOnce) return gone;
  }
}
