import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Dispatcher, request as send } from 'undici';
import type { Clock } from '../../src/clock.ts';
import { readConfig } from '../../src/config.ts';
import type { Resolver } from '../../src/content/fetch/resolver.ts';
import type { DatabaseTarget } from '../../src/db/address.ts';
import type { Database } from '../../src/db/database.ts';
import { createLogger, type LogLevel } from '../../src/log.ts';
import { createServer, type QuarryServer } from '../../src/server.ts';
import { createServices, type Services } from '../../src/services.ts';
import { traceIds } from '../../src/tracing/trace.ts';
import { createTestDatabase } from './database.ts';
import { findParsers } from './parsers.ts';
import { behindPooler } from './pooler.ts';
import { Provisioner } from './provisioner.ts';

export type TestServerOptions = {
  /** Settings in addition to those of all tests, as environment variables. */
  env?: Record<string, string>;
  clock?: Clock;
  /** Names of hosts, for the guarded fetch. */
  resolve?: Resolver;
  /** What is logged to standard error; `error` unless given. */
  logLevel?: LogLevel;
  /** A running server. The new one acts as a second process of the same installation, with its database and secret. */
  beside?: TestServer;
  /** An installation that exists: its database, data directory and root secret, which the caller removes. */
  installed?: { target: DatabaseTarget; db: Database; dataDir: string; secret: string };
};

export type ApiOptions = {
  /** An API key, sent as x-api-key. */
  key?: string;
  /** A bearer token. */
  token?: string;
  /** Sent as JSON; a string or bytes are sent unchanged. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

export type ApiResponse<T> = {
  status: number;
  headers: Headers;
  /** The parsed JSON; undefined when the response is not JSON. */
  body: T;
  text: string;
  bytes: Buffer;
};

/** The body of an error response. */
export type ErrorBody = {
  error: {
    type: string;
    code: string;
    message: string;
    fields: { field: string; message: string }[];
    details: Record<string, unknown>;
  };
};

export type TestServer = {
  baseUrl: string;
  services: Services;
  server: QuarryServer;
  db: Database;
  dataDir: string;
  /** Sends one request. The type parameter says what the response holds: `api<{ id: string }>('GET', …)`. */
  api<T = Record<string, unknown>>(method: string, path: string, options?: ApiOptions): Promise<ApiResponse<T>>;
  /** Creates apps, orgs, users and their credentials by SQL, independent of the routes. */
  provision: Provisioner;
  close(): Promise<void>;
};

/**
 * Starts the whole server in this process, on a free port, with a new copy of the migrated template database and an
 * empty data directory. Close it in `after`, which removes both.
 */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const { beside } = options;
  const installed = beside
    ? {
        target: beside.services.directTarget,
        db: beside.db,
        dataDir: beside.dataDir,
        secret: beside.services.config.secret,
      }
    : options.installed;
  const database = installed ? { ...installed, drop: async () => {} } : await createTestDatabase();
  // Processes on one database share one blob store.
  const dataDir = installed?.dataDir ?? mkdtempSync(join(tmpdir(), 'quarry-server-test-'));
  const removeAll = async () => {
    if (installed) return;
    await database.drop();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  };
  const pooled = behindPooler(database.target);
  let services: Services | undefined;
  try {
    const config = readConfig({
      PORT: '0',
      QUARRY_DATA_DIR: dataDir,
      QUARRY_SECRET: installed?.secret ?? randomBytes(32).toString('hex'),
      QUARRY_PARSE_WORKERS: '1',
      QUARRY_DB_POOL: '6',
      ...(pooled === undefined ? {} : { QUARRY_PREPARE: 'off' }),
      ...options.env,
    });
    const log = createLogger(options.logLevel ?? 'error', config.otlpEndpoint === undefined ? undefined : traceIds);
    services = await createServices(config, log, {
      database: pooled ?? database.target,
      directDatabase: database.target,
      parser: options.logLevel === undefined ? findParsers(config) : undefined,
      ...(options.clock === undefined ? {} : { clock: options.clock }),
      resolve: options.resolve,
    });
    const server = await createServer(services);
    const baseUrl = await server.listen();
    await services.startWorkers(server.work);
    services.setReady();
    const opened = services;
    return {
      baseUrl,
      services,
      server,
      db: database.db,
      dataDir,
      api: (method, path, apiOptions) => sendRequest(baseUrl, method, path, apiOptions),
      provision: new Provisioner(database.db, services.secrets, services.clock),
      async close() {
        await server.close();
        await opened.close();
        await removeAll();
      },
    };
  } catch (error) {
    await services?.close();
    await removeAll();
    throw error;
  }
}

/**
 * One request to the server at `baseUrl`, in this process or another. Redirects are not followed and bodies arrive as
 * sent. Costs half the processor time of `fetch`.
 */
export async function sendRequest<T = Record<string, unknown>>(
  baseUrl: string,
  method: string,
  path: string,
  options: ApiOptions = {},
): Promise<ApiResponse<T>> {
  const { body, signal } = options;
  const payload = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  const response = await send(`${baseUrl}${path}`, {
    method: method as Dispatcher.HttpMethod,
    headers: headersOf(options),
    ...(body === undefined ? {} : { body: payload }),
    ...(signal === undefined ? {} : { signal }),
  });
  const received = new Headers();
  for (const [name, values = []] of Object.entries(response.headers))
    for (const value of [values].flat()) received.append(name, value);
  return readResponse(response.statusCode, received, Buffer.from(await response.body.arrayBuffer()));
}

/** Sends the path exactly as given, which other clients would normalise. The body is sent as JSON. */
export function sendExactPath<T>(
  baseUrl: string,
  method: string,
  path: string,
  options: ApiOptions = {},
): Promise<ApiResponse<T>> {
  const payload = options.body === undefined ? '' : JSON.stringify(options.body);
  const { hostname, port } = new URL(baseUrl);
  const headers = { 'content-length': String(Buffer.byteLength(payload)), ...headersOf(options) };
  return new Promise((resolve, reject) => {
    const outgoing = request({ hostname, port, method, path, headers }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk) => chunks.push(chunk));
      incoming.on('end', () => {
        const received = new Headers();
        for (const [name, values = []] of Object.entries(incoming.headersDistinct))
          for (const value of values) received.append(name, value);
        resolve(readResponse<T>(incoming.statusCode ?? 0, received, Buffer.concat(chunks)));
      });
    });
    outgoing.on('error', reject);
    outgoing.end(payload);
  });
}

function headersOf({ key, token, body, headers = {} }: ApiOptions): Record<string, string> {
  return {
    ...(key === undefined ? {} : { 'x-api-key': key }),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...headers,
  };
}

function readResponse<T>(status: number, headers: Headers, bytes: Buffer): ApiResponse<T> {
  const text = bytes.toString('utf8');
  const isJson = /^application\/(?:[\w.+-]+\+)?json/.test(headers.get('content-type') ?? '');
  return { status, headers, body: (isJson && text !== '' ? JSON.parse(text) : undefined) as T, text, bytes };
}
