import type { IncomingMessage, Server } from 'node:http';
import { Socket } from 'node:net';
import cors from '@fastify/cors';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { runForApp } from '../db/app-lane.ts';
import { recentApps } from '../fairness/recent-apps.ts';
import { AppError, notFound } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { lazyPackage } from '../lib/lazy-package.ts';
import { limits } from '../lib/limits.ts';
import type { Logger } from '../lib/log.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import { requireScope } from '../tenancy/key-scopes.ts';
import type { Sessions } from '../tenancy/sessions.ts';
import { isTracing } from '../tracing/trace.ts';
import { readJsonBodies } from './body/body.ts';
import { appOf, type Intake } from './body/intake.ts';
import { createContentGate } from './content-origin.ts';
import {
  codeOf,
  type ErrorDialect,
  errorBody,
  movedError,
  sendError,
  statusOf,
  unmatchedRouteError,
} from './errors.ts';
import { parseQuery } from './escapes.ts';
import { type Front, putFront } from './front.ts';
import { oneHeader } from './headers.ts';
import type { Connections } from './limits/connections.ts';
import type { RateLimiter } from './limits/rate-limits.ts';
import type { Metrics } from './metrics.ts';
import { type Access, requireAccess } from './route/access.ts';
import type { Auditor } from './route/audit.ts';
import { bearerKey, isForMcpEndpoint, keyInPath } from './route/credential-headers.ts';
import type { Idempotency } from './route/idempotency-key.ts';
import { innerCaller } from './route/inner-caller.ts';
import { Api } from './route/route.ts';
import { createSchemaStore } from './route/schema-store.ts';
import { buildSerializer } from './route/serialization.ts';
import { compileCheck } from './route/validation.ts';
import { traceRequests } from './tracing.ts';

type HttpOptions = {
  log: Logger;
  credentials: Credentials;
  sessions: Sessions;
  metrics: Metrics;
  /** Absent: no rate limits apply. */
  rateLimiter?: RateLimiter;
  /** Absent: nothing is audited. */
  audit?: Auditor;
  /** Absent: no response is stored, and the header Idempotency-Key is ignored. */
  idempotency?: Idempotency;
  bodyBytesMax: number;
  intake: Intake;
  /** Hands requests to cells. Absent: this server's own routes handle them all. */
  front?: Front | undefined;
  /** Whether the app of a failed request is in another database now. Absent: there is only one. */
  hasMoved?: ((request: IncomingMessage, app: string | undefined) => Promise<boolean>) | undefined;
  /** Absent: connections and requests of strangers are not limited. */
  connections?: Connections;
  corsOrigins: string[];
  /** The only origin that serves stored content; undefined: this server's own origin. */
  contentOrigin: string | undefined;
  trustProxy: string[];
  /** Paths whose errors have a different shape. */
  errorDialects?: readonly ErrorDialect[];
  /** Rewrites the raw path for the router, because keys under /kv/ may contain any character. */
  rewriteUrl?: (url: string) => string;
};

// A normal import of node:http would also load Node's client for fetch and WebSocket, which needs 4 MB.
const http = lazyPackage<typeof import('node:http')>('node:http');
const requestIdPattern = /^[\w.:-]{1,128}$/;

/** Creates a server with the project's parsing, validation, authentication, errors and headers, but no routes. */
export async function createHttpServer(options: HttpOptions): Promise<{ fastify: FastifyInstance; api: Api }> {
  const { audit, idempotency, bodyBytesMax, front, connections } = options;
  const fastify: FastifyInstance = Fastify(settingsOf(options));
  if (front !== undefined) putFront(fastify.server, front);
  connections?.guard(fastify.server);
  // Node would refuse an unknown expectation before any hook runs. It may be ignored (RFC 9110, 10.1.1).
  fastify.server.on('checkExpectation', (request, response) => fastify.server.emit('request', request, response));
  const api = new Api(fastify, { bodyBytesMax, audit, idempotency });
  decorate(fastify, options);
  readJsonBodies(fastify);
  if (isTracing()) traceRequests(fastify);
  // The hooks take callbacks: every request passes all of them, and a promise for each would cost time.
  // These come first, because a preflight request ends in those of CORS.
  addFirstHooks(fastify, options);
  await registerCors(fastify, options);
  addCallerHooks(fastify, options);
  addResponseHooks(fastify, options);
  setErrorHandlers(fastify, api, options);
  return { fastify, api };
}

