import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

type CollectedSpan = {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  attributes: Record<string, unknown>;
  events: { name: string; attributes: Record<string, unknown> }[];
};

type TraceCollector = {
  url: string;
  spans: CollectedSpan[];
  /** Everything that arrived, as text. */
  text(): string;
  /** The authorization header of each request. */
  authorizations: (string | undefined)[];
  /** The span with this name in the trace. If there is none, throws an error that lists all names. */
  find(name: RegExp, traceId?: string): CollectedSpan;
  /** The names of the spans from this one to the root of its trace. */
  pathOf(span: CollectedSpan): string[];
  close(): void;
};

type Attribute = { key: string; value: Record<string, unknown> };
type SentSpan = Omit<CollectedSpan, 'attributes' | 'events'> & {
  attributes: Attribute[];
  events?: { name: string; attributes: Attribute[] }[];
};
type Sent = { resourceSpans?: { scopeSpans: { spans: SentSpan[] }[] }[] };

/** Receives traces as an OpenTelemetry collector does: OTLP over HTTP, in JSON. */
export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const authorizations: (string | undefined)[] = [];
  let received = '';
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    received += text;
    authorizations.push(request.headers.authorization);
    if (request.method !== 'POST' || request.url !== '/v1/traces') {
      response.writeHead(404).end();
      return;
    }
    for (const { scopeSpans } of (JSON.parse(text) as Sent).resourceSpans ?? [])
      for (const scope of scopeSpans)
        for (const { attributes, events = [], ...span } of scope.spans)
          spans.push({
            ...span,
            attributes: toObject(attributes),
            events: events.map((event) => ({ name: event.name, attributes: toObject(event.attributes) })),
          });
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    authorizations,
    text: () => received,
    find(name, traceId) {
      const found = spans.find((span) => name.test(span.name) && (traceId === undefined || span.traceId === traceId));
      if (found === undefined) throw new Error(`No ${name} among ${spans.map((span) => span.name).join(', ')}`);
      return found;
    },
    pathOf(span) {
      const names: string[] = [];
      for (let at: CollectedSpan | undefined = span; at; ) {
        names.push(at.name);
        const parentSpanId: string | undefined = at.parentSpanId;
        at = spans.find(({ spanId }) => spanId === parentSpanId);
      }
      return names;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function toObject(attributes: Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
