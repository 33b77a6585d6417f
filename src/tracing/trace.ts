import { AsyncLocalStorage } from 'node:async_hooks';
import type * as Api from '@opentelemetry/api';

/*
 * Spans for the work of this process. Without a tracer, nothing is recorded. Frequent operations check `isTracing`, a
 * single comparison, before they create anything.
 */

type Tracing = { api: typeof Api; tracer: Api.Tracer };
type SpanKind = 'internal' | 'server' | 'client' | 'consumer';

type SpanOptions = {
  kind?: SpanKind;
  /** Ids, counts and names from the program itself; never values, URLs, messages or contents. */
  attributes?: Api.Attributes;
};

type BeginOptions = SpanOptions & {
  /** The stored or received `traceparent` of the trace that the work belongs to. */
  continues?: string | null | undefined;
};

/** A span that has not ended yet. */
export type OpenSpan = {
  readonly span: Api.Span;
  readonly traceparent: string;
  isOver: boolean;
};

const kinds: Record<SpanKind, Api.SpanKind> = { internal: 0, server: 1, client: 2, consumer: 4 };
const errorStatus: Api.SpanStatusCode.ERROR = 2;
const active = new AsyncLocalStorage<OpenSpan | undefined>();
let tracing: Tracing | undefined;

/** Sets the tracer of this process, or removes it. */
export function setTracing(next: Tracing | undefined): void {
  tracing = next;
}

export function isTracing(): boolean {
  return tracing !== undefined;
}

/** The span that the calling code belongs to. Work that outlives its span belongs to none. */
export function currentSpan(): OpenSpan | undefined {
  const current = tracing === undefined ? undefined : active.getStore();
  return current?.isOver ? undefined : current;
}

/** The trace that the calling code belongs to, in the format of W3C Trace Context. */
export function currentTraceparent(): string | undefined {
  return currentSpan()?.traceparent;
}

/** For log lines. */
export function traceIds(): { trace_id?: string; span_id?: string } {
  const context = currentSpan()?.span.spanContext();
  return context === undefined ? {} : { trace_id: context.traceId, span_id: context.spanId };
}

/** Runs work as part of this span, or outside of any span. */
export function runWithin<T>(span: OpenSpan | undefined, work: () => T): T {
  return active.run(span, work);
}

/** Opens a span that continues a trace or starts one. Undefined if tracing is off. */
export function openSpan(name: string, options: BeginOptions = {}): OpenSpan | undefined {
  if (tracing === undefined) return undefined;
  const { api, tracer } = tracing;
  const current = currentSpan();
  const given = parseTraceparent(options.continues);
  const isCurrent = given === undefined || given.traceId === current?.span.spanContext().traceId;
  const context = isCurrent
    ? current && api.trace.setSpan(api.ROOT_CONTEXT, current.span)
    : api.trace.setSpanContext(api.ROOT_CONTEXT, given);
  const { kind = 'internal', attributes = {} } = options;
  const span = tracer.startSpan(name, { kind: kinds[kind], attributes }, context ?? api.ROOT_CONTEXT);
  const { traceId, spanId, traceFlags } = span.spanContext();
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  return { span, traceparent, isOver: false };
}

export function endSpan(open: OpenSpan, failure?: { error: unknown }): void {
  if (failure !== undefined) {
    open.span.setAttribute('error.type', kindOf(failure.error));
    open.span.setStatus({ code: errorStatus });
  }
  open.isOver = true;
  open.span.end();
}

/** Runs work in a span that continues a trace or starts one. */
export function traceFrom<T>(name: string, options: BeginOptions, work: () => Promise<T>): Promise<T> {
  const open = openSpan(name, options);
  return open === undefined ? work() : runAndEnd(open, work);
}

/**
 * Runs work in a span of the current trace. Outside of a trace, it only runs the work: the process's own housekeeping
 * is not traced.
 */
export function trace<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> {
  return currentSpan() === undefined ? work() : traceFrom(name, options, work);
}

async function runAndEnd<T>(open: OpenSpan, work: () => Promise<T>): Promise<T> {
  try {
    const result = await active.run(open, work);
    endSpan(open);
    return result;
  } catch (error) {
    endSpan(open, { error });
    throw error;
  }
}

/** Records an event in the current span. */
export function noteEvent(name: string, attributes: Api.Attributes): void {
  currentSpan()?.span.addEvent(name, attributes);
}

export function noteAttributes(attributes: Api.Attributes): void {
  currentSpan()?.span.setAttributes(attributes);
}

/** Adds the current trace to the payload of a job. */
export function withTraceparent<T extends object>(payload: T): T & { traceparent?: string } {
  const traceparent = currentTraceparent();
  return traceparent === undefined ? payload : { ...payload, traceparent };
}

/** Returns a code or a class name: the message of an error may quote the data that it failed on. */
function kindOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return String(code ?? name ?? 'unknown');
}

function parseTraceparent(text: string | null | undefined): Api.SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = traceparentPattern.exec(text ?? '') ?? [];
  if (traceId === '' || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
}

const traceparentPattern = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/;
