import { resolve } from 'node:path';
import type { Dispatcher } from 'undici';
import { findCredentialsFile } from '../../boot/credentials-file.ts';
import { type Config, choosesDataDir, readConfig } from '../../config/config.ts';
import { isLoopback } from '../../config/loopback.ts';
import { defined } from '../../lib/defined.ts';
import { newUuid } from '../../lib/ids.ts';
import { lazyPackage } from '../../lib/lazy-package.ts';
import { ApiError, UsageError } from '../errors.ts';
import { findId } from './names.ts';
import { findProfile } from './profile.ts';

const undici = lazyPackage<typeof import('undici')>('undici');

/**
 * The server and credential of a command. Absent members come from the environment, then from the profile that
 * `quarry login` wrote, then from the data directory.
 */
export type ConnectionOptions = {
  url?: string;
  key?: string;
  token?: string;
  app?: string;
  sandbox?: string;
  dataDir?: string;
  /** What the ids of the requests begin with, by which the server's log shows them. */
  requestIds?: string;
};

type Query = Record<string, string | number | undefined>;

type SendOptions = {
  query?: Query;
  /** Sent as JSON. */
  body?: unknown;
};

export type ServerEvent = { id: string | undefined; event: string; data: unknown };

/** The app and sandbox that a developer token acts in. */
type ChosenApp = { app?: string; sandbox?: string };

/** The server, the kind of credential, and the source of both. */
type Target = {
  url: string;
  kind: 'user' | 'key' | 'developer';
  from: 'options' | 'environment' | 'profile' | 'data directory';
};

/** Sends requests to one server with one credential. */
export type Client = {
  target: Target;
  /** The ids of the app and sandbox, which may have been given by name. */
  scope(): Promise<ChosenApp>;
  /** Returns the JSON of the response; undefined when it has no body. Throws ApiError. */
  send<T>(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, options?: SendOptions): Promise<T>;
  /** Streams a body. `bytes` is its length where that is known. */
  upload<T>(path: string, upload: Upload): Promise<T>;
  /** One request of a protocol in headers. Throws ApiError. */
  exchange(
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    request: { headers: Record<string, string>; body?: AsyncIterable<Uint8Array> },
  ): Promise<{ headers: Record<string, string | undefined> }>;
  /** The events of a stream until the server ends it; with an id, those after that event. */
  events(path: string, options?: { query?: Query; lastEventId?: string | undefined }): AsyncGenerator<ServerEvent>;
  /** Sends JSON-RPC to the MCP endpoint, and yields the messages of the response. Throws ApiError. */
  converse(body: string, headers: Record<string, string>, signal: AbortSignal): AsyncGenerator<unknown>;
  /** The bytes of a response that is not JSON. Throws ApiError. */
  readBytes(path: string): Promise<AsyncIterable<Uint8Array>>;
  /** The bytes behind a signed URL, requested without a credential. */
  download(url: string): Promise<AsyncIterable<Uint8Array>>;
};

type Opened = {
  headers?: Record<string, string>;
  body?: string | AsyncIterable<Uint8Array>;
  /** Cancels this request. */
  cancel?: AbortSignal;
};

type Upload = {
  headers: Record<string, string>;
  query?: Query;
  body: AsyncIterable<Uint8Array>;
  bytes: number | undefined;
};

/** A client for these options. Throws UsageError when the server or credential cannot be determined. */
export function connect(options: ConnectionOptions, signal: AbortSignal): Client {
  const resolved = resolveTarget(options, readConfig());
  const within = (scope: ChosenApp) => createClient(resolved, async () => scope, signal);
  let found: Promise<ChosenApp> | undefined;
  return createClient(resolved, () => (found ??= findScope(resolved.scope, within)), signal);
}

