import type { Completed } from '../content/models/llm/completion.ts';
import {
  addUsage,
  type ChatMessage,
  estimateUsage,
  LlmError,
  noUsage,
  promptTokens,
  promptTokensMax,
  type TokenUsage,
} from '../content/models/llm/messages.ts';
import { type Database, runApart } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import { noteAttributes, trace } from '../tracing/trace.ts';
import type { Budgets } from './budgets.ts';
import { type CallEnd, endCall, insertCall } from './call-store.ts';
import type { GenerationContext, GenerationInput } from './generation.ts';
import { type CallOrigin, originOfApp } from './origin.ts';
import type { Chosen, Model, Prices, Registry } from './registry.ts';
import type { Settlements } from './settlements.ts';

/** What a call was, for metrics. */
export type ObservedCall = {
  provider: string;
  status: CallEnd['status'];
  promptTokens: number;
  completionTokens: number;
  seconds: number;
  firstTokenSeconds: number | undefined;
};

export type CompleteDeps = {
  db: Database;
  clock: Clock;
  log: Logger;
  registry: Registry;
  budgets: Budgets;
  settlements: Settlements;
  /** Whether records keep messages and text. */
  keepsContents: boolean;
  observe(call: ObservedCall): void;
};

/** How much of the messages, and of the text, a record keeps. */
const contentCharactersMax = 100_000;
/** How long a model of an alias may write nothing before the next one is tried, unless its own limit is lower. */
const aliasFirstTextMs = 60_000;

type Attempt = { model: Model; isLast: boolean; alias: string | null; messages: readonly ChatMessage[] };
/** What a call used, and what it cost if its model has a price. */
type Used = { usage: TokenUsage; cost: number };

/** One text, and the model that wrote it. */
type Completion = { completed: Completed; model: Model };
export type Complete = (
  chosen: Chosen,
  messages: readonly ChatMessage[],
  input: GenerationInput,
  of: GenerationContext,
) => Promise<Completion>;

/**
 * Sends one request to the first of the models that responds, within one reservation. The next one is tried only while
 * no text and no tool call has arrived. What it reserves is committed before the model is called, also within a repeatable
 * request: a transaction must not stay open until a model responds.
 */
export function createCompletion(deps: CompleteDeps): Complete {
  return (...call) => runApart(() => complete(...call));

  async function complete(...[chosen, messages, input, of]: Parameters<Complete>): Promise<Completion> {
    const origin = of.origin ?? originOfApp(of.lane);
    const reserved = { prompt: promptTokensMax(messages, input.tools), completion: input.tokens };
    const costs = chosen.models.flatMap(({ prices }) => (prices ? [costOf(prices, reserved)] : []));
    const cost = costs.length === 0 ? undefined : Math.max(...costs);
    const tokens = reserved.prompt + reserved.completion;
    const hold = await deps.budgets.reserve(origin, { tokens, cost }, (tx) => of.budget.reserve(tx, tokens));
    const used: Used = { usage: noUsage, cost: 0 };
    try {
      const models = hold.inMoney ? chosen.models.filter(({ prices }) => prices !== undefined) : chosen.models;
      return await tryInTurn({ ...chosen, models }, messages, input, of, origin, used);
    } finally {
      const total = { tokens: used.usage.total_tokens, cost: used.cost };
      await deps.settlements.settle((tx) => hold.settle(tx, total));
    }
  }

  async function tryInTurn(
    { alias, models }: Chosen,
    messages: readonly ChatMessage[],
    input: GenerationInput,
    of: GenerationContext,
    origin: CallOrigin,
    used: Used,
  ): Promise<Completion> {
    const seeing = models.filter((model) => takesAttachments(model, messages));
    if (seeing.length === 0)
      throw new LlmError('llm_failed', 'The language model does not accept pictures or files of these types.', noUsage);
    const fitting = seeing.filter((model) => fitsContext(model, messages, input));
    if (fitting.length === 0)
      throw new LlmError('llm_failed', 'The messages do not fit the context of the language model.', noUsage);
    for (const [index, model] of fitting.entries()) {
      const isLast = index === fitting.length - 1;
      try {
        const completed = await callOne(deps, { model, isLast, alias, messages }, input, of, origin, used);
        return { completed, model };
      } catch (error) {
        if (isLast || !(error instanceof LlmError) || !error.triesOthers) throw error;
        deps.log.warn({ err: error, cause: error.cause, model: model.name }, 'Another language model is tried');
      }
    }
    throw new Error('No model was tried.');
  }
}

