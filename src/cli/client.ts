import { type Dispatcher, getGlobalDispatcher, request } from 'undici';
import { type Config, readConfig } from '../config.ts';
import { findCredentialsFile } from '../credentials-file.ts';

/** Where a command goes and as whom; what is absent comes from the environment, then from the data directory. */
export type ConnectionOptions = { url?: string; key?: string; token?: string; app?: string; sandbox?: string };

/** The command was called in a way that cannot work. The program exits with 2. */
export class UsageError extends Error {}

/** The server refused, or could not be reached. The program exits with 1. */
export class RefusedError extends Error {
  /** Of the answer; 0 when there was none. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

type Query = Record<string, string | number | undefined>;

type SendOptions = {
  query?: Query;
  /** Sent as JSON. */
  body?: unknown;
};

type ServerEvent = { event: string; data: unknown };

/** Speaks to one server with one credential. */
export type Client = {
  /** The JSON of the answer; undefined when it has no body. Throws RefusedError. */
  send<T>(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, options?: SendOptions): Promise<T>;
  /** Sends a body as it comes, without keeping it. `bytes` is its length where that is known. */
  upload<T>(path: string, upload: Upload): Promise<T>;
  /** The events of a stream until the server ends it. */
  events(path: string): AsyncGenerator<ServerEvent>;
  /** The bytes behind a signed URL, to which no credential is sent. */
  download(url: string): Promise<AsyncIterable<Uint8Array>>;
};

type Upload = {
  headers: Record<string, string>;
  query?: Query;
  body: AsyncIterable<Uint8Array>;
  bytes: number | undefined;
};

/** A client for these options. Throws UsageError when they, the environment and the data directory do not suffice. */
export function connect(options: ConnectionOptions, signal: AbortSignal): Client {
  const { base, headers } = resolveTarget(options, readConfig());
  const prefix = `${base.pathname.replace(/\/$/, '')}/api/v1`;

  async function open(method: string, path: string, more: Partial<Dispatcher.RequestOptions>) {
    try {
      // Origin and path apart, so that a key such as ".." reaches the server as it stands.
      return await getGlobalDispatcher().request({
        ...{ origin: base.origin, path: `${prefix}${path}`, method: method as Dispatcher.HttpMethod },
        ...{ signal, ...patience, ...more },
      });
    } catch (error) {
      throw unreachable(error, base.origin);
    }
  }

  async function answerOf<T>(response: Dispatcher.ResponseData): Promise<T> {
    const text = await response.body.text();
    if (response.statusCode >= 400) throw refusal(response.statusCode, text);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  return {
    async send<T>(method: string, path: string, { query, body }: SendOptions = {}) {
      const json = body === undefined ? {} : { 'content-type': 'application/json' };
      const more = body === undefined ? {} : { body: JSON.stringify(body) };
      return answerOf<T>(await open(method, withQuery(path, query), { headers: { ...headers, ...json }, ...more }));
    },

    async upload<T>(path: string, upload: Upload) {
      const length = upload.bytes === undefined ? {} : { 'content-length': String(upload.bytes) };
      const response = await open('POST', withQuery(path, upload.query), {
        headers: { ...headers, ...upload.headers, ...length },
        body: upload.body as never,
      });
      return answerOf<T>(response);
    },

    async *events(path: string) {
      const response = await open('GET', path, { headers: { ...headers, accept: 'text/event-stream' } });
      if (response.statusCode >= 400) throw refusal(response.statusCode, await response.body.text());
      yield* readEvents(response.body);
    },

    async download(url: string) {
      const response = await request(url, { signal, ...patience }).catch((error: unknown) => {
        throw unreachable(error, new URL(url).origin);
      });
      if (response.statusCode >= 400) throw refusal(response.statusCode, await response.body.text());
      return response.body;
    },
  };
}

/** A document or an upload may take its time; the server has its own deadlines, and Ctrl-C ends the wait. */
const patience = { headersTimeout: 0, bodyTimeout: 0 };

function resolveTarget(options: ConnectionOptions, config: Config): { base: URL; headers: Record<string, string> } {
  const own = findCredentialsFile(config.dataDir);
  const url = options.url ?? config.apiUrl ?? own?.base_url;
  if (url === undefined)
    throw new UsageError(
      `Which server? There is no credentials.json in ${config.dataDir}. Say --url and --key, or set QUARRY_API_URL and QUARRY_API_KEY.`,
    );
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new UsageError('The server must be an http or https URL, such as http://127.0.0.1:8080.');
  const base = new URL(url);
  if (base.username !== '' || base.password !== '')
    throw new UsageError('Leave user and password out of the URL. Credentials go into --key or --token.');
  const app = options.app ?? config.apiApp;
  const sandbox = options.sandbox ?? config.apiSandbox;
  // A credential on the command line is meant alone: the environment's would make another caller of it.
  const given = options.key ?? options.token;
  let key = given === undefined ? config.apiKey : options.key;
  let token = given === undefined ? config.apiToken : options.token;
  let ownApp: string | undefined;
  if (key === undefined && token === undefined) {
    // The keys of this machine's server go to that server and nowhere else.
    if (own === undefined || new URL(own.base_url).origin !== base.origin)
      throw new UsageError(
        `No credential for ${base.origin}. Say --key or --token, or set QUARRY_API_KEY or QUARRY_TOKEN.`,
      );
    if (app === undefined && sandbox === undefined) key = own.secret_key;
    else {
      token = own.developer_token;
      ownApp = own.app;
    }
  }
  const headers: Record<string, string | undefined> = {
    'x-api-key': key,
    authorization: token === undefined ? undefined : `Bearer ${token}`,
    'x-app': app ?? ownApp,
    'x-sandbox': sandbox,
  };
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !/^[\x21-\x7e]+( [\x21-\x7e]+)?$/.test(value))
      throw new UsageError(`What was given for ${name} is not a credential or id: it holds spaces or odd characters.`);
  const present = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { base, headers: Object.fromEntries(present) };
}

