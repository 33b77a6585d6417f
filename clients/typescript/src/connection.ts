import { QuarryError, readError } from './errors.ts';
import type { Session } from './session.ts';
import { EventStream, readEvents } from './streams.ts';
import { pause } from './wait.ts';

export type { EventStream };

export type ConnectOptions = {
  /** Where the server is, such as `http://127.0.0.1:8080`. */
  baseUrl: string;
  /** A secret key (`sk_…`) for your own server, or a publishable key (`pk_…`) with `session` or `token`. */
  key?: string | undefined;
  /** An access token, a personal token or a developer token, or a function that returns the current one. */
  token?: string | (() => string | Promise<string>) | undefined;
  /** A user's session, which renews its token by itself. It needs the publishable `key`. */
  session?: Session | undefined;
  /** The app (`dap_…`) that a developer token acts in. */
  app?: string | undefined;
  /** How long one attempt may take, in milliseconds. Default 60,000. */
  timeoutMs?: number | undefined;
  /** How often a request is repeated where that is safe. Default 2. */
  retries?: number | undefined;
  /** In place of the runtime's `fetch`. */
  fetch?: typeof fetch | undefined;
};

export type CallOptions = {
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  retries?: number | undefined;
  /** Names this request, so that repeating it later, even from another process, has no second effect. */
  idempotencyKey?: string | undefined;
  headers?: Record<string, string | undefined> | undefined;
  query?: object | undefined;
};

export type Request = {
  method: string;
  path: string;
  query?: object | undefined;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is, with its type. */
  bytes?: { data: Blob | ReadableStream<Uint8Array>; type: string } | undefined;
  /** Whether the operation takes `Idempotency-Key`. */
  keyed?: boolean;
};

/** A page of a list when awaited; all entries of all pages with `for await`. */
export type Pages<Item, Page> = PromiseLike<Page> & AsyncIterable<Item>;

const retriesDefault = 2;
const timeoutMsDefault = 60_000;
/** A longer wait than this is the caller's decision. */
const waitMsMax = 30_000;
/** Statuses of requests that the server has not processed. */
const refused = new Set([429, 503]);
/** Statuses of requests that may have been processed. */
const unclear = new Set([408, 500, 502, 504]);

/** In a browser, an address may be relative to the page. Elsewhere, such a text is a mistake, like a variable that is not set. */
function checkAddress(address: string): string {
  try {
    new URL(address, (globalThis as { location?: { href: string } }).location?.href);
  } catch {
    throw new TypeError(`baseUrl must be an address such as http://127.0.0.1:8080, not ${JSON.stringify(address)}.`);
  }
  return address;
}

/** Sends requests: authentication, deadlines, repeats, errors. Each group of operations takes one. */
export class Connection {
  readonly baseUrl: string;
  readonly #options: ConnectOptions;
  readonly #fetch: typeof fetch;

