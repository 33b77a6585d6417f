import type { AllowList } from '../content/fetch/allow-list.ts';
import type { Resolver } from '../content/fetch/resolver.ts';
import { addUsage, type ChatMessage, LlmError, noUsage, type TokenUsage } from '../content/models/llm/messages.ts';
import type { ToolCall } from '../content/models/llm/tools.ts';
import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { type BudgetDeps, createBudgets } from './budgets.ts';
import { type Complete, type CompleteDeps, createCompletion } from './complete.ts';
import type { GenerationContext, GenerationInput } from './generation.ts';
import { readJsonOutput } from './json-output.ts';
import type { ModelSlots } from './model-slots.ts';
import { type OperatorModelSettings, type OperatorModels, readOperatorModels } from './operator-models.ts';
import { originOfApp } from './origin.ts';
import { type Chosen, createRegistry } from './registry.ts';
import type { Settlements } from './settlements.ts';
import { createTrial, type TryModel } from './trial.ts';
import { createNamedModels, type NamedModels } from './vectors.ts';

export type { GenerationContext, GenerationInput, TokenBudget } from './generation.ts';

/** The tokens of all requests for one text, and the number of requests. */
export type GenerationUsage = TokenUsage & { requests: number };

export type Generated = {
  text: string;
  /** The output as JSON, if there is a schema. */
  data?: unknown;
  /** What the model asks for instead of ending, if the request had tools. */
  tool_calls?: ToolCall[];
  /** As its provider names it. */
  model: string;
  /** The name of the model that wrote the text, if the request named a model or an alias. */
  model_name?: string;
  finish_reason: string;
  usage: GenerationUsage;
};

/** The model gave no usable output. `code` and `message` are for the caller; `usage` is what it cost. */
export class GenerationError extends Error {
  readonly code: LlmError['code'] | 'invalid_output';
  readonly usage: GenerationUsage;

  constructor(code: GenerationError['code'], message: string, usage: GenerationUsage) {
    super(message);
    this.name = 'GenerationError';
    this.code = code;
    this.usage = usage;
  }
}

const repairsByDefault = 2;
const problemsShownMax = 20;
const problemCharactersMax = 2_000;

type LlmSettings = OperatorModelSettings & { modelCallContents: boolean; dataDir: string; rerankMs: number };

type LlmDeps = Pick<CompleteDeps, 'observe'> &
  Pick<BudgetDeps, 'emitReached'> & {
    db: Database;
    secrets: Secrets;
    clock: Clock;
    config: LlmSettings;
    log: Logger;
    /** For models that write text. */
    slots: ModelSlots;
    /** For embedders and rerankers. */
    vectorSlots: ModelSlots;
    resolve: Resolver;
    settlements: Settlements;
    /** Hosts beyond the public internet that the models of apps may have. */
    allow: AllowList;
    /** Lists how a value violates a JSON Schema. Throws if the schema itself is invalid. */
    checkSchema(lane: string, schema: unknown, value: unknown): Promise<{ path: string; message: string }[]>;
  };

type Generating = Pick<LlmDeps, 'checkSchema' | 'log'> & { complete: Complete };

/** Language models: those of the operator, shared by all apps, and those that apps bring. */
export type Llm = Pick<NamedModels, 'openEmbedder' | 'openReranker'> & {
  operator: OperatorModels;
  /** 422 on `model` if the name is unknown or has no key; 501 if it names none and none is configured. */
  requireUsable(scope: Scope, name: string | undefined): Promise<void>;
  /** Tries a model with one small call. */
  tryModel: TryModel;
  /** The smallest context of the models that the name stands for; undefined if none is known. */
  contextTokens(scope: Scope, name: string | undefined): Promise<number | undefined>;
  /** The same of the models that judge. */
  contextTokensOfJudge(): number | undefined;
  /** As `generate`, with the model that the operator chose to judge answers. */
  judge(input: GenerationInput, of: GenerationContext): Promise<Generated>;
  /** Throws GenerationError, AppError, or the signal's reason if the signal is aborted. */
  generate(input: GenerationInput, of: GenerationContext): Promise<Generated>;
};