function withQuery(path: string, query: Query = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
  return given.size === 0 ? path : `${path}?${given.toString()}`;
}

/** The error of an answer, with every member that it names and what to do next. */
function refusal(status: number, text: string): RefusedError {
  type Body = { error?: { code?: string; message?: string; fields?: { field: string; message: string }[] } };
  let body: Body = {};
  try {
    body = JSON.parse(text) as Body;
  } catch {
    // Not our server's answer: its status alone has to say it.
  }
  const { code, message, fields = [] } = body.error ?? {};
  const words = message ?? 'This is no answer of a Quarry server: is the URL right?';
  const named = fields.length > 1 ? fields.map(({ field, message: why }) => `\n  ${field}: ${why}`).join('') : '';
  const next = code === undefined ? undefined : nextSteps[code];
  return new RefusedError(status, `${status}: ${words}${named}${next === undefined ? '' : `\n${next}`}`);
}

const nextSteps: Record<string, string> = {
  unauthenticated: 'Give a secret key by --key or QUARRY_API_KEY, or a token by --token or QUARRY_TOKEN.',
  invalid_credentials: 'Check --key, --token and their variables; `quarry credentials` on the server makes new ones.',
  expired_token: 'Make a new one with `quarry token user`.',
  app_scope_required: 'Name the app of your developer token by --app or QUARRY_APP.',
  user_required: 'Name the user by --user.',
};

function unreachable(error: unknown, origin: string): unknown {
  const { code, name } = error as { code?: string; name?: string };
  if (name === 'AbortError' || code === 'UND_ERR_ABORTED') return error;
  if (/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/.test(code ?? ''))
    return new RefusedError(
      0,
      `No server answers at ${origin} (${code}). Is it running, and is the address right? \`npm start\` starts one; --url names another.`,
    );
  if (code !== undefined)
    return new RefusedError(
      0,
      `The connection to ${origin} broke off (${code}). Try again; the server's log may say more.`,
    );
  return error;
}

/** Server-Sent Events as they come in: comments, ids and retry hints are passed over. */
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
      if (data !== undefined) yield { event: fieldOf('event') ?? 'message', data: JSON.parse(data) as unknown };
    }
  }
}
