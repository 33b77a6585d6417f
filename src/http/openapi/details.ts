import { errorCodes } from '../../lib/errors.ts';
import type { Protocol } from '../route/protocols.ts';
import type { RouteInfo } from '../route/route.ts';
import { type OperationExample, readExamples } from './examples.ts';
import { describeMembers } from './members.ts';
import { nameBodies, twinOf } from './names.ts';
import { exampleOfQuery } from './query-examples.ts';

type Schema = Record<string, unknown>;
type Header = { description: string; schema: Schema };
type Media = { schema: Schema; examples?: Record<string, unknown> };
type Response = {
  description: string;
  headers?: Record<string, unknown>;
  content?: Record<string, Media>;
};
type Parameter = {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
  example?: unknown;
};
type Operation = {
  operationId: string;
  tags?: string[];
  'x-idempotent'?: boolean;
  description?: string;
  parameters?: Parameter[];
  requestBody?: { required?: boolean; content: Record<string, Media> };
  responses: Record<string, Response>;
};
type Document = {
  paths: Record<string, Record<string, Operation>>;
  webhooks?: Record<string, unknown>;
  components: Record<'headers' | 'responses' | 'examples', Record<string, unknown>> & {
    schemas: Record<string, Schema>;
  };
};

const text = { type: 'string' };
const seconds = { type: 'integer', minimum: 0 };

const headers: Record<string, Header> = {
  'Accept-Ranges': { description: '`bytes`: the contents can be read in parts.', schema: text },
  'Content-Range': { description: 'The range of bytes in this response, and the total size.', schema: text },
  ETag: { description: 'Identifies this state of the resource.', schema: text },
  'Idempotency-Replayed': { description: '`true` if this is the stored response of an earlier request.', schema: text },
  'Last-Modified': { description: 'When the contents were created.', schema: text },
  'Retry-After': { description: 'Seconds to wait before the next attempt.', schema: seconds },
  'RateLimit-Limit': {
    description: 'Requests per minute of this credential in this group of routes.',
    schema: seconds,
  },
  'RateLimit-Remaining': { description: 'Remaining requests.', schema: seconds },
  'RateLimit-Reset': { description: 'Seconds until the next request is allowed.', schema: seconds },
  'WWW-Authenticate': { description: 'How to authenticate: `Bearer`.', schema: text },
  'X-Request-Id': { description: 'Identifies the request in the log of the server.', schema: text },
};

const parameters: Record<string, string> = {
  'If-Match': 'Applies the request only if the resource has this entity tag, or with `*` if it exists; otherwise 412.',
  'If-None-Match':
    'A write applies only if the resource does not have this tag, or with `*` if it does not exist; otherwise 412. A read returns 304 if the resource has this tag.',
  'If-Modified-Since': 'Returns 304 if the contents have not changed since.',
  'If-Range': 'Sends the range only if the contents still have this tag or date.',
  Range: 'One range of bytes, such as `bytes=0-1023`.',
  'Last-Event-ID': 'The `id` of the last event received. The stream starts with the events after it.',
};

const binary: Record<string, { schema: Schema }> = { '*/*': { schema: { type: 'string', format: 'binary' } } };
const events = { 'text/event-stream': { schema: text } };

/** A JSON-RPC message or a batch of them. The library for the protocol validates their contents. */
const rpcMessage: Schema = {
  type: 'object',
  required: ['jsonrpc'],
  properties: {
    jsonrpc: { type: 'string', enum: ['2.0'] },
    id: { type: ['string', 'integer'], description: 'Absent for notifications.' },
    method: { type: 'string', description: 'Such as tools/list or tools/call. Absent in responses.' },
    params: { type: 'object', additionalProperties: true },
  },
};
const rpcBody: Schema = { anyOf: [rpcMessage, { type: 'array', items: rpcMessage, maxItems: 20 }] };

type Details = {
  requestContent?: Record<string, { schema: Schema }>;
  content?: Record<string, { schema: Schema }>;
  responseHeaders?: string[];
  requestHeaders?: string[];
};

