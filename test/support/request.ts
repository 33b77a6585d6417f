import { request } from 'node:http';
import { Agent, type Dispatcher, request as send } from 'undici';

export type ApiOptions = {
  /** An API key, sent as x-api-key. */
  key?: string;
  /** A bearer token. */
  token?: string;
  /** Sent as JSON. A string or bytes are sent unchanged. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

export type ApiResponse<T> = {
  status: number;
  headers: Headers;
  /** The parsed JSON, or undefined if the response is not JSON. */
  body: T;
  text: string;
  bytes: Buffer;
};

/** By itself, undici waits ten seconds for a connection. */
const patientMs = 900_000;
const patient = new Agent({
  ...{ connect: { timeout: patientMs }, headersTimeout: patientMs, bodyTimeout: patientMs },
});

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

/**
 * Sends one request to the server at `baseUrl`, in this process or another. Does not follow redirects; bodies arrive
 * as sent. Costs half the processor time of `fetch`.
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
    dispatcher: patient,
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

/** Sends the path exactly as given, where other clients would normalise it. The body is sent as JSON. */
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
