import type { FastifyInstance, FastifyRequest } from 'fastify';
import { endSpan, type OpenSpan, openSpan, runWithin } from '../tracing/trace.ts';
import { oneHeader } from './headers.ts';

/** Monitoring systems request these every few seconds. */
const untraced = new Set(['/healthz', '/readyz', '/metrics']);

/** Creates a span for each request. Its hooks run before all others, so the span covers what they do and log. */
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
  // The body arrives through callbacks of the socket, which run outside of the span.
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
