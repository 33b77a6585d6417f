import type { JSONSchema7, LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider';
import type { Dispatcher } from 'undici';
import { defined } from '../../../lib/defined.ts';
import { lazyPackage } from '../../../lib/lazy-package.ts';
import { isRecord, pause } from '../service.ts';
import type { Completed, Completion, LlmClient } from './completion.ts';
import { estimateUsage, isCount, LlmError, noUsage, refusedStatus, type TokenUsage } from './messages.ts';
import { Output } from './output.ts';
import { promptMessages } from './sdk-messages.ts';
import { type ToolCall, type ToolDefinition, withOwnIds } from './tools.ts';

/*
 * Models of Anthropic and Google, through the model objects of the AI SDK: they only translate between the messages and
 * the provider's protocol. Connections, limits, retries and errors are ours.
 */

type SdkOptions = {
  provider: 'anthropic' | 'google';
  /** With the version, such as `https://api.anthropic.com/v1`. */
  baseUrl: string;
  apiKey: string;
  model: string;
  agent: () => Dispatcher;
  /** Loads a package of the add-on `models`. */
  load: (name: string) => unknown;
  /** Waits between attempts. Replaced in tests. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<unknown>;
};

type CreateModel = (model: string) => LanguageModelV4;
type Sdk = Record<string, (settings: { baseURL: string; apiKey: string; fetch: typeof fetch }) => CreateModel>;

const undici = lazyPackage<typeof import('undici')>('undici');

const triesMax = 3;
const retryAfterMsMax = 30_000;
const errorBytesMax = 64 * 1024;
/** An event carries a few tokens in some hundred bytes; what else a response has is small. */
const eventBytesMax = 1024;
const otherBytesMax = 256 * 1024;
const streamBytesMax = 32 * 1024 * 1024;

const packages = {
  anthropic: { name: '@ai-sdk/anthropic', create: 'createAnthropic' },
  google: { name: '@ai-sdk/google', create: 'createGoogle' },
} as const;

/** A client for Anthropic's Messages or Google's Gemini API. Loads its package with the first request. */
export function sdkChat(options: SdkOptions): LlmClient {
  const sleep = options.sleep ?? pause;
  return {
    model: options.model,
    async complete(request) {
      const tries = request.tries ?? triesMax;
      let constrains = request.schema !== undefined;
      for (let failures = 0; ; ) {
        const exchange = new Exchange(options, request);
        try {
          return await exchange.run(constrains);
        } catch (error) {
          request.signal.throwIfAborted();
          if (!(error instanceof LlmError)) throw error;
          // The messages ask for the schema, too: a model that cannot be constrained to it is asked once without.
          if (constrains && exchange.refusesSchema) {
            constrains = false;
            continue;
          }
          if (exchange.retryMs === undefined || ++failures >= tries) throw error;
          await sleep(exchange.retryMs * 2 ** (failures - 1), request.signal);
        }
      }
    },
  };
}

/** One request and its response. */
class Exchange {
  readonly #options: SdkOptions;
  readonly #request: Completion;
  readonly #stop = new AbortController();
  readonly #output: Output;
  /** After this time another attempt may succeed. Undefined: it will not. */
  retryMs: number | undefined;
  refusesSchema = false;

  constructor(options: SdkOptions, request: Completion) {
    this.#options = options;
    this.#request = request;
    this.#output = new Output(request);
  }

  async run(constrains: boolean): Promise<Completed> {
    const { schema, tools = [], tokens, temperature, topP, signal } = this.#request;
    const call: LanguageModelV4CallOptions = {
      prompt: this.#prompt(),
      maxOutputTokens: tokens,
      ...defined({ temperature, topP }),
      ...(tools.length === 0 ? {} : { tools: tools.map(toolOf) }),
      ...(constrains ? { responseFormat: { type: 'json', schema: schema as JSONSchema7 } } : {}),
      abortSignal: AbortSignal.any([signal, this.#stop.signal]),
    };
    try {
      const { stream } = await this.#model().doStream(call);
      return await this.#read(stream);
    } catch (error) {
      signal.throwIfAborted();
      const own = ownError(error);
      if (own !== undefined) throw own;
      if (isTooLarge(error)) return this.#output.cut();
      throw this.#fail('llm_bad_response', 'The response of the language model ended early.', error);
    } finally {
      this.#stop.abort();
    }
  }

  #model(): LanguageModelV4 {
    const { provider, baseUrl, apiKey, model, load } = this.#options;
    const { name, create } = packages[provider];
    const open = (load(name) as Sdk)[create];
    if (open === undefined) throw new Error(`${name} has no ${create}.`);
    return open({ baseURL: baseUrl.replace(/\/+$/, ''), apiKey, fetch: this.#fetch })(model);
  }

  /** The text of the messages. Both providers take instructions only at the beginning. */
  #prompt(): LanguageModelV4Prompt {
    const { messages } = this.#request;
    const first = messages.findIndex(({ role }) => role !== 'system');
    if (first < 0 || messages.slice(first).some(({ role }) => role === 'system'))
      throw this.#fail('llm_failed', 'This language model takes system messages only before the others.');
    return promptMessages(messages);
  }

  async #read(stream: Awaited<ReturnType<LanguageModelV4['doStream']>>['stream']): Promise<Completed> {
    const output = this.#output;
    const calls: ToolCall[] = [];
    const nothing = { text: '', usage: undefined, finishReason: undefined };
    for await (const part of stream as unknown as AsyncIterable<StreamPart>) {
      if (part.type === 'error') throw this.#failedPart(part.error);
      if (part.type === 'text-delta') output.add({ ...nothing, text: part.delta });
      // Counts what is written; the call itself comes whole.
      if (part.type === 'tool-input-start') output.add({ ...nothing, toolCalls: [{ index: calls.length }] });
      if (part.type === 'tool-input-delta')
        output.add({ ...nothing, toolCalls: [{ index: calls.length, arguments: part.delta }] });
      if (part.type === 'tool-call' && part.providerExecuted !== true) calls.push(callOf(part));
      if (output.isFull) return output.cut();
      if (part.type === 'finish')
        output.add({ text: '', usage: readUsage(part.usage), finishReason: finishOf(part.finishReason) });
    }
    output.end();
    const { text, finishReason, usage } = output;
    if (finishReason === undefined)
      throw this.#fail('llm_bad_response', 'The response of the language model ended early.');
    if (finishReason === 'error') throw this.#fail('llm_failed', 'The language model failed while generating.');
    // A call that the limit cut off is incomplete.
    const toolCalls = finishReason === 'length' ? [] : withOwnIds(calls);
    const estimated = () => estimateUsage(this.#request.messages, text, toolCalls);
    return { text, toolCalls, finishReason, usage: usage ?? estimated() };
  }

  /** An error in the stream: of the provider, or because the SDK cannot read what arrived. */
  #failedPart(error: unknown): LlmError | RangeError {
    if (isTooLarge(error)) return error as RangeError;
    const own = ownError(error);
    if (own !== undefined) return own;
    const isUnreadable = error instanceof Error && !/APICall/.test(error.name);
    if (isUnreadable)
      return this.#fail('llm_bad_response', 'The response of the language model cannot be read.', error);
    return this.#fail('llm_failed', 'The language model failed while generating.', error, true);
  }

  #fail(code: LlmError['code'], message: string, cause?: unknown, triesOthers = false): LlmError {
    const { usage, text } = this.#output;
    const isSent = this.#isSent;
    const used = usage ?? (isSent ? estimateUsage(this.#request.messages, text) : noUsage);
    return new LlmError(code, message, used, cause, triesOthers);
  }

  #isSent = false;

  /** The only way out of the SDK: our connections, a limit for the bytes of a response, and no redirects. */
  #fetch: typeof fetch = async (input, init) => {
    const { agent } = this.#options;
    let response: Dispatcher.ResponseData;
    try {
      response = await undici().request(String(input), {
        method: 'POST',
        dispatcher: agent(),
        headers: { ...Object.fromEntries(new Headers(init?.headers)), 'accept-encoding': 'identity' },
        body: String(init?.body ?? ''),
        signal: init?.signal ?? null,
      });
    } catch (error) {
      this.#request.signal.throwIfAborted();
      this.retryMs = 1_000;
      throw new LlmError('llm_unreachable', 'The language model cannot be reached.', noUsage, error, true);
    }
    response.body.on('error', () => {});
    if (response.statusCode !== 200) throw await this.#refused(response);
    const encoding = String(response.headers['content-encoding'] ?? '').trim();
    if (!/^(identity)?$/i.test(encoding)) {
      response.body.destroy();
      const message = 'The language model compressed its response, which was not requested.';
      throw new LlmError('llm_bad_response', message, noUsage);
    }
    this.#isSent = true;
    const bytesMax = Math.min(otherBytesMax + this.#request.tokens * eventBytesMax, streamBytesMax);
    const headers = { 'content-type': String(response.headers['content-type'] ?? '') };
    return new Response(streamOf(bounded(response.body, bytesMax)), { headers });
  };

  async #refused({ statusCode: status, headers, body }: Dispatcher.ResponseData): Promise<LlmError> {
    let text = '';
    for await (const part of body) {
      text += Buffer.from(part as Uint8Array).toString();
      if (text.length > errorBytesMax) break;
    }
    body.destroy();
    const seconds = Number(headers['retry-after']);
    const waitMs = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1_000, retryAfterMsMax) : 1_000;
    if (status === 429 || status === 408 || status >= 500) this.retryMs = waitMs;
    this.refusesSchema = status === 400 && /schema|format|output_config|tool/i.test(text);
    return refusedStatus(status, text);
  }
}

type StreamPart = { type: string } & (
  | { type: 'text-delta' | 'tool-input-delta'; delta: string }
  | { type: 'tool-input-start' }
  | SdkToolCall
  | { type: 'finish'; usage: unknown; finishReason: { unified: string; raw: string | undefined } }
  | { type: 'error'; error: unknown }
);

type SdkToolCall = {
  type: 'tool-call';
  toolCallId: string;
  toolName: string;
  input: string;
  providerExecuted?: boolean;
  providerMetadata?: Record<string, unknown>;
};

function callOf({ toolCallId, toolName, input, providerMetadata }: SdkToolCall): ToolCall {
  const data = providerMetadata === undefined ? {} : { providerData: providerMetadata };
  return { id: toolCallId, name: toolName, arguments: input, ...data };
}

function toolOf({ name, description, parameters }: ToolDefinition) {
  return { type: 'function' as const, name, description, inputSchema: parameters as JSONSchema7 };
}

function streamOf(parts: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await parts.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await parts.return(undefined);
    },
  });
}

