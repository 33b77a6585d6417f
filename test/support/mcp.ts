/** Requests to the MCP endpoint that the official client does not send. */

export type McpResponse = {
  status: number;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: unknown };
};

export const tasksExtension = 'io.modelcontextprotocol/tasks';
/** What a client says that takes tasks, and opens pages for its user. */
export const takesTasks = { extensions: { [tasksExtension]: {} } };
export const opensUrls = { ...takesTasks, elicitation: { url: {} } };

const revision = '2026-07-28';

/** Sends one request of the current revision, in which a client says each time what it can do. */
export async function sendMcp(
  baseUrl: string,
  { key, token }: { key?: string; token?: string },
  method: string,
  params: Record<string, unknown>,
  capabilities: Record<string, unknown> = takesTasks,
): Promise<McpResponse> {
  const name = params.name ?? params.taskId;
  const response = await fetch(`${baseUrl}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': revision,
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
      ...(key === undefined ? {} : { 'x-api-key': key }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({
      ...{ jsonrpc: '2.0', id: 1, method },
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': revision,
          'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': capabilities,
        },
      },
    }),
  });
  const text = await response.text();
  const lines = text.split('\n').filter((line) => line.startsWith('data: '));
  const { result, error } = JSON.parse(lines.at(-1)?.slice('data: '.length) ?? text) as Omit<McpResponse, 'status'>;
  return { status: response.status, ...(result ? { result } : {}), ...(error ? { error } : {}) };
}
