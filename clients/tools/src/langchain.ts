import { ToolMessage } from '@langchain/core/messages';
import { type DynamicStructuredTool, tool } from '@langchain/core/tools';
import {
  createTools,
  type QuarryClient,
  type ToolDefinition,
  ToolError,
  type ToolName,
  type ToolOptions,
} from './index.ts';

/**
 * The chosen tools for `bindTools` and agents. The message of a tool has the result's text as content and its data as
 * artifact. What goes wrong is a message with status `error` for the model, or an exception without a tool call.
 */
export function quarryTools(client: QuarryClient, options: ToolOptions<ToolName>): DynamicStructuredTool[] {
  return Object.values<ToolDefinition<unknown, unknown>>(createTools(client, options)).map(toTool);
}

function toTool({ name, description, inputSchema, execute, describe }: ToolDefinition<unknown, unknown>) {
  return tool(
    async (input, { signal, toolCall }) => {
      try {
        const output = await execute(input, { signal });
        return [describe(output), output];
      } catch (error) {
        const id = toolCall?.id;
        if (!(error instanceof ToolError) || id === undefined) throw error;
        return [new ToolMessage({ status: 'error', content: error.message, tool_call_id: id, name }), undefined];
      }
    },
    { name, description, schema: inputSchema, responseFormat: 'content_and_artifact' },
  );
}