  constructor(options: ConnectOptions) {
    this.baseUrl = checkAddress(options.baseUrl).replace(/\/+$/, '');
    this.#options = options;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    // Without repeats: a refresh token must not be sent twice.
    options.session?.attach((method, path, body) => this.#json({ method, path, body }, { retries: 0 }, false));
  }

  get<T>(path: string, query?: object, options?: CallOptions): Promise<T> {
    return this.#json({ method: 'GET', path, query }, options);
  }

  send<T>(method: string, path: string, body?: unknown, options?: CallOptions): Promise<T> {
    return this.#json({ method, path, body }, options);
  }

  /** A POST that has one effect, however often it is sent. */
  postOnce<T>(path: string, body?: unknown, options?: CallOptions): Promise<T> {
    return this.#json({ method: 'POST', path, body, keyed: true }, options);
  }

  list<Item, Page>(path: string, query?: object, options?: CallOptions): Pages<Item, Page> {
    type AnyPage = {
      data: Item[];
      page?: number;
      has_next?: boolean;
      after_cursor?: string;
      next_cursor?: string | null;
    };
    const load = (next: object) => this.get<AnyPage>(path, { ...query, ...next }, options);
    return {
      // biome-ignore lint/suspicious/noThenProperty: a list is awaited for its first page
      then: (done, failed) => (load({}) as Promise<Page>).then(done, failed),
      async *[Symbol.asyncIterator]() {
        for (let next: object | undefined = {}; next !== undefined; ) {
          const found: AnyPage = await load(next);
          yield* found.data;
          if (found.has_next) next = { page: (found.page ?? 1) + 1 };
          else if (found.after_cursor) next = { after_cursor: found.after_cursor };
          else next = found.next_cursor ? { cursor: found.next_cursor } : undefined;
        }
      },
    };
  }

  /** Server-Sent Events. A broken connection is opened again after the last event received. */
  stream<Data>(path: string, query?: object, options: CallOptions = {}): EventStream<Data> {
    const open = async (lastEventId: string | undefined, signal: AbortSignal) => {
      const headers = { ...options.headers, accept: 'text/event-stream', 'last-event-id': lastEventId };
      const response = await this.request({ method: 'GET', path, query }, { ...options, headers, signal });
      return readEvents(response.body as ReadableStream<Uint8Array>);
    };
    return new EventStream<Data>(open, options.signal);
  }

  /** The response, once its status is a success. The body has not been read, and has no deadline. */
  async request(request: Request, options: CallOptions = {}, authenticates = true): Promise<Response> {
    const retries = options.retries ?? this.#options.retries ?? retriesDefault;
    const key = options.idempotencyKey ?? (request.keyed && retries > 0 ? crypto.randomUUID() : undefined);
    const repeatable = isRepeatable(request, options, key);
    let refusedToken: string | undefined;
    for (let attempt = 0; ; attempt++) {
      const token = authenticates ? await this.#token(refusedToken) : undefined;
      const outcome = await this.#attempt(request, options, { token, key });
      if (outcome instanceof Response) return outcome;
      // The server did nothing: the token had expired.
      if (outcome.status === 401 && this.#options.session && token !== undefined && refusedToken === undefined) {
        refusedToken = token;
        continue;
      }
      const { status = 0 } = outcome;
      // A repeated DELETE whose first response was lost.
      if (attempt > 0 && request.method === 'DELETE' && status === 404) return new Response(null, { status: 204 });
      const again = refused.has(status) || outcome.code === 'request_in_progress' || (repeatable && isUnclear(outcome));
      const waitMs = outcome.retryAfterMs ?? Math.random() * 250 * 2 ** attempt;
      if (!again || attempt >= retries || waitMs > waitMsMax) throw outcome;
      await pause(waitMs, options.signal);
    }
  }

  async #json<T>(request: Request, options: CallOptions = {}, authenticates = true): Promise<T> {
    const response = await this.request({ ...request, query: request.query ?? options.query }, options, authenticates);
    const text = await response.text().catch((cause) => {
      throw options.signal?.aborted
        ? options.signal.reason
        : new QuarryError('unreachable', 'The response broke off.', { cause });
    });
    if (text === '') return undefined as T;
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      throw new QuarryError('bad_response', 'The server did not return JSON. Check the base URL.', { cause });
    }
  }

  /** One attempt: a successful response, or why there is none. Throws only the reason of the caller's own signal. */
  async #attempt(
    { method, path, query, body, bytes }: Request,
    options: CallOptions,
    { token, key }: { token: string | undefined; key: string | undefined },
  ): Promise<Response | QuarryError> {
    const headers = new Headers();
    if (this.#options.key !== undefined) headers.set('x-api-key', this.#options.key);
    if (this.#options.app !== undefined) headers.set('x-app', this.#options.app);
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    if (key !== undefined) headers.set('idempotency-key', key);
    const asked = queryText(query);
    // Without this, the server ignores a parameter that it does not have, such as a misspelt filter.
    if (asked !== '') headers.set('prefer', 'handling=strict');
    if (body !== undefined) headers.set('content-type', 'application/json');
    if (bytes !== undefined) headers.set('content-type', bytes.type);
    for (const [name, value] of Object.entries(options.headers ?? {}))
      if (value !== undefined) headers.set(name, value);

    const timeoutMs = options.timeoutMs ?? this.#options.timeoutMs ?? timeoutMsDefault;
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), timeoutMs);
    const signal = options.signal ? AbortSignal.any([options.signal, deadline.signal]) : deadline.signal;
    try {
      const sent = bytes?.data ?? (body === undefined ? null : JSON.stringify(body));
      const init: RequestInit & { duplex?: 'half' } = { method, headers, body: sent, signal };
      if (sent instanceof ReadableStream) init.duplex = 'half';
      const response = await this.#fetch(`${this.baseUrl}${path}${asked}`, init);
      return response.ok ? response : await readError(response);
    } catch (cause) {
      options.signal?.throwIfAborted();
      if (deadline.signal.aborted)
        return new QuarryError('timed_out', `The server did not respond within ${timeoutMs} ms.`, { cause });
      return new QuarryError('unreachable', `${this.baseUrl} cannot be reached.`, { cause });
    } finally {
      clearTimeout(timer);
    }
  }

  async #token(refusedToken: string | undefined): Promise<string | undefined> {
    const { session, token } = this.#options;
    if (session !== undefined) return session.accessToken(refusedToken);
    return typeof token === 'function' ? token() : token;
  }
}

/** Whether a second attempt has no second effect, even if the first one took effect. */
function isRepeatable({ method, bytes }: Request, { headers = {} }: CallOptions, key: string | undefined): boolean {
  if (bytes?.data instanceof ReadableStream) return false;
  if (key !== undefined) return true;
  // A conditional write that took effect refuses its own repeat.
  if (Object.keys(headers).some((name) => /^if-/i.test(name))) return method === 'GET';
  return method === 'GET' || method === 'PUT' || method === 'DELETE';
}

function isUnclear({ status, code }: QuarryError): boolean {
  return status === undefined ? code === 'unreachable' || code === 'timed_out' : unclear.has(status);
}

function queryText(query: object | undefined): string {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  return pairs.length === 0
    ? ''
    : `?${new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

/** A path with its parameters encoded. The parts of an array stay separate segments. */
export function path(texts: TemplateStringsArray, ...values: (string | string[])[]): string {
  return texts.reduce((whole, text, at) => whole + [values[at - 1] ?? []].flat().map(segment).join('/') + text);
}

/** Runtimes resolve dots in paths, even encoded ones, so the request would go elsewhere. */
function segment(value: string): string {
  if (value === '' || value === '.' || value === '..') throw new TypeError(`"${value}" cannot be part of a path.`);
  return encodeURIComponent(value);
}
