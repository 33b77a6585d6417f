import type { Db } from '../db/database.ts';
import type { CallOrigin } from './origin.ts';
import type { Model } from './registry.ts';

/** SQL for the records of calls. Listing and sweeping them is in models/. */

export type CallOperation = 'embeddings' | 'rerank';

type NewCall = {
  id: string;
  alias: string | null;
  /** Null: to write text. */
  operation?: CallOperation;
  reservedTokens: number;
  reservedCost: number | null;
  prompt: string | null;
  now: Date;
};

export async function insertCall(db: Db, origin: CallOrigin, model: Model, call: NewCall): Promise<void> {
  const { prices } = model;
  await db`
    insert into model_calls (app_id, id, sandbox_id, model, alias, model_id, provider, provider_model, reserved_tokens,
      reserved_cost, input_price, output_price, user_id, agent_id, automation_id, run_id, node_id,
      extraction_id, prompt, created_at, operation)
    values (${origin.appId}, ${call.id}, ${origin.sandboxId}, ${model.name}, ${call.alias}, ${model.id},
      ${model.provider}, ${model.model}, ${call.reservedTokens}, ${call.reservedCost}, ${prices?.input ?? null},
      ${prices?.output ?? null}, ${origin.userId ?? null}, ${origin.agentId ?? null},
      ${origin.automationId ?? null}, ${origin.runId ?? null}, ${origin.nodeId ?? null},
      ${origin.extractionId ?? null}, ${call.prompt}, ${call.now}, ${call.operation ?? null})`;
}

export type CallEnd = {
  status: 'succeeded' | 'failed';
  errorCode: string | null;
  finishReason: string | null;
  promptTokens: number;
  completionTokens: number;
  estimated: boolean;
  cost: number | null;
  latencyMs: number;
  firstTokenMs: number | null;
  output: string | null;
  now: Date;
};

export async function endCall(db: Db, { appId }: CallOrigin, id: string, end: CallEnd): Promise<void> {
  await db`
    update model_calls set status = ${end.status}, error_code = ${end.errorCode}, finish_reason = ${end.finishReason},
      prompt_tokens = ${end.promptTokens}, completion_tokens = ${end.completionTokens}, estimated = ${end.estimated},
      cost = ${end.cost}, latency_ms = ${end.latencyMs}, first_token_ms = ${end.firstTokenMs}, output = ${end.output},
      ended_at = ${end.now}
    where app_id = ${appId} and id = ${id}`;
}
