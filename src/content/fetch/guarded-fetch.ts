import { isUtf8 } from 'node:buffer';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Agent, request } from 'undici';
import { callAfter } from '../../lib/clock.ts';
import { lazyPackage } from '../../lib/lazy-package.ts';
import { type Timeouts, usualTimeouts } from '../../lib/timeouts.ts';
import { currentTraceparent, noteAttributes, trace } from '../../tracing/trace.ts';
import { parseAllowList } from './allow-list.ts';
import { checkUrl } from './check-url.ts';
import { guardedConnections, guardedConnector } from './connector.ts';
import { asFetchError, FetchError } from './errors.ts';
import { type RequestLimits, RequestQueue } from './request-queue.ts';
import { createSystemResolver, type Resolver, resolveFor } from './resolver.ts';

export type FetcherOptions = {
  /** CIDRs, addresses and host names to allow beyond the public internet (QUARRY_FETCH_ALLOW). */
  allow?: readonly string[];
  /**
   * A contact for site owners, an e-mail address or URL, which becomes part of the User-Agent (QUARRY_FETCH_CONTACT).
   */
  contact?: string | undefined;
  /** Replaces the system's resolver in tests. */
  resolve?: Resolver;
  connectTimeoutMs?: number;
  timeouts?: Readonly<Timeouts>;
  turns?: RequestLimits;
};

type FetchRequest = {
  /** The requesting app: apps share this process's requests, in total and to one host. */
  lane?: string;
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  /** `manual` returns a 3xx unchanged. */
  redirect?: 'follow' | 'manual';
  /** The maximum size of the body as received, compressed or not. */
  bytesMax?: number;
  /** The time limit of the whole exchange: the wait for a turn, redirects and the body. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Called before each redirect, with a URL that is not checked yet; `false` ends the fetch with `stopped` set. */
  mayFollow?: (url: URL) => boolean | Promise<boolean>;
};

export type FetchResponse = {
  status: number;
  /** Header names are in lower case. The values of a repeated header are joined with ", ". */
  headers: Record<string, string>;
  /** The URL of the response, after redirects. */
  url: string;
  redirects: number;
  /** A redirect target that `mayFollow` refused. `body` is then the body of the redirect. */
  stopped: string | undefined;
  /**
   * The bounded body as received, with its Content-Encoding. Throws FetchError. Read it to the end, or call
   * `discard`.
   */
  body: AsyncIterable<Uint8Array>;
  bytes(): Promise<Uint8Array>;
  discard(): void;
};

export type Fetcher = {
  readonly userAgent: string;
  /** Resolves when the final response's headers have arrived. Throws FetchError. */
  fetch(url: string, options?: FetchRequest): Promise<FetchResponse>;
  /**
   * Opens a connection for the renderer's proxy, with the same checks and in a turn of its app. The connection ends
   * with `signal`. Throws FetchError.
   */
  connect(authority: string, options: { lane: string; signal: AbortSignal }): Promise<Socket>;
  /** Whether the operator named this host or address (QUARRY_FETCH_ALLOW). */
  isNamed(url: URL): boolean;
  /** Why `url` is unsafe by itself, given this fetcher's allow list. */
  check(url: string): ReturnType<typeof checkUrl>;
  close(): Promise<void>;
};

const fetchLimits = {
  bytesMax: 20 * 1024 * 1024,
  connectTimeoutMs: 10_000,
  redirectsMax: 10,
  headerBytesMax: 64 * 1024,
  turns: { requestsMax: 4_000, ofAppMax: 1_000, ofHostMax: 1_000, ofAppAtHostMax: 250 },
};

/** The encodings that the parser processes can decode, in order of preference. */
const acceptEncoding = 'gzip, br, zstd, deflate';

