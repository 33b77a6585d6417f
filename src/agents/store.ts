/*
 * Triggers of agents: agents_grants deletes the grants to the agent; agents_picture_replaced and agents_picture_removed
 * delete the file of its picture; pause_automations pauses the automations that run as it.
 */
import type { Db } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { agentVisible, inScope, matchesSeen } from '../tenancy/visible.ts';

type AgentDetails = {
  name: string;
  lookupKey: string | null;
  description: string | null;
  identity: string | null;
  defaultModel: string | null;
  email: string | null;
  phoneNumber: string | null;
  originator: string | null;
};

export type AgentOwner = { orgId: string | null; teamId: string | null; userId: string | null };

export type AgentRow = AgentDetails &
  AgentOwner & {
    appId: string;
    id: string;
    sandboxId: string;
    metadata: Record<string, unknown>;
    profilePictureFileId: string | null;
    pictureContentType: string | null;
    pictureWidth: number | null;
    pictureHeight: number | null;
    createdAt: Date;
    updatedAt: Date;
  };

const withPicture = (db: Db) => db`
  select a.*, f.content_type as picture_content_type, f.width as picture_width, f.height as picture_height
  from agents a left join files f on f.app_id = a.app_id and f.id = a.profile_picture_file_id`;

export async function insertAgent(
  db: Db,
  scope: Scope,
  agent: AgentDetails & AgentOwner & { id: string; metadata: Record<string, unknown> },
): Promise<void> {
  const { metadata, ...columns } = agent;
  const row = { ...columns, appId: scope.appId, sandboxId: scope.sandboxId, metadata: db.json(metadata as never) };
  await db`insert into agents ${db(row as unknown as Record<string, string | null>)}`;
}

export async function findAgent(db: Db, caller: Caller, id: string): Promise<AgentRow | undefined> {
  return db<AgentRow[]>`${withPicture(db)} where a.id = ${id} and ${agentVisible(db, caller, 'a')}`.first();
}

type AgentFilter = { search?: string | undefined; userId?: string | undefined; orgId?: string | undefined };

export async function listAgents(
  db: Db,
  caller: Caller,
  page: PageRequest,
  filter: AgentFilter,
): Promise<[AgentRow[], number]> {
  const { search = null, userId, orgId } = filter;
  const where = db`${agentVisible(db, caller, 'a')}
    and (${search}::text is null or position(lower(${search}) in lower(a.name || ' ' || coalesce(a.lookup_key, ''))) > 0)
    and ${userId === undefined ? db`true` : matchesSeen(db, caller, 'user', 'a.user_id', [userId])}
    and ${orgId === undefined ? db`true` : matchesSeen(db, caller, 'org', 'a.org_id', [orgId])}`;
  return readWithTotal(
    db<AgentRow[]>`${withPicture(db)} where ${where}
      order by a.created_at desc, a.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from agents a where ${where}`,
  );
}

export async function updateAgent(
  db: Db,
  scope: Scope,
  id: string,
  change: { [K in keyof AgentDetails]?: string | undefined } & { metadata?: Record<string, unknown> | undefined },
): Promise<void> {
  const value = (text: string | undefined) => text ?? null;
  await db`
    update agents a set
      name = coalesce(${value(change.name)}, a.name),
      lookup_key = coalesce(${value(change.lookupKey)}, a.lookup_key),
      description = coalesce(${value(change.description)}, a.description),
      identity = coalesce(${value(change.identity)}, a.identity),
      default_model = coalesce(${value(change.defaultModel)}, a.default_model),
      email = coalesce(${value(change.email)}, a.email),
      phone_number = coalesce(${value(change.phoneNumber)}, a.phone_number),
      originator = coalesce(${value(change.originator)}, a.originator),
      metadata = coalesce(${change.metadata ? db.json(change.metadata as never) : null}::jsonb, a.metadata),
      updated_at = now()
    where ${inScope(db, scope, 'a')} and a.id = ${id}`;
}

export async function setPicture(db: Db, scope: Scope, id: string, fileId: string | null): Promise<void> {
  await db`update agents set profile_picture_file_id = ${fileId}, updated_at = now()
    where app_id = ${scope.appId} and id = ${id}`;
}