function settingsOf({ log, rewriteUrl, bodyBytesMax, trustProxy }: HttpOptions): FastifyHttpOptions<Server> {
  return {
    loggerInstance: log as unknown as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: (request) => {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && requestIdPattern.test(given) ? given : newUuid();
    },
    bodyLimit: bodyBytesMax,
    trustProxy: trustProxy.length === 0 ? false : trustProxy,
    routerOptions: { maxParamLength: limits.urlCharactersMax, querystringParser: parseQuery },
    requestTimeout: limits.uploadTimeoutMs,
    connectionTimeout: limits.requestTimeoutMs,
    forceCloseConnections: 'idle',
    // A hook refuses these requests instead, in our error shape.
    return503OnClosing: false,
    // Node keeps only the first of some repeated headers, where a proxy may keep the last. Joined, they are invalid.
    // Node would refuse a request without a host before any hook runs, and not in our error shape.
    http: { maxHeaderSize: limits.headerBytesMax, joinDuplicateHeaders: true, requireHostHeader: false },
    clientErrorHandler: (error, socket) => refuseMalformed(error, socket),
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id);
      sendError(error, request, reply);
    },
    ...(rewriteUrl === undefined ? {} : { rewriteUrl: (request) => rewriteUrl(request.url ?? '/') }),
    schemaController: {
      bucket: createSchemaStore as never,
      compilersFactory: {
        buildValidator: () => compileCheck as never,
        buildSerializer,
      },
    },
  };
}

function decorate(fastify: FastifyInstance, { intake, errorDialects = [] }: HttpOptions): void {
  fastify.decorateRequest('identity');
  fastify.decorateRequest('credential');
  fastify.decorateRequest('response');
  fastify.decorate('intake', intake);
  fastify.decorate('errorDialects', errorDialects);
  fastify.decorateRequest('auditNote');
  fastify.decorateRequest('bodyHash');
  fastify.decorateRequest('formDigest');
}

function addFirstHooks(fastify: FastifyInstance, { connections }: HttpOptions): void {
  let isStopping = false;
  fastify.addHook('preClose', (done) => {
    isStopping = true;
    done();
  });
  fastify.addHook('onRequest', (request, reply, done) => {
    request.response = reply.raw;
    reply.headers({
      'x-request-id': request.id,
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cache-control': 'no-store',
    });
    // Applies to open connections: new ones are no longer accepted.
    if (isStopping) return done(new AppError('unavailable', 'The server is stopping. Send the request again.'));
    done(connections?.begin(request, reply.raw));
  });
}

async function registerCors(fastify: FastifyInstance, { corsOrigins }: HttpOptions): Promise<void> {
  const anyOrigin = corsOrigins.includes('*');
  await fastify.register(cors, {
    // Only browsers send an origin, and only they read these headers.
    origin: (origin, callback) => callback(null, origin !== undefined && (anyOrigin ? '*' : corsOrigins)),
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposedHeaders: [
      'x-request-id',
      'etag',
      'retry-after',
      'ratelimit-limit',
      'ratelimit-remaining',
      'ratelimit-reset',
      'content-range',
      'content-disposition',
      'allow',
      'idempotency-replayed',
      'x-unknown-parameters',
      'www-authenticate',
      ...['location', 'tus-resumable', 'tus-version', 'tus-extension', 'tus-max-size', 'tus-checksum-algorithm'],
      ...['upload-offset', 'upload-length', 'upload-metadata', 'upload-expires', 'x-file'],
    ],
    maxAge: 600,
  });
}