/** The only way in which this process requests URLs that others chose. */
export function createFetcher(options: FetcherOptions = {}): Fetcher {
  const { timeouts = usualTimeouts } = options;
  const allow = parseAllowList(options.allow ?? []);
  const bounds = options.turns ?? fetchLimits.turns;
  const turns = new RequestQueue(bounds);
  const connectTimeoutMs = options.connectTimeoutMs ?? fetchLimits.connectTimeoutMs;
  const userAgent = `Quarry/1.0 (${options.contact === undefined ? 'self-hosted crawler' : `+${options.contact}`})`;
  const guard = { resolve: options.resolve ?? createSystemResolver(), allow, connectTimeoutMs };
  const openConnection = guardedConnections(guard);
  const isNamed = ({ hostname }: URL) =>
    allow.allowsHost(hostname) || allow.allowsAddress(hostname.replace(/^\[|\]$/g, ''));
  const hops = createHops({ guard, userAgent, isNamed, connections: bounds.ofHostMax });

  return {
    userAgent,
    isNamed,
    check: (url) => checkUrl(url, allow),
    close: hops.close,

    async connect(authority, { lane, signal }) {
      const url = safe(`https://${authority}/`);
      const endTurn = await turns.take(lane, url.host, signal);
      try {
        const socket = await resolveFor(lane, () => openConnection(url.hostname, Number(url.port || 443), signal));
        return socket.once('close', endTurn);
      } catch (error) {
        endTurn();
        throw asFetchError(error, false);
      }
    },

    /** The span names only the host: paths and queries often contain credentials. */
    fetch(address, wanted = {}) {
      const method = wanted.method ?? 'GET';
      return trace(`fetch ${method}`, { kind: 'client', attributes: { 'http.request.method': method } }, () =>
        follow({ turns, hops, safe, timeoutMs: timeouts.fetchMs }, address, wanted),
      );
    },
  };

  function safe(address: string): URL {
    const checked = checkUrl(address, allow);
    if (!checked.ok) throw new FetchError('unsafe_url', `The URL ${checked.problem}`);
    return checked.url;
  }
}

type FollowDeps = {
  turns: RequestQueue;
  hops: ReturnType<typeof createHops>;
  /** Throws FetchError for an unsafe URL. */
  safe(address: string): URL;
  timeoutMs: number;
};

/** Sends the request, and further ones while the responses redirect. */
async function follow(
  { turns, hops, safe, timeoutMs }: FollowDeps,
  address: string,
  wanted: FetchRequest,
): Promise<FetchResponse> {
  const deadline = new Deadline(wanted.timeoutMs ?? timeoutMs, wanted.signal);
  let response: RawResponse | undefined;
  try {
    let url = safe(address);
    let hop: FetchRequest = wanted;
    noteAttributes({ 'server.address': url.hostname });
    deadline.onEnd(await turns.take(wanted.lane ?? '', url.host, deadline.signal));
    for (let redirects = 0; ; redirects++) {
      response = await deadline.race(resolveFor(wanted.lane ?? '', () => hops.request(url, hop, deadline.signal)));
      const target = wanted.redirect === 'manual' ? undefined : redirectTarget(response, url);
      noteAttributes({ 'http.response.status_code': response.statusCode });
      const refused = target !== undefined && wanted.mayFollow && !(await wanted.mayFollow(target));
      if (target === undefined || refused)
        return readResponse(response, url, redirects, refused ? target.href : undefined, wanted, deadline);
      drop(response.body);
      if (redirects >= fetchLimits.redirectsMax)
        throw new FetchError('too_many_redirects', `The URL redirects more than ${fetchLimits.redirectsMax} times.`);
      const next = safe(target.href);
      hop = afterRedirect(hop, response.statusCode, next.origin !== url.origin);
      url = next;
    }
  } catch (error) {
    deadline.end();
    // An unread body would hold its connection for as long as the host likes.
    if (response !== undefined) drop(response.body);
    throw asFetchError(error, deadline.passed);
  }
}

type HopOptions = {
  guard: Parameters<typeof guardedConnector>[0];
  userAgent: string;
  isNamed(url: URL): boolean;
  /** To one host. */
  connections: number;
};

/** Single requests, which follow no redirect. */
function createHops({ guard, userAgent, isNamed, connections }: HopOptions) {
  let agent: Agent | undefined;
  // A separate agent: the process-wide one may use proxy variables from the environment.
  const createAgent = () =>
    new (undici().Agent)({
      connect: guardedConnector(guard),
      connections,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 10_000,
      maxHeaderSize: fetchLimits.headerBytesMax,
    });

  /** Sent only to hosts that the operator named: to others, the ids would reveal which requests belong together. */
  function traceHeaders(url: URL): Record<string, string> {
    const traceparent = currentTraceparent();
    return traceparent !== undefined && isNamed(url) ? { traceparent } : {};
  }

  return {
    close: async () => agent?.destroy(),

    request(url: URL, hop: FetchRequest, signal: AbortSignal): Promise<RawResponse> {
      agent ??= createAgent();
      return undici().request(url.href.replace(/#.*$/s, ''), {
        dispatcher: agent,
        method: hop.method ?? 'GET',
        headers: {
          'user-agent': userAgent,
          accept: '*/*',
          'accept-encoding': acceptEncoding,
          ...traceHeaders(url),
          ...lowerCased(hop.headers),
        },
        body: hop.body ?? null,
        signal,
        // The deadline already bounds the whole exchange.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
    },
  };
}

const undici = lazyPackage<typeof import('undici')>('undici');

type RawResponse = Awaited<ReturnType<typeof request>>;

function redirectTarget(response: RawResponse, base: URL): URL | undefined {
  if (![301, 302, 303, 307, 308].includes(response.statusCode)) return undefined;
  const raw = [response.headers.location].flat()[0];
  if (raw === undefined) return undefined;
  const location = decodeHeader(raw);
  if (!URL.canParse(location, base.href))
    throw new FetchError('bad_response', 'The URL redirects to an invalid address.');
  return new URL(location, base.href);
}

/** Header bytes arrive as Latin-1. Those that are valid UTF-8 are decoded as UTF-8. */
function decodeHeader(value: string): string {
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : value;
}

/**
 * The request for the next hop. It has no body after a changed method. For another origin, it has neither the body
 * nor any of the caller's headers, because it is unknown which of them are secret: many APIs have their own key
 * header.
 */
function afterRedirect(hop: FetchRequest, status: number, otherOrigin: boolean): FetchRequest {
  const next = { ...hop };
  const method = hop.method ?? 'GET';
  if ((status === 303 && method !== 'HEAD') || ((status === 301 || status === 302) && method === 'POST')) {
    next.method = 'GET';
    delete next.body;
    next.headers = withoutHeaders(next.headers, ['content-type', 'content-length', 'content-encoding']);
  }
  if (otherOrigin) {
    delete next.body;
    delete next.headers;
  }
  return next;
}

function withoutHeaders(headers: Record<string, string> = {}, names: string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name.toLowerCase())));
}