export function createLlm(deps: LlmDeps): Llm {
  const { db, secrets, clock, config, log, slots, resolve, allow, checkSchema } = deps;
  const operator = readOperatorModels(config);
  const registry = createRegistry({ db, secrets, resolve, operator, allow, dataDir: config.dataDir });
  const budgets = createBudgets({ db, clock, settlements: deps.settlements, emitReached: deps.emitReached });
  const calls = {
    ...{ db, clock, log, registry, budgets, settlements: deps.settlements },
    keepsContents: config.modelCallContents,
    observe: deps.observe,
  };
  const complete = createCompletion(calls);
  const named = createNamedModels({ ...calls, slots: deps.vectorSlots, rerankMs: config.rerankMs });
  const generating: Generating = { complete, checkSchema, log };

  return {
    operator,

    async requireUsable(scope, name) {
      await registry.choose(scope, name);
    },

    openEmbedder: named.openEmbedder,
    openReranker: named.openReranker,
    tryModel: createTrial({ registry, complete, named }),

    contextTokens: async (scope, name) => contextTokensOf(await registry.choose(scope, name)),
    contextTokensOfJudge: () => contextTokensOf(registry.chooseJudge()),

    async judge(input, of) {
      const asked = { ...input, model: operator.judge };
      const chosen = registry.chooseJudge();
      return slots.run(of.lane, chosen, () => generateWith(generating, chosen, asked, of), of.signal);
    },

    async generate(input, of) {
      const chosen = await registry.choose(of.origin ?? originOfApp(of.lane), input.model);
      return slots.run(of.lane, chosen, () => generateWith(generating, chosen, input, of), of.signal);
    },
  };
}

async function generateWith(
  { complete, checkSchema, log }: Generating,
  chosen: Chosen,
  input: GenerationInput,
  of: GenerationContext,
): Promise<Generated> {
  const { schema, repairsMax = repairsByDefault } = input;
  // A provider that constrains the text to a schema may not be able to call tools: the text is checked here.
  const asked = input.tools === undefined ? input : { ...input, schema: undefined };
  if (schema !== undefined) await checkSchema(of.lane, schema, null);
  let messages = schema === undefined ? [...input.messages] : withSchema(input.messages, schema);
  let usage: GenerationUsage = { ...noUsage, requests: 0 };
  const count = (more: TokenUsage) => ({ ...addUsage(usage, more), requests: usage.requests + 1 });
  for (let repairs = 0; ; repairs++) {
    const { completed, model } = await complete(chosen, messages, asked, of).catch((error: unknown) => {
      if (!(error instanceof LlmError)) throw error;
      log.warn({ err: error, cause: error.cause }, 'A request to the language model failed');
      throw new GenerationError(error.code, error.message, count(error.usage));
    });
    usage = count(completed.usage);
    const { text, finishReason, toolCalls } = completed;
    const named = input.model === undefined ? {} : { model_name: model.name };
    const generated = { text, model: model.model, ...named, finish_reason: finishReason, usage };
    if (input.tools !== undefined && toolCalls.length > 0) return { ...generated, tool_calls: toolCalls };
    if (schema === undefined) return generated;
    const { data, problem } = await readValid(checkSchema, text, schema, of.lane, finishReason);
    if (problem === undefined) return { ...generated, data };
    if (repairs === repairsMax)
      throw new GenerationError('invalid_output', `The language model wrote no valid output: ${problem}`, usage);
    messages = [
      ...withSchema(input.messages, schema),
      { role: 'assistant', content: text },
      { role: 'user', content: `That is not valid: ${problem}\nWrite the corrected JSON value, and nothing else.` },
    ];
  }
}

async function readValid(
  checkSchema: LlmDeps['checkSchema'],
  text: string,
  schema: unknown,
  lane: string,
  finishReason: string,
) {
  const data = readJsonOutput(text);
  if (data === undefined)
    return { data, problem: finishReason === 'length' ? 'It was cut off: it is too long.' : 'It is not JSON.' };
  const problems = await checkSchema(lane, schema, data);
  if (problems.length === 0) return { data, problem: undefined };
  const shown = problems.slice(0, problemsShownMax).map(({ path, message }) => `${path || '/'} ${message}`);
  return { data, problem: shown.join('; ').slice(0, problemCharactersMax) };
}

function contextTokensOf({ models }: Chosen): number | undefined {
  const known = models.flatMap(({ contextTokens }) => contextTokens ?? []);
  return known.length === 0 ? undefined : Math.min(...known);
}

/**
 * Adds the instruction to the messages, for a server that cannot constrain the output. Many models accept only one
 * system message.
 */
export function withSchema(messages: readonly ChatMessage[], schema: unknown): ChatMessage[] {
  const instruction = `Write one JSON value that validates against this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`;
  const [first, ...rest] = messages;
  if (first?.role === 'system') return [{ role: 'system', content: `${first.content}\n\n${instruction}` }, ...rest];
  return [{ role: 'system', content: instruction }, ...messages];
}
