import type { FastifyInstance, FastifyRequest } from 'fastify';
import { endSpan, type OpenSpan, openSpan, runWithin } from '../tracing/trace.ts';
import { oneHeader } from './headers.ts';

/** Asked for every few seconds by machines. */
const untraced = new Set(['/healthz', '/readyz', '/metrics']);

/** Makes a span of each request. Before all other hooks, so that what they do and log is part of it. */
export function traceRequests(fastify: FastifyInstance): void {
  const spans = new WeakMap<FastifyRequest, OpenSpan>();
  fastify.addHook('onRequest', (request, _reply, done) => {
    const route = request.routeOptions.url ?? 'unknown';
    if (untraced.has(route)) return done();
    const span = openSpan(`${request.method} ${route}`, {
      kind: 'server',
      continues: oneHeader(request, 'traceparent'),
      attributes: { 'http.request.method': request.method, 'http.route': route, 'quarry.request_id': request.id },
    });
    if (span === undefined) return done();
    spans.set(request, span);
    runWithin(span, done);
  });
  // The body arrives through callbacks of the socket, which are not part of the span.
  fastify.addHook('preValidation', (request, _reply, done) => {
    const span = spans.get(request);
    if (span === undefined) done();
    else runWithin(span, done);
  });
  fastify.addHook('onResponse', (request, reply, done) => {
    const span = spans.get(request);
    if (span === undefined) return done();
    runWithin(span, done);
    span.span.setAttribute('http.response.status_code', reply.statusCode);
    const { identity } = request;
    if (identity !== undefined && 'appId' in identity) span.span.setAttribute('quarry.app', identity.appId);
    endSpan(span, reply.statusCode >= 500 ? { error: { code: String(reply.statusCode) } } : undefined);
  });
}
