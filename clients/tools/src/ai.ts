import { type Tool, tool } from 'ai';
import {
  createTools,
  type QuarryClient,
  type ToolDefinition,
  type ToolDefinitions,
  type ToolName,
  type ToolOptions,
} from './index.ts';

type AiTool<D> = D extends ToolDefinition<infer Input, infer Output> ? Tool<Input, Output> : never;

/**
 * The chosen tools as the `tools` of `generateText` and `streamText`. The model gets each result as text, the program as
 * data. What goes wrong is a `tool-error` with a message for the model.
 */
export function quarryTools<const N extends ToolName>(
  client: QuarryClient,
  options: ToolOptions<N>,
): { [K in N]: AiTool<ToolDefinitions[K]> } {
  const definitions = Object.values<ToolDefinition<unknown, unknown>>(createTools(client, options));
  const tools = definitions.map((each) => [each.name, toTool(each)]);
  return Object.fromEntries(tools) as { [K in N]: AiTool<ToolDefinitions[K]> };
}

function toTool({ description, inputSchema, execute, describe }: ToolDefinition<unknown, unknown>) {
  return tool({
    description,
    inputSchema,
    execute: (input, { abortSignal }) => execute(input, { signal: abortSignal }),
    toModelOutput: ({ output }) => ({ type: 'text', value: describe(output) }),
  });
}
