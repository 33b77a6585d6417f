import type { Dispatcher } from 'undici';
import { defined } from '../../../lib/defined.ts';
import { lazyPackage } from '../../../lib/lazy-package.ts';
import type { Resolver } from '../../fetch/resolver.ts';
import { openServiceAgent, pause } from '../service.ts';
import type { Completed, Completion, LlmClient } from './completion.ts';
import { estimateUsage, isCount, LlmError, noUsage, refusedStatus, type TokenUsage } from './messages.ts';
import { promptMessage } from './openai-messages.ts';
import { Output, type OutputPart } from './output.ts';
import { readEvents } from './read-events.ts';
import { type ResponseFormat, ResponseFormats } from './response-formats.ts';
import type { ToolCallPart } from './tools.ts';

type ClientOptions = {
  /** Up to and including `/v1`; the client appends `/chat/completions`. */
  baseUrl: string;
  apiKey: string | undefined;
  model: string;
  /** Waits between attempts. Replaced in tests. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<unknown>;
  resolve?: Resolver;
  /** The connections to use instead of own ones, such as guarded ones. */
  agent?: () => Dispatcher;
};

const undici = lazyPackage<typeof import('undici')>('undici');

/** How often a request may fail. A refusal of a member does not count: each member is refused only once. */
const triesMax = 3;
const retryAfterMsMax = 30_000;
/** A server that sends nothing for this long counts as dead. A large model may take minutes for its first token. */
const silenceMsMax = 300_000;
const errorBytesMax = 64 * 1024;
/** An event carries one or two tokens in a few hundred bytes. What else a response has is small. */
const eventBytesMax = 1024;
const otherBytesMax = 64 * 1024;
/** A response that is not streamed is one JSON document. */
const wholeBytesMax = 4 * 1024 * 1024;
/** No response may be larger, whatever the request allows. */
const streamBytesMax = 32 * 1024 * 1024;
/** The members that a request may be repeated without: the number of tokens under two names, usage, two formats. */
const fallbacksMax = 4;

/** What the server is known to accept. */
type Abilities = { usageOption: boolean; tokensMember: 'max_tokens' | 'max_completion_tokens' };
type Sent = Abilities & { format: ResponseFormat };
/** `body` is what the server says about members that it does not accept. */
type Refusal = { retryMs: number | undefined; error: LlmError; body: string };

/** A client for any server with OpenAI's `POST /v1/chat/completions`: Ollama, vLLM, OpenAI itself. */
export function openAiChat(options: ClientOptions): LlmClient {
  const sleep = options.sleep ?? pause;
  const abilities: Abilities = { usageOption: true, tokensMember: 'max_tokens' };
  const formats = new ResponseFormats();
  const agent = options.agent ?? openServiceAgent(options.resolve, silenceMsMax);
  return {
    model: options.model,
    async complete(request) {
      const { schema } = request;
      for (let failures = 0, fallbacks = 0; ; ) {
        const sent: Sent = { ...abilities, format: schema === undefined ? 'none' : formats.choose(schema) };
        const outcome = await post(options, agent(), sent, request);
        if ('text' in outcome) {
          formats.noteAccepted(sent.format);
          return outcome;
        }
        if (fallbacks < fallbacksMax && fallBack(abilities, formats, sent, schema, outcome.body)) {
          fallbacks += 1;
          continue;
        }
        if (++failures >= (request.tries ?? triesMax) || outcome.retryMs === undefined) throw outcome.error;
        await sleep(outcome.retryMs * 2 ** (failures - 1), request.signal);
      }
    },
  };
}

/** Notes the member that the server refuses. False if it refuses none, or one that the request did not have. */
function fallBack(abilities: Abilities, formats: ResponseFormats, sent: Sent, schema: unknown, body: string): boolean {
  if (sent.tokensMember === 'max_tokens' && body.includes('max_completion_tokens'))
    abilities.tokensMember = 'max_completion_tokens';
  else if (sent.usageOption && body.includes('stream_options')) abilities.usageOption = false;
  else if (sent.format !== 'none' && namesFormat.test(body)) formats.noteRefused(sent.format, schema, body);
  else return false;
  return true;
}

/** Matches messages of servers that cannot constrain their output, or not to this schema. */
const namesFormat = /response_format|json[_ ]?(?:schema|object)|grammar/i;

