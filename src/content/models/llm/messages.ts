import type { ToolCall, ToolDefinition } from './tools.ts';

/** A picture or document that a message carries, as bytes: a provider never fetches anything for us. */
export type Attachment = { kind: 'image' | 'file'; mediaType: string; filename: string; base64: string };

export type ChatMessage = {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string;
  /** Of a user. */
  attachments?: readonly Attachment[];
  /** Of an assistant: the tools that it called. Each is followed by a message of the role `tool`. */
  toolCalls?: readonly ToolCall[];
  /** Of a tool: the call that the content is the result of. */
  resultOf?: Pick<ToolCall, 'id' | 'name'>;
};

/** Tokens as the server counts them. If it does not report them, they are estimated from the length of the texts. */
export type TokenUsage = { prompt_tokens: number; completion_tokens: number; total_tokens: number; estimated?: true };

type LlmErrorCode = 'llm_unreachable' | 'llm_failed' | 'llm_bad_response' | 'llm_output_too_large' | 'llm_timeout';

/** The language model gave no usable text. */
export class LlmError extends Error {
  readonly code: LlmErrorCode;
  /** The tokens that the failed request used. */
  readonly usage: TokenUsage;
  /** Whether another model might succeed: this one is busy, failing or too slow, or its context is too small. */
  readonly triesOthers: boolean;
  /** The status of the response, if that is why it failed. */
  status: number | undefined;

  constructor(code: LlmErrorCode, message: string, usage: TokenUsage, cause?: unknown, triesOthers = false) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'LlmError';
    this.code = code;
    this.usage = usage;
    this.triesOthers = triesOthers;
    this.status = undefined;
  }
}

/** The error for a response without a completion. `body` may name an account or a key, so it is only logged. */
export function refusedStatus(status: number, body: string): LlmError {
  return Object.assign(describeStatus(status, body), { status });
}

function describeStatus(status: number, body: string): LlmError {
  const cause = new Error(body.slice(0, 500));
  if (status === 401 || status === 403)
    return new LlmError('llm_failed', 'The provider of the language model refused the key.', noUsage, cause);
  if (status === 404) return new LlmError('llm_failed', notFound, noUsage, cause);
  const triesOthers = status === 429 || status === 408 || status >= 500 || tooLong.test(body);
  return new LlmError('llm_failed', `The language model returned status ${status}.`, noUsage, cause, triesOthers);
}

const notFound =
  "The language model's server returned status 404: check the URL, up to and including the version, and the name of the model.";

/** Matches messages of servers whose context is too small for a request. */
const tooLong = /context[_ ](?:length|window)|maximum context|prompt is too long|too many tokens|exceeds the maximum/i;

/** In common vocabularies, a token has about four bytes of English, and seldom fewer than two in any language. */
const bytesPerTokenMin = 2;
const bytesPerToken = 4;
/**
 * No common vocabulary has texts of more characters per token on average; a single token may be a long word or a run
 * of spaces.
 */
const charactersPerTokenMax = 8;
const charactersOfOneTokenMax = 128;
/** For the markers of a message's start, end and role. */
const tokensPerMessage = 16;

/** What providers count at most for a picture that they scale down. */
const imageTokens = 5_000;
/** A document of pages: its text, and a picture of each page. */
const fileTokensMin = 5_000;
const fileBytesPerToken = 8;

/** The maximum number of tokens that these messages are likely to need, which is reserved before they are sent. */
export function promptTokensMax(messages: readonly ChatMessage[], tools?: readonly ToolDefinition[]): number {
  return countTokens(messages, bytesPerTokenMin, tools);
}

/** The number of bytes of a prompt that is likely to need at most this many tokens. */
export function promptBytesWithin(tokens: number): number {
  return Math.max(0, tokens * bytesPerTokenMin);
}

/** More characters than this are more than this number of tokens. */
export function charactersWithin(tokens: number): number {
  return charactersOfOneTokenMax + tokens * charactersPerTokenMax;
}

/** The tokens that these messages are likely to need. */
export function promptTokens(messages: readonly ChatMessage[], tools?: readonly ToolDefinition[]): number {
  return countTokens(messages, bytesPerToken, tools);
}

/** The usage of a request whose response was cut off at its limit. */
export function cutUsage(messages: readonly ChatMessage[], tokens: number): TokenUsage {
  const prompt = countTokens(messages, bytesPerToken);
  return { prompt_tokens: prompt, completion_tokens: tokens, total_tokens: prompt + tokens, estimated: true };
}

/** Estimates the usage of a request if the server did not report it. */
export function estimateUsage(
  messages: readonly ChatMessage[],
  text: string,
  toolCalls: readonly ToolCall[] = [],
): TokenUsage {
  const prompt = countTokens(messages, bytesPerToken);
  const written = text + toolCalls.map((call) => call.name + call.arguments).join('');
  const completion = Math.ceil(Buffer.byteLength(written) / bytesPerToken);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, estimated: true };
}

export const noUsage: TokenUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

export function addUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    prompt_tokens: a.prompt_tokens + b.prompt_tokens,
    completion_tokens: a.completion_tokens + b.completion_tokens,
    total_tokens: a.total_tokens + b.total_tokens,
    ...(a.estimated || b.estimated ? { estimated: true as const } : {}),
  };
}

function countTokens(
  messages: readonly ChatMessage[],
  bytesEach: number,
  tools: readonly ToolDefinition[] = [],
): number {
  const tokensOf = (text: string) => Math.ceil(Buffer.byteLength(text) / bytesEach);
  const ofMessages = messages.reduce((sum, { content, toolCalls = [], attachments = [] }) => {
    const calls = toolCalls.reduce((all, call) => all + tokensPerMessage + tokensOf(call.name + call.arguments), 0);
    const attached = attachments.reduce((all, each) => all + attachmentTokens(each), 0);
    return sum + tokensPerMessage + tokensOf(content) + calls + attached;
  }, 0);
  return ofMessages + tools.reduce((sum, tool) => sum + tokensPerMessage + tokensOf(JSON.stringify(tool)), 0);
}

function attachmentTokens({ kind, base64 }: Attachment): number {
  const bytes = (base64.length / 4) * 3;
  return kind === 'image' ? imageTokens : Math.max(fileTokensMin, Math.ceil(bytes / fileBytesPerToken));
}

/** The server's count is charged to the budget, so it must be a valid number. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= 100_000_000;
}
