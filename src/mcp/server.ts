import {
  type CallToolResult,
  createMcpHandler,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { AppError, errorCodes } from '../lib/errors.ts';
import { version } from '../lib/version.ts';
import { ApiError, type ErrorMember } from './api-client.ts';
import { getPrompt, listPrompts } from './prompts.ts';
import { listResources, readResource, resourceTemplates } from './resources.ts';
import { abilitiesOf, presentNewTask, registerTasks } from './tasks.ts';
import type { ToolContext, ToolResult } from './tool.ts';
import { tools } from './tools/index.ts';

const byName = new Map(tools.map((tool) => [tool.definition.name, tool]));

const instructions = `Knowledge, text extraction, key-value storage and automations of a Quarry server, with the rights of your credential.
Search before you read: search_knowledge gives passages with their lines, read_document gives the text around them.
Long texts come in parts: when a result has next_offset, call again with it as offset.
Work that takes longer than you wait returns an id; read_extraction and read_run show its progress.`;

type McpContext = Omit<ToolContext, 'report' | 'takesTasks'> & {
  /** Whether the caller may use the operation. */
  mayUse(operation: string): boolean;
  /** Called with unexpected errors. */
  onError(error: unknown): void;
  onRefusal(error: unknown): void;
};

/** The number of tool calls in a request body that may wait. */
export function countWaits(body: unknown): number {
  const messages = (Array.isArray(body) ? body : [body]) as ({ method?: unknown; params?: ToolCall } | null)[];
  const calls = messages.filter((message) => message?.method === 'tools/call');
  return calls.filter((call) => byName.get(String(call?.params?.name))?.mayWait(call?.params?.arguments)).length;
}

type ToolCall = { name?: unknown; arguments?: unknown } | null;

/** Handles one request, whose JSON is parsed, and returns the response. Keeps no state. */
export function handleMcpRequest(request: Request, parsedBody: unknown, context: McpContext): Promise<Response> {
  // The lists of tools and prompts never change, so clients have nothing to subscribe to.
  const options = { maxSubscriptions: 0, onerror: context.onRefusal };
  return createMcpHandler(({ era }) => createServer(context, era === 'modern'), options).fetch(request, { parsedBody });
}

/** @param isModern whether each request says what its client can do */
function createServer(context: McpContext, isModern: boolean): Server {
  const server = new Server(
    { name: 'quarry', title: 'Quarry', version },
    { capabilities: { tools: {}, resources: {}, prompts: {} }, instructions },
  );
  server.setRequestHandler('tools/list', () => ({
    tools: tools.filter(({ operation }) => context.mayUse(operation)).map(({ definition }) => definition),
  }));
  server.setRequestHandler('resources/list', ({ params }) => listResources(context.api, params?.cursor));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates }));
  server.setRequestHandler('resources/read', ({ params }) => readResource(context, params.uri));
  server.setRequestHandler('prompts/list', () => listPrompts());
  server.setRequestHandler('prompts/get', ({ params }) => getPrompt(params.name, params.arguments));
  const contextOf = (request: ServerContext): ToolContext => ({
    ...context,
    report: async () => {},
    signal: AbortSignal.any([request.mcpReq.signal, context.signal]),
    takesTasks: isModern && abilitiesOf(request).takesTasks,
  });
  if (isModern) registerTasks(server, contextOf, presentResult);
  server.setRequestHandler('tools/call', async ({ params }, request): Promise<CallToolResult> => {
    const { mcpReq } = request;
    const tool = byName.get(params.name);
    if (!tool || !context.mayUse(tool.operation))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The tool ${params.name} does not exist.`);
    // Depending on the protocol version, it is no longer among the parameters.
    const token = mcpReq._meta?.progressToken ?? params._meta?.progressToken;
    let reported = -1;
    const report: ToolContext['report'] = async (progress, total, message) => {
      // The protocol requires each report to exceed the previous one.
      if (token === undefined || progress <= reported) return;
      reported = progress;
      const known = total === undefined ? {} : { total };
      const params = { progressToken: token, progress, message, ...known };
      await mcpReq.notify({ method: 'notifications/progress', params });
    };
    try {
      const called = contextOf(request);
      const result = await tool.call(params.arguments ?? {}, { ...called, report });
      return called.takesTasks && result.work
        ? presentNewTask(result.work, abilitiesOf(request))
        : presentResult(result);
    } catch (error) {
      return presentError(error, context.onError);
    }
  });
  return server;
}

function presentResult({ data, text }: ToolResult<Record<string, unknown>>): CallToolResult {
  return { content: [{ type: 'text', text: text ?? JSON.stringify(data) }], structuredContent: data };
}

/** An error as a result that the model can act on: the message, then the whole error as JSON. */
function presentError(error: unknown, onError: (error: unknown) => void): CallToolResult {
  const member = errorMember(error);
  if (!(error instanceof ApiError || error instanceof AppError)) onError(error);
  const words = member.fields.map(({ field, message }) => `${field}: ${message}`);
  const fields = words.filter((each) => each !== member.message).map((each) => `\n- ${each}`);
  return {
    isError: true,
    content: [
      { type: 'text', text: `${member.message}${fields.join('')}` },
      { type: 'text', text: JSON.stringify({ error: member }) },
    ],
  };
}

function errorMember(error: unknown): ErrorMember {
  if (error instanceof ApiError) return error.error;
  if (error instanceof AppError) {
    const { code, message, fields, details } = error;
    return { type: errorCodes[code].type, code, message, fields, details };
  }
  const message = 'An internal error occurred. The server log has details under the request id.';
  return { type: 'server_error', code: 'internal_error', message, fields: [], details: {} };
}
