import type { Db, Statement } from '../db/database.ts';
import type { Scope } from './caller.ts';
import type { Credential, CredentialFacts } from './credential.ts';
import type { KeyScope } from './key-scopes.ts';
import { digest } from './secrets.ts';

export type ApiKey = Scope & {
  keyId: string;
  type: 'secret' | 'publishable';
  expiresAt: Date | null;
  scopes: KeyScope[] | null;
};

/** The API key with this text, unless it is revoked. The caller checks its expiry. */
export async function findKey(db: Db, text: string): Promise<ApiKey | undefined> {
  return db<ApiKey[]>`
    select k.app_id, k.sandbox_id, k.id as key_id, k.type, k.expires_at, k.scopes
    from credentials c join api_keys k on k.app_id = c.app_id and k.digest = c.digest
    where c.digest = ${digest(text)} and k.revoked_at is null`.first();
}

/** The developer of this token, unless it is revoked. */
export async function findDeveloper(db: Db, token: string): Promise<{ developerId: string } | undefined> {
  return db<{ developerId: string }[]>`
    select developer_id from developer_tokens where digest = ${digest(token)} and revoked_at is null`.first();
}

/** The ids of the sandboxes of each app of a developer. Apps without sandboxes are missing. */
export async function listDeveloperSandboxes(db: Db, developerId: string): Promise<Map<string, Set<string>>> {
  const rows = await db<{ appId: string; sandboxes: string[] }[]>`
    select a.id as app_id, array_agg(s.id) as sandboxes
    from apps a join sandboxes s on s.app_id = a.id and s.removed_at is null where a.developer_id = ${developerId} group by a.id`;
  return new Map(rows.map((row) => [row.appId, new Set(row.sandboxes)]));
}

type PersonalToken = Scope & { userId: string; epoch: number; expiresAt: Date | null; issuerId: string | null };

/** The personal token with this text, unless it is revoked. The caller checks its expiry and epoch. */
export async function findPersonalToken(db: Db, token: string): Promise<PersonalToken | undefined> {
  return db<PersonalToken[]>`
    select t.app_id, t.user_id, u.sandbox_id, t.session_epoch as epoch, t.expires_at, t.issuer_id
    from credentials c join personal_tokens t on t.app_id = c.app_id and t.digest = c.digest
      join users u on u.app_id = t.app_id and u.id = t.user_id
    where c.digest = ${digest(token)} and t.revoked_at is null`.first();
}

/** What a user allows an assistant. */
type AssistantGrant = Scope & { userId: string; epoch: number; keyId: string; scopes: KeyScope[]; expiresAt: Date };

/** The grant, unless it was revoked, its code was never exchanged, or the user's sessions have ended. */
export async function findGrant(db: Db, appId: string, id: string): Promise<AssistantGrant | undefined> {
  return db<AssistantGrant[]>`
    select g.app_id, u.sandbox_id, g.user_id, g.session_epoch as epoch, g.key_id, g.scopes, g.expires_at
    from assistant_grants g
      join users u on u.app_id = g.app_id and u.id = g.user_id and u.session_epoch = g.session_epoch
    where g.app_id = ${appId} and g.id = ${id} and g.refresh_digest is not null`.first();
}

/** SQL: the key that these columns name is neither revoked nor expired. */
export function keyIsValid(db: Db, appColumn: string, keyColumn: string, now: Date): Statement {
  return db`exists (select from api_keys k where k.app_id = ${db(appColumn)} and k.id = ${db(keyColumn)} and k.revoked_at is null
    and (k.expires_at is null or k.expires_at > ${now}))`;
}

/** Whether the session is active: its family of refresh tokens is not revoked. */
export async function isSessionOpen(db: Db, appId: string, sessionId: string): Promise<boolean> {
  return db`select from refresh_tokens
    where app_id = ${appId} and family_id = ${sessionId} and revoked_at is null limit 1`.any();
}

/**
 * Returns those of the credentials that have ended since they were used, with one query for each kind.
 * @param directory the database of developers, which may be another one
 */
export async function findEnded<T extends CredentialFacts>(
  db: Db,
  directory: Db,
  shown: readonly T[],
  now: Date,
): Promise<T[]> {
  const ended: T[] = [];
  const byKind = Map.groupBy(shown, ({ credential }) => groupOf(credential));
  for (const [kind, given] of byKind) {
    if (kind === 'none') continue;
    const going = new Set(await findValid(db, directory, kind, given, now));
    ended.push(...given.filter((_one, index) => !going.has(index)));
  }
  return ended;
}

type Group = 'none' | 'user' | 'personal_token' | 'key' | 'developer_token' | 'user_session' | 'developer_session';

function groupOf(credential: Credential | undefined): Group {
  if (credential === undefined) return 'none';
  switch (credential.kind) {
    case 'secret_key':
    case 'publishable_key':
      return 'key';
    case 'session':
      return 'tokenDigest' in credential ? 'developer_session' : 'user_session';
    default:
      return credential.kind;
  }
}