/** Refuses requests that are not for this server, and finds out who sends the others. */
function addCallerHooks(fastify: FastifyInstance, options: HttpOptions): void {
  const { front, contentOrigin } = options;
  const contentGate = contentOrigin === undefined ? undefined : createContentGate(contentOrigin);
  fastify.addHook('onRequest', (request, reply, done) => {
    const refusal = front?.refusalOf(request.raw);
    if (refusal !== undefined) return done(refusal);
    if (!namesOneHost(request)) return done(new AppError('invalid_path', 'Name one host.'));
    const place = contentGate?.(request) ?? 'serve';
    if (place === 'hide') return done(notFound());
    if (place !== 'serve') return void reply.redirect(place.to, 307);
    const { access } = request.routeOptions.config;
    if (access === undefined || access.kind === 'public') return done();
    identifyCaller(options, request, access).then(() => runForApp(appOf(request), done), done);
  });
}

function addResponseHooks(fastify: FastifyInstance, { credentials, metrics, audit }: HttpOptions): void {
  // Only the wait for the client is bounded. While a handler works, an idle connection is normal.
  fastify.addHook('preHandler', (request, reply, done) => {
    if (!request.routeOptions.config.rawBody) setSocketTimeout(reply, 0);
    done();
  });
  fastify.addHook('onSend', (request, reply, payload, done) => {
    setSocketTimeout(reply, limits.requestTimeoutMs);
    if (request.routeOptions.config.changesRights && reply.statusCode < 400) credentials.forget();
    done(null, payload);
  });
  fastify.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown';
    metrics.observeRequest(request.method, route, reply.statusCode, reply.elapsedTime / 1000);
    const line = { method: request.method, route, status: reply.statusCode, ms: Math.round(reply.elapsedTime) };
    request.log.info(line, 'request');
    if (request.identity !== undefined) audit?.count(request, reply.statusCode);
    done();
  });
}

function setErrorHandlers(fastify: FastifyInstance, api: Api, { metrics, hasMoved }: HttpOptions): void {
  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    metrics.countError(request.method, request.routeOptions.url ?? 'unknown', codeOf(error, request));
    if (statusOf(error, request) === 401)
      reply.header('www-authenticate', request.routeOptions.config.challenge?.(request) ?? 'Bearer');
    return sendError(error, request, reply);
  };
  if (hasMoved === undefined) fastify.setErrorHandler(fail);
  else
    fastify.setErrorHandler(async (error, request, reply) => {
      // What an app has left behind in a database is no reason to refuse its requests.
      const mayHaveMoved = statusOf(error, request) !== 503;
      const moved = mayHaveMoved && (await hasMoved(request.raw, appOf(request) || undefined).catch(() => false));
      return fail(moved ? movedError() : error, request, reply);
    });
  fastify.setNotFoundHandler((request, reply) => {
    const error = unmatchedRouteError(request.method, allowedMethods(api, request.url));
    metrics.countError(request.method, 'unknown', error.code);
    return sendError(error, request, reply);
  });
}

/** HTTP/1.0 may leave the host out. */
function namesOneHost({ headers, raw }: FastifyRequest): boolean {
  return headers.host === undefined ? raw.httpVersion === '1.0' : !headers.host.includes(',');
}

/** An in-process request (`inject`) has no real socket, so there is nothing to time. */
function setSocketTimeout({ raw }: FastifyReply, ms: number): void {
  if (raw.socket instanceof Socket) raw.socket.setTimeout(ms);
}

