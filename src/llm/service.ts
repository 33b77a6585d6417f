import type { Resolver } from '../content/fetch/resolver.ts';
import { type LlmClient, openAiChat } from '../content/models/llm/client.ts';
import {
  addUsage,
  type ChatMessage,
  estimateUsage,
  LlmError,
  noUsage,
  promptTokensMax,
  type TokenUsage,
} from '../content/models/llm/messages.ts';
import { Slots } from '../fairness/slots.ts';
import { AppError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import { readJsonOutput } from './json-output.ts';

/** The tokens of all requests for one text, and the number of requests. */
export type GenerationUsage = TokenUsage & { requests: number };

export type GenerationInput = {
  messages: readonly ChatMessage[];
  /** A JSON Schema that the output must match. */
  schema?: unknown;
  temperature?: number | undefined;
  /** The maximum number of tokens that one request may generate. */
  tokens: number;
};

export type Generated = {
  text: string;
  /** The output as JSON, if there is a schema. */
  data?: unknown;
  model: string;
  finish_reason: string;
  usage: GenerationUsage;
};

/** Reserves tokens before a request is sent, and settles the reservation when the number used is known. */
export type TokenBudget = {
  /** Throws AppError `token_budget_exceeded`. */
  reserve(tokens: number): Promise<{ settle(used: number): Promise<void> }>;
};

/** Who requests the text. `lane` is the app. */
type GenerationContext = {
  lane: string;
  budget: TokenBudget;
  signal: AbortSignal;
  /** Called when another request begins: the text so far will be replaced by what follows. */
  onRequest?(): void;
  onText?(text: string): void;
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

/** Further requests after the first for output that matches the schema. */
const repairsMax = 2;
const problemsShownMax = 20;
const problemCharactersMax = 2_000;

type LlmSettings = {
  llmUrl: string | undefined;
  llmModel: string | undefined;
  llmKey: string | undefined;
  llmConcurrency: number;
};

type LlmDeps = {
  config: LlmSettings;
  log: Logger;
  resolve: Resolver;
  /** Lists how a value violates a JSON Schema. Throws if the schema itself is invalid. */
  checkSchema(lane: string, schema: unknown, value: unknown): Promise<{ path: string; message: string }[]>;
};

export type Llm = ReturnType<typeof createLlm>;

/** The language model from the settings, shared by all apps. */
export function createLlm({ config, log, checkSchema, resolve }: LlmDeps) {
  const client = openClient(config, resolve);
  const refuse = () => new AppError('unavailable', 'Too many requests of this app wait for the language model.');
  const slots = new Slots({ slots: 2 * config.llmConcurrency, tooMany: refuse });

  /** 501 if the settings name no model. */
  function requireClient(): LlmClient {
    if (client === undefined)
      throw new AppError(
        'not_implemented',
        'This server has no language model: its operator has to set QUARRY_LLM_URL and QUARRY_LLM_MODEL.',
      );
    return client;
  }

  /** Sends one request and settles its tokens, whether it succeeds or fails. */
  async function complete(
    model: LlmClient,
    messages: readonly ChatMessage[],
    input: GenerationInput,
    of: GenerationContext,
  ) {
    const reserved = await of.budget.reserve(promptTokensMax(messages) + input.tokens);
    of.onRequest?.();
    let text = '';
    const onText = (part: string): void => {
      text += part;
      of.onText?.(part);
    };
    const { schema, tokens, temperature } = input;
    try {
      const completed = await model.complete({ messages, schema, tokens, temperature, signal: of.signal, onText });
      await reserved.settle(chargeOf(completed.usage, tokens));
      return completed;
    } catch (error) {
      const used = error instanceof LlmError ? error.usage : estimateUsage(messages, text);
      await reserved.settle(chargeOf(used, tokens));
      throw error;
    }
  }

  async function generate(input: GenerationInput, of: GenerationContext): Promise<Generated> {
    const model = requireClient();
    const { schema } = input;
    if (schema !== undefined) await checkSchema(of.lane, schema, null);
    let messages = schema === undefined ? [...input.messages] : withSchema(input.messages, schema);
    let usage: GenerationUsage = { ...noUsage, requests: 0 };
    const count = (more: TokenUsage) => ({ ...addUsage(usage, more), requests: usage.requests + 1 });
    for (let repairs = 0; ; repairs++) {
      const completed = await complete(model, messages, input, of).catch((error: unknown) => {
        if (!(error instanceof LlmError)) throw error;
        log.warn({ err: error, cause: error.cause }, 'A request to the language model failed');
        throw new GenerationError(error.code, error.message, count(error.usage));
      });
      usage = count(completed.usage);
      const { text, finishReason } = completed;
      const generated = { text, model: model.model, finish_reason: finishReason, usage };
      if (schema === undefined) return generated;
      const { data, problem } = await readValid(text, schema, of.lane, finishReason);
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

  async function readValid(text: string, schema: unknown, lane: string, finishReason: string) {
    const data = readJsonOutput(text);
    if (data === undefined)
      return { data, problem: finishReason === 'length' ? 'It was cut off: it is too long.' : 'It is not JSON.' };
    const problems = await checkSchema(lane, schema, data);
    if (problems.length === 0) return { data, problem: undefined };
    const shown = problems.slice(0, problemsShownMax).map(({ path, message }) => `${path || '/'} ${message}`);
    return { data, problem: shown.join('; ').slice(0, problemCharactersMax) };
  }

  return {
    requireModel(): void {
      requireClient();
    },
    /** Throws GenerationError, AppError, or the signal's reason if the signal is aborted. */
    generate(input: GenerationInput, of: GenerationContext): Promise<Generated> {
      requireClient();
      return slots.run(of.lane, () => generate(input, of), of.signal);
    },
  };
}

/** What a model reports to have written beyond its limit is not charged: the request did not allow it. */
function chargeOf({ prompt_tokens: prompt, completion_tokens: completion }: TokenUsage, tokensMax: number): number {
  return prompt + Math.min(completion, tokensMax);
}

function openClient({ llmUrl, llmKey, llmModel }: LlmSettings, resolve: Resolver): LlmClient | undefined {
  if (llmUrl === undefined || llmModel === undefined) return undefined;
  return openAiChat({ baseUrl: llmUrl, apiKey: llmKey, model: llmModel, resolve });
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
