import { Ajv } from 'ajv';
import { type ApiDocument, type JsonSchema, type Known, memberPaths, sample, withValue } from './api-document.ts';
import type { Values } from './awkward-values.ts';

/** A tool as `tools/list` describes it. */
export type McpTool = { name: string; inputSchema: JsonSchema; outputSchema: object };

/** One POST to /mcp. `tool` is set if the body calls a tool with its name and envelope unchanged. */
type McpCase = { what: string; isPlain?: true; body: unknown; headers: Record<string, string>; tool?: McpTool };

export const revision = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' };

/** Members that tools need although their schemas require none of them, or only one of several. */
const needed: Record<string, (known: Known) => object> = {
  answer: ({ source }) => ({ source }),
  extract_file: ({ file }) => ({ file }),
  extract_url: () => ({ url: 'https://host.invalid/' }),
  ingest: () => ({ text: 'Text.' }),
  kv_batch: () => ({ operations: [{ op: 'get', key: 'kept' }] }),
  kv_delete: () => ({ key: 'spare' }),
  kv_get: () => ({ key: 'kept' }),
  kv_increment: () => ({ key: 'count' }),
  search_knowledge: ({ source }) => ({ source }),
  upload_file: () => ({ text: 'Text.', filename: 'a.txt' }),
};

/** Lists the tools. */
export const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };

/** Every argument of every tool, every member of the envelope and every header of the protocol with awkward values. */
export function* mcpCases(
  document: ApiDocument,
  tools: McpTool[],
  known: Known,
  others: Record<string, Known>,
  { texts, json }: Values,
): Generator<McpCase> {
  const awkward = [...texts, ...json];
  for (const tool of tools) {
    const { properties = {} } = tool.inputSchema;
    const things = { ...known, run: known.automation_run, ...others[tool.name] };
    const plain = {
      ...(sample(document, tool.inputSchema, things) as object),
      ...needed[tool.name]?.(known),
      ...('user' in properties ? { user: known.user } : {}),
      // The tool would wait longer than the sweep does.
      ...('wait_seconds' in properties ? { wait_seconds: 0 } : {}),
    };
    const call = (args: unknown) => message({ name: tool.name, arguments: args });
    yield { what: `${tool.name} plain`, isPlain: true, body: call(plain), headers: revision, tool };
    for (const path of memberPaths(document, tool.inputSchema, 3))
      for (const [index, value] of awkward.entries())
        yield {
          what: `${tool.name} ${path.join('.')} = value ${index}`,
          ...{ body: call(withValue(plain, path, value)), headers: revision, tool },
        };
  }
  const members = [[], ['jsonrpc'], ['id'], ['method'], ['params'], ['params', 'name'], ['params', 'arguments']];
  const meta = [
    ['params', '_meta'],
    ['params', '_meta', 'progressToken'],
  ];
  for (const path of [...members, ...meta])
    for (const [index, value] of awkward.entries())
      for (const base of [list, message({ name: 'kv_list', arguments: { user: known.user } })])
        yield {
          what: `${base.method} ${path.join('.')} = value ${index}`,
          ...{ body: withValue(base, path, value), headers: revision },
        };
  for (const name of ['accept', 'mcp-protocol-version', 'mcp-session-id', 'last-event-id'])
    for (const [index, value] of texts.entries())
      yield { what: `header ${name} = text ${index}`, body: list, headers: { ...revision, [name]: value } };
}

function message(params: object) {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
}

type Reply = {
  error?: { code: number; message: string };
  result?: { tools?: McpTool[]; isError?: boolean; structuredContent?: unknown; content?: { text?: string }[] };
};

const internalError = -32_603;

/** The messages in a response of /mcp, sent as JSON or as events. */
export function repliesOf(type: string, text: string): Reply[] {
  if (text === '') return [];
  if (!type.startsWith('text/event-stream')) return [JSON.parse(text)].flat() as Reply[];
  return [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => JSON.parse(data) as Reply);
}

/** Checks results against the schema of their tool. */
export function createMcpCheck() {
  const ajv = new Ajv({ strict: false, validateSchema: false, logger: false });
  /** Returns what is wrong with a response, or whether the tool succeeded. */
  return (type: string, text: string, tool: McpTool | undefined): { problem?: string; succeeded: boolean } => {
    let succeeded = false;
    for (const { error, result } of repliesOf(type, text)) {
      if (error?.code === internalError) return { problem: `internal error: ${error.message}`, succeeded };
      if (result?.isError) {
        const shown = result.content?.[1]?.text ?? '{}';
        const { code = 'none' } = (JSON.parse(shown) as { error?: { code?: string } }).error ?? {};
        if (code === 'none' || code === 'internal_error') return { problem: `the tool failed: ${shown}`, succeeded };
      } else if (result !== undefined && tool !== undefined) {
        const check = ajv.compile(tool.outputSchema);
        if (!check(result.structuredContent))
          return { problem: `does not fit the output schema: ${ajv.errorsText(check.errors)}`, succeeded };
        succeeded = true;
      }
    }
    return { succeeded };
  };
}