/** Calls one model, with a record and a span. Adds to `used`. */
async function callOne(
  deps: CompleteDeps,
  attempt: Attempt,
  input: GenerationInput,
  of: GenerationContext,
  origin: CallOrigin,
  used: Used,
): Promise<Completed> {
  const { model, messages } = attempt;
  const tokens = Math.min(input.tokens, model.outputTokens ?? input.tokens);
  const reserved = { prompt: promptTokensMax(messages, input.tools), completion: tokens };
  const id = newUuid();
  const kept = (value: unknown) => (deps.keepsContents ? textOf(of.redact?.(value) ?? value) : null);
  await insertCall(deps.db, origin, model, {
    ...{ id, alias: attempt.alias, prompt: kept(messages.map(withoutBytes)), now: deps.clock.now() },
    reservedTokens: reserved.prompt + reserved.completion,
    reservedCost: model.prices === undefined ? null : costOf(model.prices, reserved),
  });
  of.onRequest?.();
  const began = performance.now();
  let text = '';
  let written: unknown;
  let firstTextMs: number | undefined;
  const end = async (usage: TokenUsage, outcome: Pick<CallEnd, 'status' | 'errorCode' | 'finishReason'>) => {
    const charged = chargedUsage(usage, tokens);
    const cost = model.prices === undefined ? null : costOf(model.prices, tokensOf(charged));
    used.usage = addUsage(used.usage, charged);
    used.cost += cost ?? 0;
    const latencyMs = Math.round(performance.now() - began);
    const firstTokenMs = firstTextMs === undefined ? null : Math.round(firstTextMs);
    observeCall(deps, model, charged, outcome, { latencyMs, firstTokenMs });
    const ended: CallEnd = {
      ...outcome,
      ...{ promptTokens: charged.prompt_tokens, completionTokens: charged.completion_tokens },
      ...{ estimated: charged.estimated ?? false, cost, latencyMs, firstTokenMs },
      ...{ output: kept(written ?? text), now: deps.clock.now() },
    };
    await deps.settlements.write(() => endCall(deps.db, origin, id, ended));
  };
  const onToolCall = (): void => {
    firstTextMs ??= performance.now() - began;
  };
  const onText = (part: string): void => {
    onToolCall();
    text += part;
    of.onText?.(part);
  };
  const attributes = attributesOf(model, { ...input, tokens });
  return trace(`chat ${model.model}`, { kind: 'client', attributes }, async () => {
    try {
      const completed = await request(deps.registry, attempt, { ...input, tokens }, of.signal, { onText, onToolCall });
      if (completed.toolCalls.length > 0) written = { text, tool_calls: completed.toolCalls };
      await end(completed.usage, { status: 'succeeded', errorCode: null, finishReason: completed.finishReason });
      return completed;
    } catch (error) {
      const isLlm = error instanceof LlmError;
      const usage = isLlm ? error.usage : error instanceof AppError ? noUsage : estimateUsage(messages, text);
      const errorCode =
        isLlm || error instanceof AppError ? error.code : of.signal.aborted ? 'aborted' : 'internal_error';
      await end(usage, { status: 'failed', errorCode, finishReason: null });
      throw isLlm && firstTextMs !== undefined
        ? new LlmError(error.code, error.message, error.usage, error.cause)
        : error;
    }
  });
}

/** The attributes of a call's span. */
function attributesOf(model: Model, { tokens, temperature, topP }: GenerationInput) {
  return {
    ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': providerNames[model.provider] },
    ...{ 'gen_ai.request.model': model.model, 'gen_ai.request.max_tokens': tokens, 'gen_ai.request.stream': true },
    ...(temperature === undefined ? {} : { 'gen_ai.request.temperature': temperature }),
    ...(topP === undefined ? {} : { 'gen_ai.request.top_p': topP }),
  };
}

