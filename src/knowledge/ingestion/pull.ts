import type { Db } from '../../db/database.ts';
import { nobody } from '../../db/database.ts';
import { findVisibleFile } from '../../files/store.ts';
import { parseId } from '../../ids.ts';
import type { AgentCaller, Caller, OrgRole, TeamRole } from '../../tenancy/caller.ts';
import { usePages } from '../../tenancy/quotas.ts';
import { findFirstDocument } from '../documents/store.ts';
import { payloadFile } from '../sources/kinds.ts';
import type { SourceRow } from '../sources/store.ts';
import { DocumentDeleted, describeFailure, documentBytesMax, type IngestionRun } from './run.ts';
import type { IngestionError } from './store.ts';

/**
 * Brings a file/document source's document to what its file is now; an unchanged file is left alone. Answers why the
 * file could not be read, or undefined. Safe to repeat. Pages on the web are pulled by crawls (crawl-sink.ts).
 */
export async function pullSource(run: IngestionRun, source: SourceRow): Promise<IngestionError | undefined> {
  if (source.type !== 'file/document')
    return { code: 'unsupported_content', message: 'This type of source has nothing to pull from.' };
  const { db, blobs } = run.deps;
  const named = payloadFile(source.payload);
  const fileId = typeof named === 'string' ? parseId('file', named) : undefined;
  const owner = await ownerAsCaller(db, source);
  const file = fileId === undefined || !owner ? undefined : await findVisibleFile(db, owner, fileId);
  if (!file)
    return { code: 'not_found', message: 'The file does not exist, or the owner of the source may not see it.' };
  const old = await findFirstDocument(db, source.appId, source.id);
  if (old?.bytesHash.equals(file.checksum)) {
    run.stats.unchanged = 1;
    return undefined;
  }
  try {
    const ready = await run.prepare(source, {
      documentId: old?.id ?? null,
      bytes: Buffer.from(await blobs.readAll(file.blobKey, documentBytesMax)),
      isText: false,
      filename: file.filename,
      contentType: file.contentType,
      title: null,
      metadata: null,
      fileId: file.id,
    });
    await run.write(source, ready, async (tx) => {
      if (await run.wasDeleted(tx)) throw new DocumentDeleted();
      await usePages(tx, source, 1);
    });
    return undefined;
  } catch (error) {
    const failure = describeFailure(error);
    if (!failure) throw error;
    return failure;
  }
}

/** The source's owner as a caller: what a pull may read is what the owner may read now. */
async function ownerAsCaller(db: Db, source: SourceRow): Promise<Caller | undefined> {
  const scope = { appId: source.appId, sandboxId: source.sandboxId };
  if (source.userId !== null) {
    const [user] = await db<{ orgId: string | null; orgRole: OrgRole | null }[]>`
      select org_id, org_role from users where app_id = ${source.appId} and id = ${source.userId}`;
    if (!user) return undefined;
    return {
      ...scope,
      kind: 'user',
      userId: source.userId,
      orgId: user.orgId ?? undefined,
      orgRole: user.orgRole ?? undefined,
      teams: await teamsOf(db, source.appId, 'user_id', source.userId),
    };
  }
  const agent: AgentCaller = {
    ...scope,
    kind: 'agent',
    agentId: nobody,
    orgId: source.orgId ?? undefined,
    teams: new Map(),
  };
  if (source.teamId !== null) return { ...agent, orgId: undefined, teams: new Map([[source.teamId, 'member']]) };
  if (source.agentId === null) return agent;
  const [row] = await db<{ orgId: string | null; teamId: string | null }[]>`
    select org_id, team_id from agents where app_id = ${source.appId} and id = ${source.agentId}`;
  if (!row) return undefined;
  const teams = new Map(await teamsOf(db, source.appId, 'agent_id', source.agentId));
  if (row.teamId !== null) teams.set(row.teamId, 'member');
  return { ...agent, agentId: source.agentId, orgId: row.orgId ?? undefined, teams };
}

async function teamsOf(
  db: Db,
  appId: string,
  column: 'user_id' | 'agent_id',
  id: string,
): Promise<Map<string, TeamRole>> {
  const rows = await db<{ teamId: string; role: TeamRole }[]>`
    select team_id, role from team_memberships where app_id = ${appId} and ${db(column)} = ${id}`;
  return new Map(rows.map((row) => [row.teamId, row.role]));
}
