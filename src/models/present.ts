import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { defined } from '../lib/defined.ts';
import { formatId, type IdKind } from '../lib/ids.ts';
import type { AliasRow, ModelRow } from '../llm/model-store.ts';
import type { Trial } from '../llm/trial.ts';
import type { CallRow } from './call-store.ts';

export function presentModel(row: ModelRow) {
  return {
    ...compact({
      id: formatId('model', row.id),
      app: formatId('app', row.appId),
      name: row.name,
      kind: row.kind,
      provider: row.provider,
      model: row.model,
      url: row.url,
      has_key: row.key !== null,
      context_tokens: row.contextTokens,
      output_tokens: row.outputTokens,
      timeout_seconds: row.timeoutSeconds,
      dimensions: row.dimensions,
      batch_texts: row.batchTexts,
      query_prefix: row.queryPrefix,
      passage_prefix: row.passagePrefix,
      query_input_type: row.queryInputType,
      passage_input_type: row.passageInputType,
      fusion_weight: row.fusionWeight,
      modalities: row.modalities,
      prices: presentPrices(row),
      created_at: iso(row.createdAt),
      updated_at: iso(row.updatedAt),
    }),
    sandbox: presentSandboxId(row.sandboxId),
  };
}

export function presentTrial({ ok, problem, message, latencyMs, firstTokenMs }: Trial) {
  return { ok, latency_ms: latencyMs, ...defined({ problem, message, first_token_ms: firstTokenMs }) };
}

function presentPrices({ inputPrice, outputPrice }: Pick<ModelRow, 'inputPrice' | 'outputPrice'>) {
  return inputPrice === null || outputPrice === null ? null : { input: inputPrice, output: outputPrice };
}

export function presentAlias(row: AliasRow) {
  return {
    id: formatId('modelAlias', row.id),
    app: formatId('app', row.appId),
    sandbox: presentSandboxId(row.sandboxId),
    name: row.name,
    models: row.models,
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  };
}

export function presentCall(row: CallRow) {
  const id = (kind: IdKind, uuid: string | null) => (uuid === null ? null : formatId(kind, uuid));
  return compact({
    id: formatId('modelCall', row.id),
    model: row.model,
    alias: row.alias,
    operation: row.operation,
    provider: row.provider,
    provider_model: row.providerModel,
    status: row.status,
    error_code: row.errorCode,
    finish_reason: row.finishReason,
    prompt_tokens: row.promptTokens,
    completion_tokens: row.completionTokens,
    estimated: row.estimated,
    reserved_tokens: row.reservedTokens,
    prices: presentPrices(row),
    cost: row.cost,
    latency_ms: row.latencyMs,
    first_token_ms: row.firstTokenMs,
    user: id('user', row.userId),
    agent: id('agent', row.agentId),
    automation: id('automation', row.automationId),
    run: id('automationRun', row.runId),
    node: row.nodeId,
    extraction: id('extraction', row.extractionId),
    prompt: row.prompt,
    output: row.output,
    created_at: iso(row.createdAt),
    ended_at: row.endedAt && iso(row.endedAt),
  });
}