/** Yields the bytes of a body. Throws RangeError if there are too many. */
async function* bounded(body: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const part of body) {
    size += part.byteLength;
    if (size > bytesMax) throw new RangeError(`The response is larger than ${bytesMax} bytes.`);
    yield new Uint8Array(part);
  }
}

/** The error of our connection that the SDK wrapped. */
function ownError(error: unknown): LlmError | undefined {
  if (error instanceof LlmError) return error;
  return error instanceof Error && error.cause instanceof LlmError ? error.cause : undefined;
}

function isTooLarge(error: unknown): boolean {
  return error instanceof RangeError || (error instanceof Error && error.cause instanceof RangeError);
}

/** As chat completions name it. Undefined if the stream ended without a reason. */
function finishOf({ unified, raw }: { unified: string; raw: string | undefined }): string | undefined {
  if (unified === 'interrupted' || (unified === 'other' && raw === undefined)) return undefined;
  return unified.replaceAll('-', '_');
}

/** What the provider counted, unless it is not a number of tokens. */
function readUsage(usage: unknown): TokenUsage | undefined {
  const totalOf = (part: unknown) => (isRecord(part) ? part.total : undefined);
  const prompt = isRecord(usage) ? totalOf(usage.inputTokens) : undefined;
  const completion = isRecord(usage) ? totalOf(usage.outputTokens) : undefined;
  if (!isCount(prompt) || !isCount(completion)) return undefined;
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}