async function post(
  options: ClientOptions,
  dispatcher: Dispatcher,
  sent: Sent,
  request: Completion,
): Promise<Completed | Refusal> {
  let response: Dispatcher.ResponseData;
  try {
    response = await undici().request(`${options.baseUrl.replace(/\/+$/, '')}/chat/completions`, {
      method: 'POST',
      dispatcher,
      headers: {
        'content-type': 'application/json',
        'accept-encoding': 'identity',
        ...(options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` }),
      },
      body: JSON.stringify(bodyOf(options.model, sent, request)),
      signal: request.signal,
    });
  } catch (error) {
    request.signal.throwIfAborted();
    const message = 'The language model cannot be reached.';
    return { retryMs: 1_000, error: new LlmError('llm_unreachable', message, noUsage, error, true), body: '' };
  }
  const { headers, body } = response;
  body.on('error', () => {});
  try {
    if (response.statusCode !== 200) return await readRefusal(response);
    if (!/^(identity)?$/i.test(String(headers['content-encoding'] ?? '').trim()))
      throw new LlmError(
        'llm_bad_response',
        'The language model compressed its response, which was not requested.',
        noUsage,
      );
    return await readCompletion(response, request);
  } catch (error) {
    request.signal.throwIfAborted();
    throw error;
  } finally {
    body.destroy();
  }
}

function bodyOf(model: string, sent: Sent, { messages, tokens, temperature, topP, schema, tools = [] }: Completion) {
  return {
    model,
    messages: messages.map(promptMessage),
    stream: true,
    [sent.tokensMember]: tokens,
    ...(sent.usageOption ? { stream_options: { include_usage: true } } : {}),
    ...defined({ temperature, top_p: topP }),
    ...(tools.length === 0 ? {} : { tools: tools.map((each) => ({ type: 'function', function: each })) }),
    ...(sent.format === 'none' ? {} : { response_format: responseFormat(sent.format, schema) }),
  };
}

function responseFormat(type: Exclude<ResponseFormat, 'none'>, schema: unknown) {
  return type === 'json_object' ? { type } : { type, json_schema: { name: 'output', schema } };
}

async function readRefusal({ statusCode: status, headers, body }: Dispatcher.ResponseData): Promise<Refusal> {
  let text = '';
  for await (const part of body) {
    text += Buffer.from(part as Uint8Array).toString();
    if (text.length > errorBytesMax) break;
  }
  const mayPass = status === 429 || status === 408 || status >= 500;
  const seconds = Number(headers['retry-after']);
  const retryMs = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1_000, retryAfterMsMax) : 1_000;
  return {
    retryMs: mayPass ? retryMs : undefined,
    error: refusedStatus(status, text),
    body: mayPass ? '' : text,
  };
}

/**
 * Reads the text as it is streamed, and stops when the model has written more than it was asked for: the budget has
 * reserved no more. A server that does not stream sends one JSON document, which is read like one event.
 */
async function readCompletion({ headers, body }: Dispatcher.ResponseData, request: Completion): Promise<Completed> {
  const output = new Output(request);
  const fail = (code: LlmError['code'], message: string, cause?: unknown) =>
    new LlmError(code, message, output.usage ?? estimateUsage(request.messages, output.text), cause);
  const isStream = String(headers['content-type'] ?? '').startsWith('text/event-stream');
  const responseBytesMax = Math.min(otherBytesMax + request.tokens * eventBytesMax, streamBytesMax);
  try {
    for await (const data of isStream ? readEvents(body, responseBytesMax) : readWhole(body)) {
      if (data === '[DONE]') break;
      const event = parseEvent(data);
      if (event === undefined)
        throw fail(
          'llm_bad_response',
          'The response of the language model is not a chat completion.',
          data.slice(0, 200),
        );
      if (event.failed) throw fail('llm_failed', 'The language model failed while generating.', data.slice(0, 500));
      output.add(event);
      if (output.isFull) return output.cut();
    }
  } catch (error) {
    if (error instanceof LlmError) throw error;
    request.signal.throwIfAborted();
    if (!(error instanceof RangeError))
      throw fail('llm_bad_response', 'The response of the language model ended early.', error);
    if (!isStream) throw fail('llm_output_too_large', error.message);
    return output.cut();
  }
  output.end();
  const { text, finishReason, usage } = output;
  if (finishReason === undefined) throw fail('llm_bad_response', 'The response of the language model ended early.');
  // A call that the limit cut off is incomplete.
  const toolCalls = finishReason === 'length' ? [] : output.toolCalls;
  return { text, toolCalls, finishReason, usage: usage ?? estimateUsage(request.messages, text, toolCalls) };
}

async function* readWhole(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.byteLength;
    if (size > wholeBytesMax) throw new RangeError(`The response is larger than ${wholeBytesMax} bytes.`);
    parts.push(part);
  }
  yield Buffer.concat(parts).toString();
}

type Event = OutputPart & { failed: boolean };

/** Parses one event of the stream; undefined for anything else. Everything but text and tool calls is ignored. */
function parseEvent(data: string): Event | undefined {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const failed = value.error !== undefined && value.error !== null;
  if (!failed && !Array.isArray(value.choices)) return undefined;
  const [choice] = (Array.isArray(value.choices) ? value.choices : []) as unknown[];
  const part = isRecord(choice) ? (choice.delta ?? choice.message) : undefined;
  const content = isRecord(part) && typeof part.content === 'string' ? part.content : '';
  const finishReason = isRecord(choice) && typeof choice.finish_reason === 'string' ? choice.finish_reason : undefined;
  return {
    text: content,
    toolCalls: isRecord(part) && Array.isArray(part.tool_calls) ? part.tool_calls.flatMap(readCallPart) : [],
    finishReason,
    usage: readUsage(value.usage),
    failed,
  };
}

/** A part of a tool call. A server that does not number its calls sends each whole. */
function readCallPart(value: unknown, at: number): ToolCallPart[] {
  if (!isRecord(value)) return [];
  const { id, index } = value;
  const called = isRecord(value.function) ? value.function : {};
  const isIndex = typeof index === 'number' && Number.isSafeInteger(index) && index >= 0;
  return [
    {
      index: isIndex ? index : at,
      ...(typeof id === 'string' ? { id } : {}),
      ...(typeof called.name === 'string' ? { name: called.name } : {}),
      ...(typeof called.arguments === 'string' ? { arguments: called.arguments } : {}),
    },
  ];
}

function readUsage(value: unknown): TokenUsage | undefined {
  if (!isRecord(value)) return undefined;
  const { prompt_tokens: prompt, completion_tokens: completion } = value;
  if (!isCount(prompt) || !isCount(completion)) return undefined;
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
