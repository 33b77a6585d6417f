import type { ChatMessage, TokenUsage } from './messages.ts';
import type { ToolCall, ToolDefinition } from './tools.ts';

/** A client for one model. */
export type LlmClient = {
  model: string;
  /** Throws LlmError, or the signal's reason if the signal is aborted. */
  complete(request: Completion): Promise<Completed>;
};

export type Completion = {
  messages: readonly ChatMessage[];
  /** The maximum number of tokens that the model may generate. */
  tokens: number;
  temperature?: number | undefined;
  topP?: number | undefined;
  /** The server constrains the output to this JSON Schema, if it can. */
  schema?: unknown;
  /** What the model may call. */
  tools?: readonly ToolDefinition[] | undefined;
  /** The number of attempts if the server is busy or fails; 3 by default. */
  tries?: number;
  signal: AbortSignal;
  onText?(text: string): void;
  /** Called when the first part of a tool call arrives. */
  onToolCall?(): void;
};

export type Completed = { text: string; toolCalls: ToolCall[]; finishReason: string; usage: TokenUsage };
