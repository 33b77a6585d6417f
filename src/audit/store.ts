import type { Db } from '../db/database.ts';
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

/** Adds to the day's counts and sets the last use of keys and tokens. */
export async function addCredentialUses(db: Db, uses: readonly CredentialUse[]): Promise<void> {
  const known = uses.filter(({ credential }) => typeof credential === 'string');
  await countUses(db, known, null);
  await db`
    update api_keys k set last_used_at = greatest(k.last_used_at, given.at)
    from ${rowsOf(db, known)} where k.app_id = given.app_id and k.id = given.credential::uuid and given.kind like '%_key'`;
  for (const [kind, table] of [
    ['personal_token', 'personal_tokens'],
    ['developer_token', 'developer_tokens'],
  ] as const) {
    const ofKind = uses.filter((use) => use.kind === kind);
    if (ofKind.length === 0) continue;
    await countUses(
      db,
      ofKind.filter(({ scope }) => scope !== undefined),
      table,
    );
    // A developer token may be used in several apps, so its table has no app.
    const app = table === 'personal_tokens' ? db`app_id, ` : db``;
    await db`
      update ${db(table)} t set last_used_at = greatest(t.last_used_at, given.at)
      from (select ${app} credential, max(at) as at from ${rowsOf(db, ofKind)} group by ${app} credential) given
      where ${isTokenOf(db, table)}`;
  }
}

type TokenTable = 'personal_tokens' | 'developer_tokens';

function isTokenOf(db: Db, table: TokenTable) {
  const inApp = table === 'personal_tokens' ? db`and t.app_id = given.app_id` : db``;
  return db`t.digest = decode(given.credential, 'hex') ${inApp}`;
}

async function countUses(db: Db, uses: readonly CredentialUse[], tokens: TokenTable | null): Promise<void> {
  if (uses.length === 0) return;
  const id = tokens === null ? db`given.credential::uuid` : db`t.id`;
  const join = tokens === null ? db`` : db`join ${db(tokens)} t on ${isTokenOf(db, tokens)}`;
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
  const rows = await db<AuditEntry[]>`
    select * from audit_entries where ${where} order by at desc, id desc limit ${page.pageSize} offset ${page.offset}`;
  const [count] = await db<[{ total: number }]>`select count(*) as total from audit_entries where ${where}`;
  return [rows, count.total];
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
  const rows = await db<CredentialUseRow[]>`
    select kind, credential_id, day, first_at, last_at, requests, refused from credential_uses where ${where}
    order by day desc, last_at desc, credential_id limit ${page.pageSize} offset ${page.offset}`;
  const [count] = await db<[{ total: number }]>`select count(*) as total from credential_uses where ${where}`;
  return [rows, count.total];
}

const deletedAtOnce = 10_000;

/** Deletes older rows. Returns their number. */
export async function deleteOldEntries(db: Db, before: Date): Promise<number> {
  const uses = await db`delete from credential_uses where day < (${before}::timestamptz at time zone 'UTC')::date`;
  let gone = uses.count;
  for (;;) {
    const entries = await db`
      delete from audit_entries where (app_id, id) in (
        select app_id, id from audit_entries where at < ${before} order by at limit ${deletedAtOnce})`;
    gone += entries.count;
    if (entries.count < deletedAtOnce) return gone;
  }
}