/** Looks up the ids of names. The sandbox is looked up within the app. */
async function findScope({ app, sandbox }: ChosenApp, within: (scope: ChosenApp) => Client): Promise<ChosenApp> {
  const found: ChosenApp = {};
  if (app !== undefined) found.app = await findId(within({}), 'app', app);
  if (sandbox !== undefined) found.sandbox = await findId(within(found), 'sandbox', sandbox);
  return found;
}

function createClient(resolved: Resolved, scope: () => Promise<ChosenApp>, signal: AbortSignal): Client {
  const { base, target } = resolved;
  const open = createOpen(resolved, scope, signal);
  return {
    target,
    scope,
    async send<T>(method: string, path: string, { query, body }: SendOptions = {}) {
      const json = body === undefined ? {} : { 'content-type': 'application/json' };
      const more = body === undefined ? {} : { body: JSON.stringify(body) };
      return readResponse<T>(await open(method, withQuery(path, query), { headers: json, ...more }));
    },

    async upload<T>(path: string, upload: Upload) {
      const length = upload.bytes === undefined ? {} : { 'content-length': String(upload.bytes) };
      const response = await open('POST', withQuery(path, upload.query), {
        headers: { ...upload.headers, ...length },
        body: upload.body,
      });
      return readResponse<T>(response);
    },

    async exchange(method, path, request) {
      const response = await open(method, path, request);
      await readResponse(response);
      return { headers: response.headers as Record<string, string | undefined> };
    },

    async *events(path, { query, lastEventId } = {}) {
      const resumed = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
      const headers = { ...resumed, accept: 'text/event-stream' };
      yield* readEvents(await bodyOf(await open('GET', withQuery(path, query), { headers })));
    },

    async *converse(body, given, cancel) {
      const headers = { ...given, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
      try {
        yield* readMessages(await open('POST', '/mcp', { headers, body, cancel }));
      } catch (error) {
        throw describeConnectionError(error, base.origin);
      }
    },

    readBytes: async (path) => bodyOf(await open('GET', path, {})),

    async download(url: string) {
      const response = await undici()
        .request(url, { signal, ...noTimeouts })
        .catch((error: unknown) => {
          throw describeConnectionError(error, new URL(url).origin);
        });
      return bodyOf(response);
    },
  };
}

/** Sends one request, and returns its response of any status. Throws ApiError if there is none. */
type Open = (method: string, path: string, request: Opened) => Promise<Dispatcher.ResponseData>;

function createOpen(
  { base, credential, developer, requestIds }: Resolved,
  scope: () => Promise<ChosenApp>,
  signal: AbortSignal,
): Open {
  const root = base.pathname.replace(/\/$/, '');
  return async (method, path, { headers: given, body, cancel }) => {
    const isForDeveloper = path.startsWith('/protected/');
    const { app, sandbox } = isForDeveloper ? {} : await scope();
    const headers = {
      ...(isForDeveloper ? (developer ?? credential) : credential),
      ...defined({ 'x-app': app, 'x-sandbox': sandbox }),
      ...(path.includes('?') ? { prefer: 'handling=strict' } : {}),
      ...(requestIds === undefined ? {} : { 'x-request-id': `${requestIds}${newUuid()}` }),
      ...given,
    };
    try {
      // Origin and path are separate, so that a key such as ".." reaches the server unchanged.
      return await undici()
        .getGlobalDispatcher()
        .request({
          origin: base.origin,
          path: `${root}${isForDeveloper || path === '/mcp' ? '' : '/api/v1'}${path}`,
          method: method as Dispatcher.HttpMethod,
          signal: cancel === undefined ? signal : AbortSignal.any([signal, cancel]),
          ...noTimeouts,
          headers,
          body: (body ?? null) as string | null,
        });
    } catch (error) {
      throw describeConnectionError(error, base.origin);
    }
  };
}

/** The messages in a response of the MCP endpoint. Throws ApiError. */
async function* readMessages({ statusCode, headers, body }: Dispatcher.ResponseData): AsyncGenerator<unknown> {
  if (String(headers['content-type']).startsWith('text/event-stream')) {
    for await (const { data } of readEvents(body)) yield data;
    return;
  }
  const text = await body.text();
  // The protocol's own errors are messages, whatever the status.
  if (statusCode >= 400 && !text.startsWith('{"jsonrpc"')) throw readApiError(statusCode, text);
  if (text !== '') yield JSON.parse(text) as unknown;
}

/** The body of a response. Throws ApiError for a status of an error. */
async function bodyOf({ statusCode, body }: Dispatcher.ResponseData): Promise<Dispatcher.ResponseData['body']> {
  if (statusCode >= 400) throw readApiError(statusCode, await body.text());
  return body;
}

async function readResponse<T>(response: Dispatcher.ResponseData): Promise<T> {
  const text = await (await bodyOf(response)).text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/** No timeout: documents and uploads may take long, the server has its own deadlines, and Ctrl-C ends the wait. */
const noTimeouts = { headersTimeout: 0, bodyTimeout: 0 };

/**
 * `scope` contains ids or names. `developer` is the developer token at hand, for requests that belong to no app; a key
 * is not sent with them.
 */
type Resolved = {
  base: URL;
  credential: Record<string, string>;
  developer: Record<string, string> | undefined;
  scope: ChosenApp;
  target: Target;
  requestIds: string | undefined;
};

function resolveTarget(options: ConnectionOptions, config: Config): Resolved {
  const { own, isChosen, dataDir } = findOwnServer(options, config);
  const profile = findProfile(config);
  // A credential on the command line is used alone: combined with the environment's, it could mean another caller.
  const given = options.key ?? options.token;
  let key = given === undefined ? config.apiKey : options.key;
  let token = given === undefined ? config.apiToken : options.token;
  const named = options.url ?? config.apiUrl ?? profile?.url;
  if (named === undefined && own !== undefined && !isChosen && (key !== undefined || token !== undefined))
    throw new UsageError(
      `No server is named. The credential that you give is not sent to the server in ${dataDir}, because any directory can contain such a file: pass --url or set QUARRY_API_URL, or pass --data-dir if you trust it.`,
    );
  const url = named ?? own?.base_url;
  if (url === undefined)
    throw new UsageError(
      `No server is configured: you are not logged in, and there is no credentials.json of a server on this machine in ${dataDir}. Run \`quarry login URL\`, or pass --url and --key, or set QUARRY_API_URL and QUARRY_API_KEY.`,
    );
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new UsageError('The server URL must be an http or https URL, such as http://127.0.0.1:8080.');
  const base = new URL(url);
  if (base.username !== '' || base.password !== '')
    throw new UsageError('The URL must not contain a user or password. Pass credentials with --key or --token.');
  let app = options.app ?? config.apiApp;
  let sandbox = options.sandbox ?? config.apiSandbox;
  let developerToken = token;
  let from: Target['from'] = given === undefined ? 'environment' : 'options';
  if (key === undefined && token === undefined) {
    // A credential from a file is sent only to the server that the file names.
    if (profile !== undefined && new URL(profile.url).origin === base.origin) {
      ({ key, token } = profile);
      developerToken = token;
      // A sandbox belongs to its app.
      sandbox ??= app === undefined || app === profile.app ? profile.sandbox : undefined;
      app ??= profile.app;
      from = 'profile';
    } else if (own !== undefined && new URL(own.base_url).origin === base.origin) {
      developerToken = own.developer_token;
      if (app === undefined && sandbox === undefined) key = own.secret_key;
      else {
        token = own.developer_token;
        app ??= own.app;
      }
      from = 'data directory';
    } else
      throw new UsageError(
        `No credential for ${base.origin}. Run \`quarry login ${base.origin}\`, pass --key or --token, or set QUARRY_API_KEY or QUARRY_TOKEN.`,
      );
  }
  const headers: Record<string, string | undefined> = {
    'x-api-key': key,
    authorization: token === undefined ? undefined : `Bearer ${token}`,
  };
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !/^[\x21-\x7e]+( [\x21-\x7e]+)?$/.test(value))
      throw new UsageError(`The value of ${name} is not a credential: it contains spaces or invalid characters.`);
  const present = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const kind = token === undefined ? 'key' : token.startsWith('dvt_') ? 'developer' : 'user';
  const scope = { ...defined({ app, sandbox }) };
  const developer = developerToken?.startsWith('dvt_') ? { authorization: `Bearer ${developerToken}` } : undefined;
  const target = { url: base.href, kind, from } as const;
  const { requestIds } = options;
  return { base, credential: Object.fromEntries(present), developer, scope, target, requestIds };
}

/**
 * The server and credentials in the data directory. Unless the caller chose that directory, the file may be anybody's: it
 * counts only if it names a server on this machine, as `npm start` writes it.
 */
function findOwnServer({ dataDir: option }: ConnectionOptions, config: Config) {
  const dataDir = option === undefined ? config.dataDir : resolve(option);
  const isChosen = option !== undefined || choosesDataDir();
  const own = findCredentialsFile(dataDir);
  if (own === undefined || isChosen || isLoopback(new URL(own.base_url).hostname)) return { own, isChosen, dataDir };
  return { own: undefined, isChosen, dataDir };
}

function withQuery(path: string, query: Query = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
  return given.size === 0 ? path : `${path}?${given.toString()}`;
}

/** The error in a response, with every member that it names and a hint. */
function readApiError(status: number, text: string): ApiError {
  type Body = { error?: { code?: string; message?: string; fields?: { field: string; message: string }[] } };
  let body: Body = {};
  try {
    body = JSON.parse(text) as Body;
  } catch {
    // Not a response of Quarry: only its status is known.
  }
  const { code, message, fields = [] } = body.error ?? {};
  const words = message ?? 'The response is not from a Quarry server. Check the URL.';
  const isTold = fields.every(({ field }) => words.includes(field));
  const named = isTold ? '' : fields.map(({ field, message: why }) => `\n  ${field}: ${why}`).join('');
  const next = code === undefined ? undefined : nextSteps[code];
  return new ApiError(status, `${status}: ${words}${named}${next === undefined ? '' : `\n${next}`}`, { fields });
}

const nextSteps: Record<string, string> = {
  unauthenticated: 'Run `quarry login URL`, pass --key or --token, or set QUARRY_API_KEY or QUARRY_TOKEN.',
  invalid_credentials: 'Check --key, --token and their variables. `quarry credentials` on the server creates new ones.',
  expired_token: 'Create a new one with `quarry token user`, or log in again with `quarry login URL`.',
  app_scope_required: 'Name the app with --app or QUARRY_APP.',
  user_required: 'Name the user with --user.',
};

function describeConnectionError(error: unknown, origin: string): unknown {
  if (error instanceof ApiError) return error;
  const { code, name } = error as { code?: string; name?: string };
  if (name === 'AbortError' || code === 'UND_ERR_ABORTED') return error;
  if (/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/.test(code ?? ''))
    return new ApiError(
      0,
      `No server responds at ${origin} (${code}). Check that it is running and that the address is right. \`npm start\` starts one; --url names another.`,
      { isSent: false },
    );
  if (code !== undefined)
    return new ApiError(0, `The connection to ${origin} was lost (${code}). Try again; the server's log may say more.`);
  return error;
}

/** Server-Sent Events as they arrive. Comments and retry hints are ignored. */
async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const lines = rest.slice(0, end).split('\n');
      rest = rest.slice(end + 2);
      const fieldOf = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const data = fieldOf('data');
      if (data !== undefined)
        yield { id: fieldOf('id'), event: fieldOf('event') ?? 'message', data: JSON.parse(data) as unknown };
    }
  }
}