/** Records the caller on the request; throws unless they may use the route and are within their rate limit. */
async function identifyCaller(
  { credentials, sessions, rateLimiter }: HttpOptions,
  request: FastifyRequest,
  access: Access,
): Promise<void> {
  const { rateGroup, area, reads = false } = request.routeOptions.config;
  const inner = innerCaller(request);
  if (inner !== undefined) {
    request.identity = inner;
    requireAccess(access, inner);
    if (area !== undefined) requireScope(inner.scopes, { area, reads });
    await (rateGroup === undefined ? undefined : rateLimiter?.take(inner, rateGroup));
    return;
  }
  const headers = credentialHeaders(request, access.kind === 'key');
  const { cookie } = request.headers;
  const bySession =
    cookie !== undefined &&
    access.kind !== 'key' &&
    headers.apiKey === undefined &&
    headers.authorization === undefined;
  const { identity, credential } = bySession
    ? await sessions.identify(cookie, oneHeader(request, 'x-quarry-csrf'), headers, pathApp(request))
    : await credentials.identify(headers, pathApp(request));
  request.identity = identity;
  request.credential = credential;
  requireAccess(access, identity);
  if ('scopes' in identity && area !== undefined)
    requireScope(identity.scopes, { area, reads }, identity.kind === 'server' ? {} : { holder: 'this token' });
  recentApps.note(appOf(request));
  // Most requests do not have to wait.
  const wait = rateGroup === undefined ? undefined : rateLimiter?.take(identity, rateGroup);
  if (wait !== undefined) await wait;
}

/** Returns an error in the usual shape for a request that is not valid HTTP. */
function refuseMalformed({ code }: { code?: string }, socket: Socket): void {
  if (!socket.writable) return;
  const error = malformed(code);
  const body = JSON.stringify(errorBody(error));
  const headers = [
    'content-type: application/json; charset=utf-8',
    `x-request-id: ${newUuid()}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`HTTP/1.1 ${error.status} ${http().STATUS_CODES[error.status]}\r\n${headers.join('\r\n')}\r\n\r\n${body}`);
}

function malformed(code: string | undefined): AppError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new AppError('headers_too_large', `Path and headers have more than ${limits.headerBytesMax} bytes.`);
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AppError('request_timeout', 'The request did not arrive in time.');
    default:
      return new AppError('invalid_path', 'The request is not valid HTTP.');
  }
}

function credentialHeaders(request: FastifyRequest, keyOnly: boolean) {
  const { headers } = request;
  const one = (name: string) => oneHeader(request, name);
  const bearer = bearerKey(request);
  const apiKey = one('x-api-key') ?? one('x-archastro-api-key') ?? keyInPath(request) ?? bearer;
  const alias = one('x-archastro-api-key') ?? apiKey;
  if (apiKey !== alias) throw new AppError('invalid_credentials', 'x-api-key and x-archastro-api-key differ.');
  if (bearer !== undefined && bearer !== apiKey)
    throw new AppError('invalid_credentials', 'x-api-key and the key in Authorization differ.');
  return {
    apiKey,
    // Sign-in and refresh use only the key, even if an old token is sent with it.
    authorization: keyOnly || bearer !== undefined ? undefined : headers.authorization,
    app: one('x-app'),
    sandbox: one('x-sandbox'),
    forMcp: isForMcpEndpoint(request),
  };
}

/** The app in a developer path. */
function pathApp(request: FastifyRequest): string | undefined {
  return request.routeOptions.url?.startsWith('/protected/') ? (request.params as { app?: string }).app : undefined;
}

/** The methods that registered routes take at this path. */
export function allowedMethods(api: Api, url: string): string[] {
  const path = url.split('?', 1)[0] ?? '/';
  const methods = new Set<string>();
  for (const route of api.routes) {
    if (!patternOf(route.path).test(path)) continue;
    methods.add(route.method);
    if (route.method === 'GET') methods.add('HEAD');
  }
  return [...methods].sort();
}

const patterns = new Map<string, RegExp>();

function patternOf(path: string): RegExp {
  let pattern = patterns.get(path);
  if (!pattern) {
    const source = path
      .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
      .replace(/:\w+/g, '[^/]+')
      .replace(/\*/g, '.*');
    pattern = new RegExp(`^${source}$`);
    patterns.set(path, pattern);
  }
  return pattern;
}