const protocols: Record<Protocol, Details> = {
  bytes: {
    content: binary,
    responseHeaders: ['ETag', 'Last-Modified', 'Accept-Ranges'],
    requestHeaders: ['Range', 'If-Range', 'If-None-Match', 'If-Modified-Since'],
  },
  events: { requestHeaders: ['Last-Event-ID'] },
  metrics: { content: { 'text/plain': { schema: text } } },
  archive: { content: { 'application/zip': { schema: { type: 'string', format: 'binary' } } } },
  csv: { content: { 'text/csv': { schema: text } } },
  'json-or-events': {
    requestContent: { 'application/json': { schema: rpcBody } },
    content: { 'application/json': { schema: { type: 'object' } }, ...events },
  },
  cached: { responseHeaders: ['ETag'], requestHeaders: ['If-None-Match'] },
  tagged: { responseHeaders: ['ETag'] },
  conditional: { responseHeaders: ['ETag'], requestHeaders: ['If-Match', 'If-None-Match'] },
};

/** A message that the server sends to the webhooks of an app: its event, and the schema of its body. */
export type WebhookMessage = { event: string; summary: string; body: object };

/** The tag of the operations that repeat those of `/api/v1` for developers. A client can leave it out. */
export const twinsTag = 'Developer paths';

/**
 * Adds to each operation what its schemas cannot express: path parameters, media types, headers and errors, the names
 * of bodies, words for members, and the messages to webhooks.
 */
export function completeDocument<T extends object>(
  given: T,
  routes: readonly RouteInfo[],
  messages: readonly WebhookMessage[],
): T {
  // The schemas of the routes themselves stay as they are.
  const document = structuredClone(given) as unknown as Document;
  const byId = new Map(routes.map((route) => [route.operationId, route]));
  document.components.headers = headers;
  document.components.responses = Object.fromEntries(
    [...new Set(routes.map((route) => route.errors))].flatMap((schema) =>
      Object.entries(errors).map(([status, { name, description }]) => [
        responseName(schema, name),
        errorResponse(Number(status), description, schema),
      ]),
    ),
  );
  document.components.examples = {};
  const examples = readExamples();
  for (const [path, operations] of Object.entries(document.paths))
    for (const operation of Object.values(operations)) {
      const route = byId.get(operation.operationId);
      if (route === undefined) continue;
      declarePathParameters(path, operation);
      describeSuccess(operation, route);
      describeErrors(operation, route);
      addExamples(operation, examples, document.components.examples);
      if (operation.operationId !== twinOf(operation.operationId)) operation.tags = [twinsTag];
      if (route.idempotency !== undefined && route.idempotency !== 'credential') operation['x-idempotent'] = true;
    }
  document.webhooks = Object.fromEntries(messages.map((message) => [message.event, webhookOf(message, document)]));
  openErrorCodes(document.components.schemas);
  nameBodies(document);
  describeMembers(document);
  removeUnusedResponses(document);
  return document as unknown as T;
}

/** An error schema of its own does not need every status. */
function removeUnusedResponses({ paths, components: { responses } }: Document): void {
  const used = JSON.stringify(paths);
  for (const name of Object.keys(responses))
    if (!used.includes(`"#/components/responses/${name}"`)) delete responses[name];
}

/** Lists the codes of errors for editors, and lets clients accept those of later releases. */
function openErrorCodes(schemas: Record<string, Schema>): void {
  const error = schemas.Error as { properties: { error: { properties: Record<string, Schema> } } };
  error.properties.error.properties.code = {
    anyOf: [{ type: 'string', enum: Object.keys(errorCodes) }, { type: 'string' }],
  };
}

const messageHeaders: Record<string, string> = {
  'webhook-id': 'The id of the event, by which repeats are recognised.',
  'webhook-timestamp': 'When the message was signed, in seconds since 1970.',
  'webhook-signature': 'Signatures of the message as Standard Webhooks defines them, separated by spaces.',
};

/** The request that a receiver gets for one event. */
function webhookOf({ event, summary, body }: WebhookMessage, { components: { schemas } }: Document): unknown {
  const words = event.split(/[._]/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  const name = `${words.join('')}Message`;
  schemas[name] = { ...body, description: `${summary}: the message to webhooks.` };
  const parameters = Object.entries(messageHeaders).map(([header, description]) => ({
    name: header,
    in: 'header',
    required: true,
    description,
    schema: text,
  }));
  return {
    post: {
      operationId: `on${words.join('')}`,
      tags: ['Webhooks'],
      summary,
      description: 'Any 2xx within 15 seconds accepts the message. Other responses are followed by further attempts.',
      parameters,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } },
      },
      responses: {
        '200': { description: 'The message was accepted.' },
        '410': { description: 'The receiver is gone: the webhook is paused.' },
      },
      security: [],
    },
  };
}

