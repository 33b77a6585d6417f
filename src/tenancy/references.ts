import { brokenReference, type Db } from '../db/database.ts';
import { AppError, found, invalidField, notFound } from '../lib/errors.ts';
import { type IdKind, parseId } from '../lib/ids.ts';
import { type Caller, canSeeWholeApp } from './caller.ts';
import { agentVisible, mayChangeOwned, type Owned, orgVisible, teamVisible, userVisible } from './visible.ts';

/** Parses an id in a path; 404 when it has the wrong type or format. */
export function pathId(kind: IdKind, text: string): string {
  return found(parseId(kind, text));
}

/**
 * Parses an id in a body or query member; undefined if the member is missing. 422 on that member when it has the wrong type
 * or format.
 */
export function fieldId<T extends string | undefined>(kind: IdKind, field: string, text: T): T {
  if (text === undefined) return text;
  const uuid = parseId(kind, text);
  if (uuid === undefined) throw invalidField(field, 'is not an id of the right type');
  return uuid as T;
}

/** The error for an id of a resource that does not exist or is not visible to the caller. */
export function unknownReference(field: string): AppError {
  return invalidField(field, 'not found');
}

/**
 * Translates the foreign-key violation of a write whose owner, or another resource that it names, was deleted
 * concurrently: 404 if the path names that resource, otherwise 422 on its member of the body. Undefined for other errors.
 * @param pathNames the parameters of the request's path.
 */
export function missingReference(error: unknown, pathNames: readonly string[] = []): AppError | undefined {
  const broken = brokenReference(error);
  if (broken === undefined) return undefined;
  const name = broken.column.replace(/_id$/, '');
  // The app and the sandbox are those of the credential or of the path.
  if (pathNames.includes(name) || name === 'app' || name === 'sandbox') return notFound();
  if (name === 'issuer')
    return new AppError('invalid_credentials', 'The issuer of this sign-in was deleted.', { cause: error });
  if (sessionTables.has(broken.table))
    return new AppError('invalid_credentials', 'The user of this sign-in was deleted.', { cause: error });
  return unknownReference(name);
}

const sessionTables = new Set(['refresh_tokens', 'console_user_sessions', 'console_developer_sessions']);

type OrgRow = { id: string };
type TeamRow = { id: string; orgId: string | null };
type UserRow = { id: string; orgId: string | null };
type AgentRow = { id: string; orgId: string | null; teamId: string | null; userId: string | null };

export async function findOrg(db: Db, caller: Caller, id: string): Promise<OrgRow | undefined> {
  return db<OrgRow[]>`select o.id from orgs o where o.id = ${id} and ${orgVisible(db, caller, 'o')}`.first();
}

export async function findTeam(db: Db, caller: Caller, id: string): Promise<TeamRow | undefined> {
  return db<TeamRow[]>`
    select t.id, t.org_id from teams t where t.id = ${id} and ${teamVisible(db, caller, 't')}`.first();
}

export async function findUser(db: Db, caller: Caller, id: string): Promise<UserRow | undefined> {
  return db<UserRow[]>`
    select u.id, u.org_id from users u where u.id = ${id} and ${userVisible(db, caller, 'u')}`.first();
}

export async function findAgent(db: Db, caller: Caller, id: string): Promise<AgentRow | undefined> {
  return db<AgentRow[]>`
    select a.id, a.org_id, a.team_id, a.user_id from agents a where a.id = ${id} and ${agentVisible(db, caller, 'a')}`.first();
}

/** The agent with this id or lookup key in a path; 404 when none is visible to the caller. */
export async function getPathAgent(db: Db, caller: Caller, text: string): Promise<AgentRow> {
  const id = parseId('agent', text);
  const byId = id === undefined ? undefined : await findAgent(db, caller, id);
  if (byId) return byId;
  return found(await findAgentByKey(db, caller, text));
}

/**
 * The agent with this lookup key among those visible to the caller. Of several with different owners, the one with the
 * widest owner, then the oldest: nobody can take over a key by using it too.
 */
export async function findAgentByKey(db: Db, caller: Caller, lookupKey: string): Promise<AgentRow | undefined> {
  return db<AgentRow[]>`
    select a.id, a.org_id, a.team_id, a.user_id from agents a
    where a.lookup_key = ${lookupKey} and ${agentVisible(db, caller, 'a')}
    order by case when a.user_id is not null then 3 when a.team_id is not null then 2 when a.org_id is not null then 1
      else 0 end, a.created_at, a.id limit 1`.first();
}

/** The owner members of a request body. */
export type OwnerInput = {
  org?: string | undefined;
  team?: string | undefined;
  user?: string | undefined;
  agent?: string | undefined;
};

export type NamedOwners = {
  org?: OrgRow | undefined;
  team?: TeamRow | undefined;
  user?: UserRow | undefined;
  agent?: AgentRow | undefined;
};

/** Resolves the owner members of a body. Throws 422 on a member that is not visible to the caller. */
export async function findNamedOwners(db: Db, caller: Caller, input: OwnerInput): Promise<NamedOwners> {
  const named: NamedOwners = {};
  if (input.org !== undefined) named.org = await required('org', findOrg(db, caller, fieldId('org', 'org', input.org)));
  if (input.team !== undefined)
    named.team = await required('team', findTeam(db, caller, fieldId('team', 'team', input.team)));
  if (input.user !== undefined)
    named.user = await required('user', findUser(db, caller, fieldId('user', 'user', input.user)));
  if (input.agent !== undefined)
    named.agent = await required('agent', findAgent(db, caller, fieldId('agent', 'agent', input.agent)));
  return named;
}

async function required<T>(field: string, found: Promise<T | undefined>): Promise<T> {
  const row = await found;
  if (row === undefined) throw unknownReference(field);
  return row;
}

/** 403 unless the caller may create for these owners, that is, may change what they own. */
export function requireCreateFor(caller: Caller, owned: Owned, agent?: AgentRow): void {
  if (canSeeWholeApp(caller) || mayChangeOwned(caller, owned, 'update', agent)) return;
  throw new AppError('forbidden', 'You may not create resources for this owner.');
}
