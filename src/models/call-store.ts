import type { Db } from '../db/database.ts';
import { sweepRows } from '../db/delete-batch.ts';
import { isInUse } from '../db/fences.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Provider } from '../llm/operator-models.ts';
import type { Scope } from '../tenancy/caller.ts';
import { inScope } from '../tenancy/visible.ts';

export type CallRow = {
  id: string;
  model: string;
  alias: string | null;
  operation: 'embeddings' | 'rerank' | null;
  provider: Provider;
  providerModel: string;
  status: 'running' | 'succeeded' | 'failed' | 'abandoned';
  errorCode: string | null;
  finishReason: string | null;
  reservedTokens: number;
  promptTokens: number | null;
  completionTokens: number | null;
  estimated: boolean;
  inputPrice: number | null;
  outputPrice: number | null;
  cost: number | null;
  latencyMs: number | null;
  firstTokenMs: number | null;
  userId: string | null;
  agentId: string | null;
  automationId: string | null;
  runId: string | null;
  nodeId: string | null;
  extractionId: string | null;
  prompt: string | null;
  output: string | null;
  createdAt: Date;
  endedAt: Date | null;
};

export type StoredFilter = {
  model: string | undefined;
  status: string | undefined;
  userId: string | undefined;
  agentId: string | undefined;
  automationId: string | undefined;
  runId: string | undefined;
  extractionId: string | undefined;
  since: Date | undefined;
  until: Date | undefined;
};

function matches(db: Db, scope: Scope, filter: StoredFilter) {
  const is = (column: string, value: string | undefined) =>
    value === undefined ? db`true` : db`${db(`c.${column}`)} = ${value}`;
  return db`${inScope(db, scope, 'c')} and ${is('model', filter.model)} and ${is('status', filter.status)}
    and ${is('user_id', filter.userId)} and ${is('agent_id', filter.agentId)}
    and ${is('automation_id', filter.automationId)} and ${is('run_id', filter.runId)}
    and ${is('extraction_id', filter.extractionId)}
    and c.created_at >= ${filter.since ?? '-infinity'}::timestamptz
    and c.created_at < ${filter.until ?? 'infinity'}::timestamptz`;
}

/** Newest first, without contents. */
export async function listCalls(
  db: Db,
  scope: Scope,
  filter: StoredFilter,
  page: PageRequest,
): Promise<[CallRow[], number]> {
  return readWithTotal(
    db<CallRow[]>`
      select c.*, null as prompt, null as output from model_calls c where ${matches(db, scope, filter)}
      order by c.created_at desc, c.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from model_calls c where ${matches(db, scope, filter)}`,
  );
}

export async function findCall(db: Db, scope: Scope, id: string): Promise<CallRow | undefined> {
  return db<CallRow[]>`select c.* from model_calls c where ${inScope(db, scope, 'c')} and c.id = ${id}`.first();
}

/** Marks calls whose process was killed, the oldest first. What they reserved counts as used. Returns how many. */
export async function abandonCalls(db: Db, before: Date, count: number): Promise<number> {
  const { count: abandoned } = await db`
    update model_calls set status = 'abandoned', prompt_tokens = reserved_tokens, completion_tokens = 0,
      estimated = true, cost = reserved_cost
    where status = 'running' and (app_id, id) in (
      select c.app_id, c.id from model_calls c
      where c.status = 'running' and c.created_at < ${before} and ${isInUse(db, 'c.app_id')}
      order by c.created_at limit ${count} for update skip locked)`;
  return abandoned;
}

export async function deleteOldCalls(db: Db, before: Date): Promise<void> {
  await sweepRows(db, { table: 'model_calls', order: 'created_at', where: db`t.created_at < ${before}` });
}