function lowerCased(headers: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function readResponse(
  response: RawResponse,
  url: URL,
  redirects: number,
  stopped: string | undefined,
  wanted: FetchRequest,
  deadline: Deadline,
): FetchResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined) headers[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
  const bytesMax = wanted.bytesMax ?? fetchLimits.bytesMax;
  const bodiless = wanted.method === 'HEAD' || response.statusCode === 204 || response.statusCode === 304;
  if (!bodiless && Number(headers['content-length']) > bytesMax) {
    drop(response.body);
    throw tooLarge(bytesMax);
  }
  const body = boundedBody(response.body, bytesMax, deadline);
  return {
    status: response.statusCode,
    headers,
    url: url.href,
    redirects,
    stopped,
    body,
    bytes: async () => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of body) chunks.push(chunk);
      return Buffer.concat(chunks);
    },
    discard: () => {
      deadline.end();
      drop(response.body);
    },
  };
}

async function* boundedBody(stream: Readable, bytesMax: number, deadline: Deadline): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      bytes += chunk.byteLength;
      if (bytes > bytesMax) throw tooLarge(bytesMax);
      yield chunk;
    }
  } catch (error) {
    throw asFetchError(error, deadline.passed);
  } finally {
    deadline.end();
    drop(stream);
  }
}

function tooLarge(bytesMax: number): FetchError {
  return new FetchError('too_large', `The response is larger than ${bytesMax} bytes.`);
}

/** Destroys an unread body. Its late errors are ignored. */
function drop(stream: Readable): void {
  stream.on('error', () => {});
  stream.destroy();
}

/** One deadline for many steps, combined with the caller's own signal. */
class Deadline {
  passed = false;
  readonly #controller = new AbortController();
  readonly #endTimer: () => void;
  #endTurn = (): void => {};
  readonly #outer: AbortSignal | undefined;
  readonly #abort = (): void => this.#controller.abort();

  constructor(timeoutMs: number, outer: AbortSignal | undefined) {
    this.#outer = outer;
    this.#endTimer = callAfter(timeoutMs, () => {
      this.passed = true;
      this.#controller.abort();
    });
    if (outer?.aborted) this.#controller.abort();
    else outer?.addEventListener('abort', this.#abort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** undici notices a signal only when it is connected. This rejects immediately. */
  async race(response: Promise<RawResponse>): Promise<RawResponse> {
    let onAbort = (): void => {};
    const aborted = new Promise<never>((_resolve, reject) => {
      onAbort = () =>
        reject(
          new FetchError(
            this.passed ? 'timeout' : 'aborted',
            this.passed ? 'The response took too long.' : 'The request was aborted.',
          ),
        );
      if (this.signal.aborted) onAbort();
      this.signal.addEventListener('abort', onAbort, { once: true });
    });
    // The other promise may still reject later, or return a body that nothing reads.
    response.then(
      (late) => this.signal.aborted && drop(late.body),
      () => {},
    );
    try {
      return await Promise.race([response, aborted]);
    } finally {
      this.signal.removeEventListener('abort', onAbort);
    }
  }

  onEnd(endTurn: () => void): void {
    this.#endTurn = endTurn;
  }

  end(): void {
    this.#endTimer();
    this.#endTurn();
    this.#outer?.removeEventListener('abort', this.#abort);
  }
}
