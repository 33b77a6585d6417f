import type { Operations } from './generated.ts';

/** An operation by method and path, as in openapi.json. */
export type OperationName = keyof Operations;
export type Result<K extends OperationName> = Operations[K]['result'];
export type Item<K extends OperationName> = Result<K> extends { data: (infer T)[] } ? T : never;
type Part<K extends OperationName, P extends 'path' | 'query' | 'body'> = Operations[K][P];
type Nothing = Record<never, never>;
type Optional<T> = undefined extends T ? true : Nothing extends T ? true : false;

/** The input of an operation. Parts without required members are optional. */
type Input<K extends OperationName> = {
  [P in 'path' | 'query' | 'body' as Optional<Part<K, P>> extends true ? never : P]: Part<K, P>;
} & {
  [P in 'path' | 'query' | 'body' as Optional<Part<K, P>> extends true ? P : never]?: Part<K, P>;
} & { headers?: Record<string, string>; signal?: AbortSignal };

export type Arguments<K extends OperationName> = Nothing extends Input<K> ? [input?: Input<K>] : [input: Input<K>];

/** The API's error, or a network error (`status` 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly fields: { field: string; message: string }[];
  readonly requestId: string | undefined;

  constructor(
    status: number,
    error: { code: string; message: string; fields?: { field: string; message: string }[] },
    requestId?: string,
  ) {
    super(error.message);
    this.name = 'ApiError';
    this.status = status;
    this.code = error.code;
    this.fields = error.fields ?? [];
    this.requestId = requestId;
  }
}

/** `include_paths.0` is a part of `include_paths`. */
export function isPartOf(field: string, name: string): boolean {
  return field === name || field.startsWith(`${name}.`);
}

/** The session and the place (app, sandbox, org) of all requests. Only the session's provider sets it. */
export const connection: {
  csrf: string | undefined;
  app: string | undefined;
  sandbox: string | undefined;
  onSignedOut: () => void;
} = { csrf: undefined, app: undefined, sandbox: undefined, onSignedOut: () => {} };

/** The headers of a request. Developer paths contain the app and cover all of its sandboxes. */
export function sessionHeaders(path: string): Record<string, string> {
  const csrf = connection.csrf === undefined ? {} : { 'x-quarry-csrf': connection.csrf };
  if (!path.startsWith('/api/')) return csrf;
  return {
    ...csrf,
    ...(connection.app === undefined ? {} : { 'x-app': connection.app }),
    ...(connection.sandbox === undefined ? {} : { 'x-sandbox': connection.sandbox }),
  };
}

/** Calls an operation and returns its body. Throws ApiError for everything else. */
export async function call<K extends OperationName>(operation: K, ...[input]: Arguments<K>): Promise<Result<K>> {
  return (await exchange(operation, ...([input] as Arguments<K>))).data;
}

/** Like `call`, but also returns the ETag of the response. */
export async function exchange<K extends OperationName>(
  operation: K,
  ...[input]: Arguments<K>
): Promise<{ data: Result<K>; etag: string | undefined }> {
  const { path, query, body, headers, signal } = (input ?? {}) as {
    path?: Record<string, string>;
    query?: Record<string, unknown>;
    body?: unknown;
    headers?: Record<string, string>;
    signal?: AbortSignal;
  };
  const [method = 'GET', template = '/'] = operation.split(' ');
  const given = {
    ...sessionHeaders(template),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...headers,
  };
  const response = await send(urlOf(template, path, query), {
    method,
    // An empty one leaves out what the session would send.
    headers: Object.fromEntries(Object.entries(given).filter(([, value]) => value !== '')),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await response.text();
  const etag = response.headers.get('etag') ?? undefined;
  if (response.ok) return { data: (text === '' ? undefined : JSON.parse(text)) as Result<K>, etag };
  throw readError(response.status, text, response.headers.get('x-request-id') ?? undefined);
}

/** Downloads what an operation returns as bytes. Reports how many have arrived; a broken connection is an error. */
export async function download(
  operation: OperationName,
  path: Record<string, string>,
  { signal, onBytes }: { signal: AbortSignal; onBytes: (bytes: number) => void },
): Promise<Blob> {
  const template = operation.split(' ')[1] ?? '/';
  const response = await send(urlOf(template, path), { headers: sessionHeaders(template), signal });
  if (!response.ok || response.body === null) throw readError(response.status, await response.text());
  let arrived = 0;
  const counting = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      arrived += chunk.byteLength;
      onBytes(arrived);
      controller.enqueue(chunk);
    },
  });
  return await new Response(response.body.pipeThrough(counting)).blob();
}

/** Parses an error response. Notifies the session's provider when the session has ended. */
export function readError(status: number, text: string, requestId?: string): ApiError {
  if (status === 401 && connection.csrf !== undefined) connection.onSignedOut();
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string; fields?: [] } };
    return new ApiError(status, error, requestId);
  } catch {
    const message = `The server returned ${status} with an unknown response.`;
    return new ApiError(status, { code: 'internal_error', message }, requestId);
  }
}

export const unreachable = () =>
  new ApiError(0, {
    code: 'unavailable',
    message: 'Cannot reach the server. Check that it is running, then try again.',
  });

async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw unreachable();
  }
}

/** The URL of an operation. Escapes path parameters and the query; a list repeats its name. */
export function urlOf(
  template: string,
  path: Record<string, string> = {},
  query: Record<string, unknown> = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === '') continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ''));
  const text = search.toString();
  return text === '' ? filled : `${filled}?${text}`;
}
