import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { bodyBudgets } from '../http/body/budgets.ts';
import { appOf } from '../http/body/intake.ts';
import { whenClosed } from '../http/closed.ts';
import type { AppShares } from '../http/limits/app-shares.ts';
import { allowsCaller, everyCaller } from '../http/route/access.ts';
import type { Api } from '../http/route/route.ts';
import { AppError } from '../lib/errors.ts';
import { Type } from '../lib/type.ts';
import type { Caller } from '../tenancy/caller.ts';
import { createApiClient } from './api-client.ts';
import { longArgumentsAt, shareLongArguments } from './long-arguments.ts';

type McpDeps = {
  fastify: FastifyInstance;
  baseUrl: () => string;
  corsOrigins: string[];
  /** Calls, of all apps, that wait for work. */
  waits: AppShares;
  /** Bytes of a file visible to the caller. */
  readFile(caller: Caller, file: string, start: number, end: number): Promise<Buffer>;
};

/**
 * The Model Context Protocol over streamable HTTP, without sessions: docs/decisions/0023-mcp-without-sessions.md.
 * Returns a function that ends the waits of tools, for server shutdown.
 */
export function registerMcpRoutes(api: Api, deps: McpDeps): { stopWaiting(): void } {
  const waiting = new Set<AbortController>();
  const common = {
    method: 'POST',
    protocol: 'json-or-events',
    tag: 'Server',
    responses: { 200: Type.Any({ description: 'application/json or text/event-stream' }) },
    // The protocol's library checks all values of a message in one turn of the event loop.
    budget: { ...bodyBudgets.message, valuesMax: 5_000, longTextAt: longArgumentsAt },
    // Rate limits and the audit log apply to the requests that tools send.
    rateGroup: 'reads',
    idempotency: 'forwarded',
    audit: 'none',
  } as const;
  const handle = (call: McpCall) => handleCall(api, deps, waiting, call);
  api.app(everyCaller, {
    ...common,
    path: '/mcp',
    operationId: 'callMcp',
    summary: 'Speak the Model Context Protocol',
    description:
      'JSON-RPC over streamable HTTP, for MCP clients, with the credential headers of the API. There are no sessions: every request is independent.',
    handler: handle,
  });
  api.app(everyCaller, {
    ...common,
    path: '/mcp/:key',
    operationId: 'callAppMcp',
    summary: 'Speak the Model Context Protocol with one app',
    description:
      'The path has the publishable key of the app, so that a client needs only a token: of the app, or of an issuer that it trusts. Without a valid one, the response is 401 with `WWW-Authenticate`, where OAuth clients find the issuer.',
    params: Type.Object({ key: Type.String() }),
    keyInPath: true,
    challenge: (request) => challengeOf(deps.baseUrl(), request),
    handler: handle,
  });
  return {
    stopWaiting() {
      for (const patience of waiting) patience.abort();
    },
  };
}

type McpCall = { caller: Caller; request: FastifyRequest; reply: FastifyReply };

async function handleCall(api: Api, deps: McpDeps, waiting: Set<AbortController>, { caller, request, reply }: McpCall) {
  requireOwnOrigin(deps, request.headers.origin);
  requireFewMessages(request.body);
  const app = appOf(request);
  // Loaded on first use: the protocol's library costs 36 MiB and a sixth of a second.
  const { countWaits, handleMcpRequest } = await import('./server.ts');
  const waits = countWaits(request.body);
  if (waits > 0) deps.waits.takeUntilClosed(reply.raw, app, waits);
  const long = await shareLongArguments(request.body, app);
  const gone = new AbortController();
  const patience = new AbortController();
  waiting.add(patience);
  whenClosed(reply.raw, () => {
    long.end();
    waiting.delete(patience);
    patience.abort();
    gone.abort();
  });
  const response = await handleMcpRequest(webRequest(deps, request, gone.signal), request.body, {
    api: createApiClient(deps.fastify, request),
    baseUrl: deps.baseUrl(),
    mayUse(operation) {
      const route = api.routes.find((each) => each.operationId === operation);
      return route !== undefined && allowsCaller(route, caller);
    },
    readFile: (file, start, end) => deps.readFile(caller, file, start, end),
    signal: patience.signal,
    onError: (error) => request.log.error({ err: error }, 'A tool failed'),
    onRefusal: (error) => request.log.debug({ err: error }, 'MCP request refused'),
  });
  // Only the server knows whether the connection stays open.
  response.headers.delete('connection');
  reply.code(response.status).headers(Object.fromEntries(response.headers));
  if (response.body === null) return reply.send('');
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return reply.send(await response.text());
  return reply.send(Readable.fromWeb(response.body as ReadableStream));
}

/** The WWW-Authenticate header, which names the metadata of the endpoint (RFC 9728). */
function challengeOf(baseUrl: string, { params, headers }: FastifyRequest): string {
  const { key } = params as { key: string };
  const metadata = `resource_metadata="${baseUrl}/.well-known/oauth-protected-resource/mcp/${encodeURIComponent(key)}"`;
  return headers.authorization === undefined ? `Bearer ${metadata}` : `Bearer error="invalid_token", ${metadata}`;
}

/**
 * 403 for pages of other origins. Even after DNS rebinding, a page sends its own origin with every POST; programs send
 * none. `*` in the settings is ignored here: the protocol requires each origin to be named.
 */
function requireOwnOrigin({ baseUrl, corsOrigins }: McpDeps, origin: string | undefined): void {
  if (origin === undefined || origin === new URL(baseUrl()).origin || corsOrigins.includes(origin)) return;
  throw new AppError(
    'forbidden',
    'Pages of this origin may not use /mcp. To allow them, add the origin to QUARRY_CORS_ORIGINS.',
  );
}

/** One revision of the protocol allows several messages in one request. */
const batchMessagesMax = 20;

function requireFewMessages(body: unknown): void {
  if (!Array.isArray(body) || body.length <= batchMessagesMax) return;
  throw new AppError('invalid_parameters', `body: must hold at most ${batchMessagesMax} messages`, {
    fields: [{ field: 'body', message: `must hold at most ${batchMessagesMax} messages` }],
  });
}

function webRequest({ baseUrl }: McpDeps, request: FastifyRequest, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  return new Request(`${baseUrl()}/mcp`, { method: 'POST', headers, signal });
}
