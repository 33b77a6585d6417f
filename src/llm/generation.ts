import type { ChatMessage } from '../content/models/llm/messages.ts';
import type { ToolDefinition } from '../content/models/llm/tools.ts';
import type { Db } from '../db/database.ts';
import type { CallOrigin } from './origin.ts';

/* What a caller asks of a language model. */

export type GenerationInput = {
  /** The name of a model or alias. Without it, the operator's default is used. */
  model?: string | undefined;
  messages: readonly ChatMessage[];
  /** A JSON Schema that the output must match. */
  schema?: unknown;
  /** The number of further requests for output that matches the schema. Default 2. */
  repairsMax?: number;
  /** What the model may call. The calls are returned, not made. */
  tools?: readonly ToolDefinition[] | undefined;
  temperature?: number | undefined;
  topP?: number | undefined;
  /** The maximum number of tokens that one request may generate. */
  tokens: number;
};

/** Reserves tokens before a request is sent, and settles the reservation when the number used is known. */
export type TokenBudget = {
  /** Throws AppError `token_budget_exceeded`. */
  reserve(tx: Db, tokens: number): Promise<TokenHold>;
};

/** Reserved tokens. `settle` replaces the reservation by what was used. */
export type TokenHold = { settle(tx: Db, used: number): Promise<void> };

/** Who requests the text. `lane` is the app. */
export type GenerationContext = {
  lane: string;
  budget: TokenBudget;
  /** For whom the model is called. Without it, the call counts only for the app. */
  origin?: CallOrigin;
  /** Removes secrets from what the record of the call keeps. Called before anything is written as JSON text. */
  redact?<T>(value: T): T;
  signal: AbortSignal;
  /** Called when another request begins: the text so far will be replaced by what follows. */
  onRequest?(): void;
  onText?(text: string): void;
};