/** Sends the request, with the time limit that the model has for its first text. */
async function request(
  registry: Registry,
  { model, isLast, messages }: Attempt,
  { schema, tools, tokens, temperature, topP }: GenerationInput,
  signal: AbortSignal,
  on: { onText(text: string): void; onToolCall(): void },
): Promise<Completed> {
  const client = registry.client(model);
  const firstTextMs = model.timeoutMs ?? (isLast ? undefined : aliasFirstTextMs);
  const late = new AbortController();
  const message = `The language model wrote nothing within ${(firstTextMs ?? 0) / 1_000} seconds.`;
  const tooLate = new LlmError('llm_timeout', message, estimateUsage(messages, ''), undefined, true);
  const timer = firstTextMs === undefined ? undefined : setTimeout(() => late.abort(tooLate), firstTextMs);
  try {
    return await client.complete({
      ...{ messages, schema, tools, tokens, temperature, topP },
      ...(isLast ? {} : { tries: 1 }),
      signal: AbortSignal.any([signal, late.signal]),
      onText(text) {
        clearTimeout(timer);
        on.onText(text);
      },
      onToolCall() {
        clearTimeout(timer);
        on.onToolCall();
      },
    });
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the messages are likely to leave room for the text. A model of unknown context is asked. */
function fitsContext(
  { contextTokens, outputTokens }: Model,
  messages: readonly ChatMessage[],
  { tokens, tools }: GenerationInput,
): boolean {
  if (contextTokens === undefined) return true;
  return promptTokens(messages, tools) + Math.min(tokens, outputTokens ?? tokens) <= contextTokens;
}

/** Whether the model takes the pictures and files of the messages. */
function takesAttachments({ modalities }: Model, messages: readonly ChatMessage[]): boolean {
  return messages.every(({ attachments = [] }) => attachments.every(({ kind }) => modalities.includes(kind)));
}

/** Records keep what a message says, not the bytes of its files. */
function withoutBytes({ attachments, ...message }: ChatMessage) {
  if (attachments === undefined) return message;
  return { ...message, attachments: attachments.map(({ base64: _bytes, ...attachment }) => attachment) };
}

function textOf(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, contentCharactersMax).toWellFormed();
}

/** What a model reports to have written beyond its limit is not charged: the request did not allow it. */
function chargedUsage(usage: TokenUsage, tokensMax: number): TokenUsage {
  const completion = Math.min(usage.completion_tokens, tokensMax);
  return { ...usage, completion_tokens: completion, total_tokens: usage.prompt_tokens + completion };
}

type TokenCounts = { prompt: number; completion: number };

function tokensOf({ prompt_tokens: prompt, completion_tokens: completion }: TokenUsage): TokenCounts {
  return { prompt, completion };
}

/** Millionths of a currency unit, rounded up: a call that used anything never costs nothing. */
export function costOf(prices: Prices, { prompt, completion }: TokenCounts): number {
  const exact = BigInt(prices.input) * BigInt(prompt) + BigInt(prices.output) * BigInt(completion);
  return Number((exact + 999_999n) / 1_000_000n);
}

/** As OpenTelemetry's conventions for generative AI (1.41.0) name providers. */
export const providerNames: Record<Model['provider'], string> = {
  openai: 'openai',
  anthropic: 'anthropic',
  google: 'gcp.gemini',
  cohere: 'cohere',
};

export function observeCall(
  { observe }: Pick<CompleteDeps, 'observe'>,
  { provider }: Model,
  usage: TokenUsage,
  { status, finishReason }: Pick<CallEnd, 'status' | 'finishReason'>,
  { latencyMs, firstTokenMs }: { latencyMs: number; firstTokenMs: number | null },
): void {
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens } = usage;
  const firstTokenSeconds = firstTokenMs === null ? undefined : firstTokenMs / 1_000;
  noteAttributes({
    ...{ 'gen_ai.usage.input_tokens': promptTokens, 'gen_ai.usage.output_tokens': completionTokens },
    ...(finishReason === null ? {} : { 'gen_ai.response.finish_reasons': [finishReason] }),
    ...(firstTokenSeconds === undefined ? {} : { 'gen_ai.response.time_to_first_chunk': firstTokenSeconds }),
  });
  observe({ provider, status, promptTokens, completionTokens, seconds: latencyMs / 1_000, firstTokenSeconds });
}
