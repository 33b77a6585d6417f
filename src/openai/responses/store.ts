import type { Db, Statement } from '../../db/database.ts';
import { sweepRows } from '../../db/delete-batch.ts';
import { type Caller, canSeeWholeApp, type Scope } from '../../tenancy/caller.ts';
import { inScope } from '../../tenancy/visible.ts';
import type { InputMessage } from './input.ts';
import { type OpenAiResponse, responseLimits } from './schema.ts';

export type ResponseRow = {
  appId: string;
  id: string;
  sandboxId: string;
  /** The user who asked; null for keys and developers. */
  userId: string | null;
  previousId: string | null;
  input: InputMessage[];
  response: OpenAiResponse;
  /** The documents whose passages the model has read, also for the responses that it continues, or that are shown. */
  documentIds: string[];
  createdAt: Date;
  expiresAt: Date;
};

/** SQL: the response is the caller's own, or the caller sees the whole app. */
function responseVisible(db: Db, caller: Caller, alias: string): Statement {
  if (canSeeWholeApp(caller)) return inScope(db, caller, alias);
  const userId = caller.kind === 'user' ? caller.userId : null;
  return db`${inScope(db, caller, alias)} and ${db(`${alias}.user_id`)} = ${userId}`;
}

export async function insertResponse(db: Db, row: Omit<ResponseRow, never>): Promise<void> {
  await db`
    insert into openai_responses (app_id, sandbox_id, id, user_id, previous_id, input, response, document_ids, created_at,
      expires_at)
    values (${row.appId}, ${row.sandboxId}, ${row.id}, ${row.userId}, ${row.previousId},
      ${JSON.stringify(row.input)}::text::jsonb, ${JSON.stringify(row.response)}::text::jsonb,
      ${row.documentIds}::uuid[], ${row.createdAt}, ${row.expiresAt})`;
}

export async function findResponse(db: Db, caller: Caller, id: string, now: Date): Promise<ResponseRow | undefined> {
  return db<ResponseRow[]>`
    select r.* from openai_responses r
    where r.id = ${id} and ${responseVisible(db, caller, 'r')} and r.expires_at > ${now}`.first();
}

/** A response and those that it continues, the oldest first, as far as they are still stored. */
export async function listChain(db: Db, caller: Caller, id: string, now: Date): Promise<ResponseRow[]> {
  return db<ResponseRow[]>`
    with recursive chain as (
      select r.*, 1 as depth from openai_responses r
      where r.id = ${id} and ${responseVisible(db, caller, 'r')} and r.expires_at > ${now}
      union all
      select r.*, c.depth + 1 from chain c join openai_responses r on r.app_id = c.app_id and r.id = c.previous_id
      where ${responseVisible(db, caller, 'r')} and r.expires_at > ${now} and c.depth <= ${responseLimits.previousMax})
    select * from chain order by depth desc`;
}

export async function deleteResponse(db: Db, { appId }: Scope, id: string): Promise<boolean> {
  return db`delete from openai_responses where app_id = ${appId} and id = ${id}`.any();
}

export async function countResponses(db: Db, scope: Scope, userId?: string): Promise<number> {
  const [row] = await db<[{ total: number }]>`
    select count(*)::int as total from openai_responses r where ${inScope(db, scope, 'r')}
      and ${userId === undefined ? db`true` : db`r.user_id = ${userId}`}`;
  return row.total;
}

export async function deleteExpired(db: Db, now: Date): Promise<void> {
  await sweepRows(db, { table: 'openai_responses', order: 'expires_at', where: db`t.expires_at <= ${now}` });
}
