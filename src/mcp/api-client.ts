import type { FastifyInstance, FastifyRequest } from 'fastify';

type ApiCallOptions = {
  query?: Record<string, string | number | undefined>;
  /** Sent as JSON. */
  body?: unknown;
};

/** Sends one request to our own API as the caller and returns its JSON. Throws ApiError with the API's error. */
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

/** The credential headers, passed on unchanged, so that a tool has exactly the caller's rights in the API. */
const credentialHeaders = [
  'x-api-key',
  'x-archastro-api-key',
  'authorization',
  'x-app',
  'x-sandbox',
  'cookie',
  'x-quarry-csrf',
];

/** Sends requests within this process, through the hooks, checks and handlers of the routes. */
export function createApiClient(fastify: FastifyInstance, request: FastifyRequest): ApiClient {
  const own: Record<string, string> = { 'x-request-id': request.id };
  for (const name of credentialHeaders) {
    const value = request.headers[name];
    if (typeof value === 'string') own[name] = value;
  }
  return async <T>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, { query, body }: ApiCallOptions = {}) => {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) search.set(name, String(value));
    const response = await fastify.inject({
      method,
      url: search.size === 0 ? path : `${path}?${search.toString()}`,
      remoteAddress: request.ip,
      headers: body === undefined ? own : { ...own, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    });
    const text = response.payload;
    if (response.statusCode >= 400)
      throw new ApiError(response.statusCode, (JSON.parse(text) as { error: ErrorMember }).error);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
}