/** The indexes of the credentials that are valid. */
async function findValid(
  db: Db,
  directory: Db,
  group: Group,
  shown: readonly CredentialFacts[],
  now: Date,
): Promise<number[]> {
  if (group === 'developer_token' || group === 'developer_session') {
    const rows = await findValidDevelopers(directory, group, shown, now);
    return findOwnScopes(db, rows, shown);
  }
  const given = db`jsonb_to_recordset(${db.json(shown.map(rowOf))}) as g
    (place integer, app_id uuid, sandbox_id uuid, user_id uuid, key_id uuid, epoch integer, session_id uuid, digest text,
      expires_at timestamptz, issuer_id uuid, issuer_changed_at timestamptz, issuer_key_id uuid, grant_id uuid)`;
  const sameUser = db`join users u on u.app_id = g.app_id and u.id = g.user_id and u.session_epoch = g.epoch
    join sandboxes b on b.app_id = u.app_id and b.id = u.sandbox_id and b.removed_at is null`;
  const rows = await {
    none: () => db<{ place: number }[]>`select 0 as place where false`,
    user: () => db<{ place: number }[]>`select g.place from ${given} ${sameUser}
      where (g.expires_at is null or g.expires_at > ${now})
        and (g.session_id is null or exists (select from refresh_tokens r
          where r.app_id = g.app_id and r.family_id = g.session_id and r.revoked_at is null))
        and (g.grant_id is null or exists (select from assistant_grants a
          where a.app_id = g.app_id and a.id = g.grant_id and a.expires_at > ${now}
            and ${keyIsValid(db, 'a.app_id', 'a.key_id', now)}))
        and (g.issuer_id is null or exists (select from identity_issuers i
          where i.app_id = g.app_id and i.id = g.issuer_id
            and (g.issuer_changed_at is null or i.updated_at = g.issuer_changed_at)))
        and (g.issuer_key_id is null or ${keyIsValid(db, 'g.app_id', 'g.issuer_key_id', now)})`,
    personal_token: () => db<{ place: number }[]>`select g.place from ${given} ${sameUser}
      join personal_tokens t on t.app_id = g.app_id and t.digest = decode(g.digest, 'hex')
      where t.revoked_at is null and (t.expires_at is null or t.expires_at > ${now})`,
    key: () => db<{ place: number }[]>`select g.place from ${given}
      where ${keyIsValid(db, 'g.app_id', 'g.key_id', now)}`,
    user_session: () => db<{ place: number }[]>`select g.place from ${given} ${sameUser}
      join console_user_sessions s on s.app_id = g.app_id and s.digest = decode(g.digest, 'hex')
      where s.expires_at > ${now}`,
  }[group]();
  return rows.map(({ place }) => place);
}

type OfDeveloper = { place: number; developerId: string };

function findValidDevelopers(
  directory: Db,
  group: 'developer_token' | 'developer_session',
  shown: readonly CredentialFacts[],
  now: Date,
): Promise<OfDeveloper[]> {
  const digests = shown.map(({ credential }) => (credential && 'digest' in credential ? credential.digest : null));
  const given = directory`unnest(${digests}::text[]) with ordinality as g (digest, number)`;
  return group === 'developer_token'
    ? directory<OfDeveloper[]>`select g.number::integer - 1 as place, t.developer_id from ${given}
        join developer_tokens t on t.digest = decode(g.digest, 'hex') where t.revoked_at is null`
    : directory<OfDeveloper[]>`select g.number::integer - 1 as place, t.developer_id from ${given}
        join console_developer_sessions s on s.digest = decode(g.digest, 'hex')
        join developer_tokens t on t.digest = s.token_digest
        where s.expires_at > ${now} and t.revoked_at is null`;
}

/** The indexes of the developers who act in no app, or in one of theirs. */
async function findOwnScopes(
  db: Db,
  developers: readonly OfDeveloper[],
  shown: readonly CredentialFacts[],
): Promise<number[]> {
  const scoped = developers.filter(({ place }) => shown[place]?.identity.appId !== undefined);
  const free = developers.filter((one) => !scoped.includes(one)).map(({ place }) => place);
  if (scoped.length === 0) return free;
  const identities = scoped.map(({ place }) => shown[place]?.identity);
  const rows = await db<{ place: number }[]>`
    select g.place from unnest(${scoped.map(({ place }) => place)}::integer[],
      ${scoped.map(({ developerId }) => developerId)}::uuid[], ${identities.map((one) => one?.appId ?? null)}::uuid[],
      ${identities.map((one) => one?.sandboxId ?? null)}::uuid[]) as g (place, developer_id, app_id, sandbox_id)
    where exists (select from apps a join sandboxes b on b.app_id = a.id and b.id = g.sandbox_id and b.removed_at is null
      where a.id = g.app_id and a.developer_id = g.developer_id)`;
  return [...free, ...rows.map(({ place }) => place)];
}

function rowOf({ identity, credential }: CredentialFacts, place: number) {
  const issuer = credential?.kind === 'user' ? credential.issuer : undefined;
  return {
    place,
    app_id: identity.appId ?? null,
    sandbox_id: identity.sandboxId ?? null,
    user_id: identity.userId ?? null,
    key_id: credential && 'keyId' in credential ? credential.keyId : null,
    epoch: credential && 'epoch' in credential ? credential.epoch : null,
    session_id: (credential?.kind === 'user' && credential.sessionId) || null,
    digest: credential && 'digest' in credential ? credential.digest : null,
    expires_at: (credential && 'expiresAt' in credential && credential.expiresAt) || null,
    issuer_id: issuer?.id ?? null,
    issuer_changed_at: issuer?.changedAt ?? null,
    issuer_key_id: issuer?.keyId ?? null,
    grant_id: (credential?.kind === 'user' && credential.grantId) || null,
  };
}