function declarePathParameters(path: string, operation: Operation): void {
  const declared = operation.parameters ?? [];
  const missing = [...path.matchAll(/\{(\w+)\}/g)]
    .map(([, name = '']) => name)
    .filter((name) => !declared.some((parameter) => parameter.in === 'path' && parameter.name === name));
  if (missing.length === 0) return;
  const added = missing.map((name) => ({ name, in: 'path', required: true, schema: text }));
  operation.parameters = [...added, ...declared];
}

function describeSuccess(operation: Operation, route: RouteInfo): void {
  const {
    requestContent,
    content,
    responseHeaders = [],
    requestHeaders = [],
  } = route.protocol ? protocols[route.protocol] : {};
  if (requestContent !== undefined)
    operation.requestBody = { required: true, content: structuredClone(requestContent) };
  const names = ['X-Request-Id', ...responseHeaders, ...(route.idempotency === 'kept' ? ['Idempotency-Replayed'] : [])];
  if (route.bytesAreOptional && operation.requestBody !== undefined) operation.requestBody.required = false;
  for (const [status, response] of Object.entries(operation.responses)) {
    if (!status.startsWith('2')) continue;
    // The schema of a stream is that of the data of its events, which generated clients parse.
    const eventData = route.protocol === 'events' ? response.content?.['application/json'] : undefined;
    if (eventData !== undefined) response.content = { 'text/event-stream': eventData };
    if (response.description === undescribed) response.description = successes[status] ?? 'The request succeeded.';
    if (status === '204') delete response.content;
    else if (content !== undefined) response.content = structuredClone(content);
    response.headers = referHeaders(status === '204' ? ['X-Request-Id'] : names);
  }
  if (route.protocol === 'bytes') {
    const whole = operation.responses['200'] as Response;
    operation.responses['206'] = {
      ...whole,
      description: 'The range.',
      headers: { ...whole.headers, ...referHeaders(['Content-Range']) },
    };
  }
  if (route.protocol === 'bytes' || route.protocol === 'cached')
    operation.responses['304'] = { description: 'The cached copy is current.', headers: referHeaders(['ETag']) };
  const added = requestHeaders.map((name) => ({
    name,
    in: 'header',
    required: false,
    description: parameters[name] ?? '',
    schema: text,
  }));
  if (added.length > 0) operation.parameters = [...(operation.parameters ?? []), ...added];
}

/** The text that the document generator writes for a response without a description. */
const undescribed = 'Default Response';

const successes: Record<string, string> = {
  '201': 'The resource was created.',
  '202': 'The request was accepted. The work continues in the background.',
};

const errors: Record<number, { name: string; description: string }> = {
  400: { name: 'BadRequest', description: 'The body is not valid JSON, or a cursor is not valid.' },
  401: { name: 'Unauthorized', description: 'The credential is missing or not valid.' },
  403: { name: 'Forbidden', description: 'The caller is not allowed to do this.' },
  404: { name: 'NotFound', description: 'The resource does not exist, or the caller may not see it.' },
  408: { name: 'RequestTimeout', description: 'The body did not arrive in time.' },
  409: {
    name: 'Conflict',
    description:
      'The current state does not allow the request, or a request with the same `Idempotency-Key` is in progress.',
  },
  412: { name: 'PreconditionFailed', description: 'The resource is not in the required state.' },
  413: { name: 'PayloadTooLarge', description: 'The body is too large.' },
  415: { name: 'UnsupportedMediaType', description: 'The media type or encoding of the body is not supported.' },
  416: { name: 'RangeNotSatisfiable', description: 'The range is outside the contents.' },
  422: {
    name: 'UnprocessableEntity',
    description: 'Members of the request are missing or invalid. `fields` names them.',
  },
  429: { name: 'TooManyRequests', description: 'Too many requests.' },
  500: {
    name: 'InternalServerError',
    description: 'An internal error. The server log has details under the request id.',
  },
  503: { name: 'ServiceUnavailable', description: 'The server is temporarily unavailable.' },
};

