import type { FastifyInstance, FastifyRequest } from 'fastify';
import { callerHeaders, forMcpEndpoint } from '../http/route/credential-headers.ts';
import { idempotencyHeader, readIdempotencyKey } from '../http/route/idempotency-key.ts';

type ApiCallOptions = {
  query?: Record<string, string | number | undefined>;
  /** Sent as JSON. */
  body?: unknown;
};

/** Sends one request to the API as the caller, and returns the JSON of the response. Throws ApiError with the API's error. */
export type ApiClient = <T>(
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  options?: ApiCallOptions,
) => Promise<T>;

export type ErrorMember = {
  type: string;
  code: string;
  message: string;
  fields: { field: string; message: string }[];
  details: Record<string, unknown>;
};

export class ApiError extends Error {
  readonly status: number;
  readonly error: ErrorMember;

  constructor(status: number, error: ErrorMember) {
    super(error.message);
    this.status = status;
    this.error = error;
  }
}

/** Sends requests within this process as the sender of a request. */
export function createApiClient(fastify: FastifyInstance, request: FastifyRequest): ApiClient {
  return injectInto(fastify, {
    headers: callerHeaders(request),
    idempotencyKey: readIdempotencyKey(request),
    remoteAddress: request.ip,
    around: forMcpEndpoint,
  });
}

type Sender = {
  headers?: Record<string, string>;
  /** Sent with every POST. */
  idempotencyKey: string | undefined;
  remoteAddress?: string;
  /** Runs the request where its caller is known. */
  around<T>(send: () => Promise<T>): Promise<T>;
};

/** Sends requests within this process, through the hooks, checks and handlers of the routes. */
export function injectInto(fastify: FastifyInstance, sender: Sender): ApiClient {
  const { headers: own = {}, idempotencyKey: key, remoteAddress } = sender;
  return async <T>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, { query, body }: ApiCallOptions = {}) => {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) search.set(name, String(value));
    const response = await sender.around(async () =>
      fastify.inject({
        method,
        url: search.size === 0 ? path : `${path}?${search.toString()}`,
        ...(remoteAddress === undefined ? {} : { remoteAddress }),
        headers: {
          ...own,
          ...(search.size === 0 ? {} : { prefer: 'handling=strict' }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(key === undefined || method !== 'POST' ? {} : { [idempotencyHeader]: key }),
        },
        ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
      }),
    );
    const text = response.payload;
    if (response.statusCode >= 400)
      throw new ApiError(response.statusCode, (JSON.parse(text) as { error: ErrorMember }).error);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
}
