import { promptTokens, promptTokensMax } from '../content/models/llm/messages.ts';
import { ModelFailure } from '../content/models/service.ts';
import { type Db, runApart } from '../db/database.ts';
import { newUuid } from '../lib/ids.ts';
import { holdTokens } from '../tenancy/quotas.ts';
import { trace } from '../tracing/trace.ts';
import { type CallEnd, type CallOperation, endCall, insertCall } from './call-store.ts';
import { type CompleteDeps, costOf, observeCall, providerNames } from './complete.ts';
import type { CallOrigin } from './origin.ts';
import type { Chosen, Model } from './registry.ts';

/** What a call has used, in tokens and millionths of a currency unit. */
export type CallUse = { tokens: number; cost: number };

/** A call that returns no text. */
export type AccountedCall<T> = {
  operation: CallOperation;
  /** What is sent to a model, for estimates and records. */
  texts(model: Model): readonly string[];
  attributes?: Record<string, string | number>;
  send(model: Model, isLast: boolean): Promise<{ value: T; tokens: number | undefined }>;
};

type CallContext = { origin: CallOrigin; onUsed?(tx: Db, use: CallUse): Promise<void> };
type Call<T> = [chosen: Chosen, call: AccountedCall<T>, of: CallContext, signal?: AbortSignal];

const contentCharactersMax = 100_000;

/**
 * Makes calls that return no text, such as those for vectors, within one reservation: of the app's tokens of the day,
 * and of the budgets of the origin. Tries the models in turn while that may help. Each try has a record and a span.
 * Transactions end before a model is called, as those of completions do.
 */
export function createAccount(deps: CompleteDeps) {
  return <T>(...call: Call<T>) => runApart(() => account(deps, ...call));
}

async function account<T>(
  deps: CompleteDeps,
  ...[{ alias, models }, call, { origin, onUsed }, signal]: Call<T>
): Promise<T> {
  const { budgets } = deps;
  const reserved = Math.max(...models.map((model) => tokensOf(call.texts(model), promptTokensMax)));
  const costs = models.flatMap(({ prices }) => (prices ? [costOf(prices, { prompt: reserved, completion: 0 })] : []));
  const amount = { tokens: reserved, cost: costs.length === 0 ? undefined : Math.max(...costs) };
  const hold = await budgets.reserve(origin, amount, (tx) => holdTokens(tx, origin, reserved));
  const used: CallUse = { tokens: 0, cost: 0 };
  try {
    const affordable = hold.inMoney ? models.filter(({ prices }) => prices !== undefined) : models;
    return await tryInTurn(deps, { alias, models: affordable }, call, origin, used, signal);
  } finally {
    await deps.settlements.settle(async (tx) => {
      await hold.settle(tx, used);
      await onUsed?.(tx, used);
    });
  }
}

async function tryInTurn<T>(
  deps: CompleteDeps,
  { alias, models }: Chosen,
  call: AccountedCall<T>,
  origin: CallOrigin,
  used: CallUse,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (const [index, model] of models.entries()) {
    const isLast = index === models.length - 1;
    try {
      return await callOne(deps, model, isLast, alias, call, origin, used, signal);
    } catch (error) {
      if (isLast || !(error instanceof ModelFailure && error.mayPass)) throw error;
      deps.log.warn({ err: error, model: model.name }, 'Another model is tried');
    }
  }
  throw new Error('No model was tried.');
}

async function callOne<T>(
  deps: CompleteDeps,
  model: Model,
  isLast: boolean,
  alias: string | null,
  call: AccountedCall<T>,
  origin: CallOrigin,
  used: CallUse,
  signal: AbortSignal | undefined,
): Promise<T> {
  const id = newUuid();
  const texts = call.texts(model);
  const reserved = tokensOf(texts, promptTokensMax);
  const { prices } = model;
  await insertCall(deps.db, origin, model, {
    ...{ id, alias, operation: call.operation, reservedTokens: reserved, now: deps.clock.now() },
    reservedCost: prices === undefined ? null : costOf(prices, { prompt: reserved, completion: 0 }),
    prompt: deps.keepsContents ? JSON.stringify(texts).slice(0, contentCharactersMax).toWellFormed() : null,
  });
  const began = performance.now();
  const end = async (reported: number | undefined, outcome: Pick<CallEnd, 'status' | 'errorCode'>) => {
    const tokens = reported ?? tokensOf(texts, promptTokens);
    const cost = prices === undefined ? null : costOf(prices, { prompt: tokens, completion: 0 });
    used.tokens += tokens;
    used.cost += cost ?? 0;
    const latencyMs = Math.round(performance.now() - began);
    const usage = { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens };
    observeCall(deps, model, usage, { ...outcome, finishReason: null }, { latencyMs, firstTokenMs: null });
    const ended: CallEnd = {
      ...{
        ...outcome,
        finishReason: null,
        promptTokens: tokens,
        completionTokens: 0,
        estimated: reported === undefined,
      },
      ...{ cost, latencyMs, firstTokenMs: null, output: null, now: deps.clock.now() },
    };
    await deps.settlements.write(() => endCall(deps.db, origin, id, ended));
  };
  const attributes = {
    ...{ 'gen_ai.operation.name': call.operation, 'gen_ai.provider.name': providerNames[model.provider] },
    ...{ 'gen_ai.request.model': model.model, ...call.attributes },
  };
  return trace(`${call.operation} ${model.model}`, { kind: 'client', attributes }, async () => {
    try {
      const { value, tokens } = await call.send(model, isLast);
      await end(tokens, { status: 'succeeded', errorCode: null });
      return value;
    } catch (error) {
      const failure = error instanceof ModelFailure ? error : undefined;
      const wasCharged = signal?.aborted || failure?.wasCharged;
      const errorCode = signal?.aborted ? 'aborted' : failure ? 'llm_failed' : 'internal_error';
      await end(wasCharged ? undefined : 0, { status: 'failed', errorCode });
      throw error;
    }
  });
}

function tokensOf(texts: readonly string[], count: typeof promptTokens): number {
  return count(texts.map((content) => ({ role: 'user', content })));
}
