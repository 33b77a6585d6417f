import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type ChatRequest = {
  model: string;
  messages: { role: string; content: string; [member: string]: unknown }[];
  tools?: unknown[];
  stream?: boolean;
  max_tokens?: number;
  max_completion_tokens?: number;
  temperature?: number;
  top_p?: number;
  stream_options?: unknown;
  response_format?: { type: 'json_schema'; json_schema: { name: string; schema: unknown } } | { type: 'json_object' };
};

/** How the server responds to one request. */
type Script =
  | { text: string; parts?: number; usage?: [prompt: number, completion: number] | null; finish?: string }
  | { status: number; body?: string; headers?: Record<string, string> }
  /** Sent unchanged, in this order; then the response ends, or its connection breaks. */
  | { raw: string[]; type?: string; breaks?: boolean }
  /** Full control of the response. */
  | { respond(response: ServerResponse): void };

type LanguageModel = {
  url: string;
  requests: (ChatRequest & { authorization: string | undefined })[];
  /** The response to a request. A string is the text to return. */
  script: (request: ChatRequest, number: number) => Script | string;
  close(): Promise<void>;
};

/** An event of a chat completion stream. */
export function chatEvent(text: string, more: Record<string, unknown> = {}): string {
  return `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: text }, ...more }] })}\n\n`;
}

/** The stream of a response that calls tools. Arguments are cut into parts, and those of several calls interleave. */
export function toolCallEvents(calls: readonly (readonly [name: string, given: unknown])[], text = ''): string[] {
  const event = (tool_calls: unknown[], more = {}) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text || null, tool_calls }, ...more }] })}\n\n`;
  const written = calls.map(([, given]) => (typeof given === 'string' ? given : JSON.stringify(given)));
  const longest = Math.max(...written.map(({ length }) => length));
  const first = calls.map(([name], index) =>
    event([{ index, id: `call_a${index}`, type: 'function', function: { name, arguments: '' } }]),
  );
  const parts: string[] = [];
  for (let at = 0; at < longest; at += 3)
    for (const [index, given] of written.entries())
      if (at < given.length) parts.push(event([{ index, function: { arguments: given.slice(at, at + 3) } }]));
  const usage = { prompt_tokens: 10, completion_tokens: 5 };
  const last = [event([], { finish_reason: 'tool_calls' }), `data: ${JSON.stringify({ choices: [], usage })}\n\n`];
  return [...first, ...parts, ...last, 'data: [DONE]\n\n'];
}

/** A local server for OpenAI's `POST /v1/chat/completions` with `stream`. */
export async function startLanguageModel(): Promise<LanguageModel> {
  const model: Omit<LanguageModel, 'url' | 'close'> = { requests: [], script: () => 'Hello.' };
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    if (request.url !== '/v1/chat/completions') return void response.writeHead(404).end();
    const body = JSON.parse(Buffer.concat(parts).toString()) as ChatRequest;
    model.requests.push({ ...body, authorization: request.headers.authorization });
    const scripted = model.script(body, model.requests.length);
    send(response, typeof scripted === 'string' ? { text: scripted } : scripted);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(model, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

function send(response: ServerResponse, script: Script): void {
  if ('respond' in script) {
    script.respond(response);
    return;
  }
  if ('status' in script) {
    response.writeHead(script.status, { 'content-type': 'application/json', ...script.headers });
    return void response.end(script.body ?? '{"error":{"message":"no"}}');
  }
  if ('raw' in script) {
    response.writeHead(200, { 'content-type': script.type ?? 'text/event-stream' });
    for (const part of script.raw) response.write(part);
    if (script.breaks) setImmediate(() => response.destroy());
    else response.end();
    return;
  }
  const { text, parts = 4, usage = [10, 5], finish = 'stop' } = script;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const size = Math.max(1, Math.ceil(text.length / parts));
  for (let at = 0; at < text.length; at += size) response.write(chatEvent(text.slice(at, at + size)));
  response.write(chatEvent('', { finish_reason: finish }));
  if (usage !== null)
    response.write(
      `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: usage[0], completion_tokens: usage[1] } })}\n\n`,
    );
  response.end('data: [DONE]\n\n');
}