function describeErrors(operation: Operation, route: RouteInfo): void {
  for (const status of statusesOf(operation, route)) {
    const name = responseName(route.errors, errors[status]?.name ?? '');
    operation.responses[status] ??= { $ref: `#/components/responses/${name}` } as unknown as Response;
  }
}

/**
 * The component name of a response: `NotFound`, prefixed with the error schema's name if the schema is not the usual
 * one.
 */
function responseName(schema: string, name: string): string {
  return schema === 'Error' ? name : `${schema}${name}`;
}

/** The error statuses that a route may return. All others are described by the ranges 4XX and 5XX. */
function statusesOf({ parameters: taken = [], description = '' }: Operation, route: RouteInfo): number[] {
  const { access, method, protocol, takesJson, takesBytes, idempotency } = route;
  const hasBody = takesJson || takesBytes;
  const isOpen = access.kind === 'public';
  const statuses = [500, 503, ...statusesNamed(description)];
  if (!isOpen) statuses.push(401);
  if (access.kind === 'app' || access.kind === 'developer') statuses.push(403, 429);
  if (taken.some((parameter) => parameter.in === 'path')) statuses.push(404);
  if (method === 'POST' || method === 'PATCH' || method === 'PUT') statuses.push(409);
  if (protocol === 'conditional') statuses.push(412);
  if (protocol === 'bytes') statuses.push(416);
  if (hasBody) statuses.push(408, 413, 415, 422);
  else if (taken.some((parameter) => parameter.in === 'query') || idempotency === 'kept') statuses.push(422);
  if (takesJson) statuses.push(400);
  return statuses.sort((a, b) => a - b);
}

/** The statuses that a description mentions, such as 403 for a signature that has expired. */
function statusesNamed(description: string): number[] {
  const named = description.match(/(?<![\d.,])4\d\d(?![\d.,]\d|\d)/g) ?? [];
  return [...new Set(named.map(Number))].filter((status) => status in errors);
}

function errorResponse(status: number, description: string, schema: string): Response {
  const more = {
    401: ['X-Request-Id', 'WWW-Authenticate'],
    416: ['X-Request-Id', 'Content-Range'],
    429: ['X-Request-Id', 'Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'],
    409: ['X-Request-Id', 'Retry-After'],
    503: ['X-Request-Id', 'Retry-After'],
  }[status];
  return {
    description,
    headers: referHeaders(more ?? ['X-Request-Id']),
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
  };
}

function referHeaders(names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** The data of the last event of a recorded stream. */
function lastEventData(stream: string): unknown {
  const data = stream.split('\n').findLast((line) => line.startsWith('data: '));
  return data === undefined ? undefined : JSON.parse(data.slice('data: '.length));
}

/** Adds references to the operation's examples. The path for developers uses the examples of its `/api/v1` twin. */
function addExamples(
  operation: Operation,
  examples: Record<string, OperationExample>,
  components: Record<string, unknown>,
): void {
  const twin = twinOf(operation.operationId);
  const { path = {}, variants = {}, ...main } = examples[twin] ?? {};
  for (const parameter of operation.parameters ?? []) {
    const { in: place, name, schema } = parameter;
    if (place === 'path' && name in path) parameter.example = path[name];
    if (place === 'query') parameter.example = exampleOfQuery(twin, name, schema);
  }
  for (const [name, { request, responses = {}, ...about }] of Object.entries({ example: main, ...variants })) {
    const refer = (media: Media | undefined, body: string, value: unknown) => {
      if (media === undefined || value === undefined) return;
      const component = name === 'example' ? twin + body : `${twin}${body}.${name}`;
      components[component] = { ...about, value };
      media.examples = { ...media.examples, [name]: { $ref: `#/components/examples/${component}` } };
    };
    refer(operation.requestBody?.content['application/json'], 'Request', request);
    for (const [status, value] of Object.entries(responses)) {
      const { content } = operation.responses[status] ?? {};
      const stream = typeof value === 'string' ? content?.['text/event-stream'] : undefined;
      if (stream === undefined) refer(content?.['application/json'], status, value);
      else refer(stream, status, lastEventData(value as string));
    }
  }
}
