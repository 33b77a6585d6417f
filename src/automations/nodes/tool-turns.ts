import type { GenerationUsage } from '../../llm/service.ts';

/** Why a node failed, as its journal entry and `$nodes.<id>.error` show it, and the tokens that it used. */
export type NodeError = { code: string; message: string; usage?: GenerationUsage };

/** A call of a tool as the journal has it. One with an `error` is refused: it is not made. */
export type JournalCall = {
  id: string;
  name: string;
  arguments: string;
  provider_data?: Record<string, unknown>;
  error?: NodeError;
};

/** One response of the model that asked for calls: the payload of `tool_calls_received`. */
export type ToolTurn = { text: string; tool_calls: JournalCall[]; model: string; usage: GenerationUsage };

/** How a call ended, for the model. */
export type CallResult = { output: unknown } | { error: NodeError };

/** The responses so far, and the results of their calls, which are numbered from 0 over all responses. */
export type Generation = { turns: ToolTurn[]; results: Map<number, CallResult>; approved: Set<number> };

/** What a node's work returns if the model asks for calls of tools instead of ending. `turn` counts from 0. */
export class CallsTools {
  readonly payload: ToolTurn;
  readonly turn: number;

  constructor(payload: ToolTurn, turn: number) {
    this.payload = payload;
    this.turn = turn;
  }
}

/** The call with this number. */
export function callAt({ turns }: Generation, index: number): JournalCall | undefined {
  return turns.flatMap((turn) => turn.tool_calls)[index];
}
