import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** How a provider responds to one request. */
type Script =
  | {
      text: string;
      /** What it calls after the text. */
      calls?: { name: string; given: unknown }[];
      /** What it says it counted; null: nothing. */
      usage?: [prompt: unknown, completion: unknown] | null;
      /** Null: the stream ends without a reason. */
      finish?: string | null;
      /** The number of bytes of each write. */
      cut?: number;
      /** Stops, and breaks the connection, after this many bytes. */
      breaksAt?: number;
    }
  | { status: number; body?: string; headers?: Record<string, string> }
  | { respond(response: ServerResponse): void };

type Request = { path: string; key: string | undefined; body: Record<string, unknown> };

export type ModelProvider = {
  url: string;
  requests: Request[];
  script: (request: Request, number: number) => Script | string;
  close(): Promise<void>;
};

/** A local server with the stream of Anthropic's `POST /v1/messages`. */
export function startAnthropic(): Promise<ModelProvider> {
  return startProvider(
    '/v1',
    'x-api-key',
    ({ text, calls = [], usage = [11, 7], finish = calls.length > 0 ? 'tool_use' : 'end_turn' }) => {
      const [input, output] = usage ?? [undefined, undefined];
      const event = (type: string, members: object) =>
        `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
      const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', content: [] };
      return [
        event('message_start', {
          message: {
            ...message,
            stop_reason: null,
            stop_sequence: null,
            usage: { input_tokens: input, output_tokens: 1 },
          },
        }),
        event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
        event('ping', {}),
        ...halves(text).map((part) =>
          event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: part } }),
        ),
        event('content_block_stop', { index: 0 }),
        ...calls.flatMap(({ name, given }, number) => {
          const index = number + 1;
          const block = { type: 'tool_use', id: `toolu_${number}`, name, input: {} };
          return [
            event('content_block_start', { index, content_block: block }),
            ...['', ...halves(JSON.stringify(given))].map((partial_json) =>
              event('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json } }),
            ),
            event('content_block_stop', { index }),
          ];
        }),
        ...(finish === null
          ? []
          : [
              event('message_delta', {
                delta: { stop_reason: finish, stop_sequence: null },
                usage: { output_tokens: output },
              }),
              event('message_stop', {}),
            ]),
      ].join('');
    },
  );
}

/** A local server with the stream of Gemini's `:streamGenerateContent`. */
export function startGoogle(): Promise<ModelProvider> {
  return startProvider('/v1beta', 'x-goog-api-key', ({ text, calls = [], usage = [11, 7], finish = 'STOP' }) => {
    const counted =
      usage === null
        ? {}
        : { usageMetadata: { promptTokenCount: usage[0], candidatesTokenCount: usage[1], totalTokenCount: 18 } };
    const chunk = (parts: object[], more: object = {}) =>
      `data: ${JSON.stringify({ candidates: [{ content: { parts, role: 'model' }, index: 0, ...more }], ...counted })}\r\n\r\n`;
    const [first = '', second = ''] = halves(text);
    const called = calls.map(({ name, given }, number) => ({
      functionCall: { name, args: given },
      // What the model thought is sent back, unread, with the call.
      ...(number === 0 ? { thoughtSignature: 'c2lnbmVk' } : {}),
    }));
    const end = finish === null ? {} : { finishReason: finish };
    return chunk([{ text: first }]) + chunk([{ text: second }, ...called], end);
  });
}

function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}

type TextScript = Extract<Script, { text: string }>;

async function startProvider(
  path: string,
  keyHeader: string,
  streamOf: (script: TextScript) => string,
): Promise<ModelProvider> {
  const provider: Omit<ModelProvider, 'url' | 'close'> = { requests: [], script: () => 'Hello.' };
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>;
    const received = { path: request.url ?? '', key: request.headers[keyHeader] as string | undefined, body };
    provider.requests.push(received);
    const scripted = provider.script(received, provider.requests.length);
    const script = typeof scripted === 'string' ? { text: scripted } : scripted;
    if ('respond' in script) return script.respond(response);
    if ('status' in script) {
      response.writeHead(script.status, { 'content-type': 'application/json', ...script.headers });
      return void response.end(script.body ?? '{"error":{"type":"some_error","message":"no"}}');
    }
    await sendBytes(response, Buffer.from(streamOf(script)), script);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(provider, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

async function sendBytes(response: ServerResponse, all: Buffer, { cut, breaksAt }: TextScript): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const bytes = breaksAt === undefined ? all : all.subarray(0, breaksAt);
  const size = cut ?? bytes.length;
  for (let at = 0; at < bytes.length; at += size) {
    response.write(bytes.subarray(at, at + size));
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (breaksAt === undefined) response.end();
  else response.destroy();
}
