import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { isBlobStoreUnavailable } from '../blob/errors.ts';
import { isDatabaseUnavailable } from '../db/errors.ts';
import { isRefusedByMove } from '../db/fences.ts';
import { AppError, type ErrorCode, errorCodes } from '../lib/errors.ts';
import { quotaError } from '../tenancy/quotas.ts';
import { missingReference } from '../tenancy/references.ts';

/** Sends an error response in the shape of its path, with the headers of the error. No other code does. */
export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const appError = toAppError(error, request);
  if (appError.code === 'unavailable' && appError.cause === undefined)
    request.log.warn({ code: appError.code, reason: appError.message }, 'refused');
  // The operator has not set up this part, which is not a fault. Each request for it is refused the same way.
  else if (appError.code === 'not_implemented')
    request.log.info({ code: appError.code, reason: appError.message }, 'refused');
  else if (appError.status >= 500) request.log.error({ err: error }, 'request failed');
  else if (appError.cause !== undefined) request.log.info({ err: appError.cause, code: appError.code }, 'refused');
  const { status, body } = presentError(appError, request);
  return reply
    .code(status)
    .headers({
      'cache-control': 'no-store',
      ...(appError.status === 503 ? { 'retry-after': '1' } : {}),
      ...appError.headers,
    })
    .header('content-type', 'application/json; charset=utf-8')
    .serializer((sent: unknown) => JSON.stringify(sent))
    .send(body);
}

/** The error for a request that reached a database in which its app is not in use, before, during or after a move. */
export function movedError(): AppError {
  return new AppError('unavailable', 'The app is being moved to another database. Try again in a second.');
}

/** The error for a request without a route: 405 if the path accepts other methods, otherwise 404. */
export function unmatchedRouteError(method: string, allowed: readonly string[]): AppError {
  if (allowed.length === 0 || allowed.includes(method)) return new AppError('not_found', 'There is no such path.');
  return new AppError('method_not_allowed', `This path accepts ${allowed.join(', ')}.`, {
    headers: { allow: allowed.join(', ') },
  });
}

/** A different error shape for the paths under `prefix`. */
export type ErrorDialect = { prefix: string; present(error: AppError): PresentedError };
type PresentedError = { status: number; body: unknown };

declare module 'fastify' {
  interface FastifyInstance {
    errorDialects: readonly ErrorDialect[];
  }
}

/** The status and body of an error, in the error shape of the path. */
export function presentError(error: AppError, request: FastifyRequest): PresentedError {
  const dialect = request.server.errorDialects.find(({ prefix }) => request.url.startsWith(prefix));
  return dialect?.present(error) ?? { status: error.status, body: errorBody(error) };
}

export function errorBody(error: AppError): unknown {
  const { type } = errorCodes[error.code];
  return {
    error: { type, code: error.code, message: error.message, fields: error.fields, details: error.details },
  };
}

/** The error code of the response for this error. */
export function codeOf(error: unknown, request: FastifyRequest): ErrorCode {
  return toAppError(error, request).code;
}

/** The HTTP status of the response for this error. */
export function statusOf(error: unknown, request: FastifyRequest): number {
  return presentError(toAppError(error, request), request).status;
}

/** Our wording for Fastify's own errors. */
const frameworkErrors: Record<string, [ErrorCode, string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['payload_too_large', 'The request body is larger than this server accepts.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'unsupported_media_type',
    'The Content-Type header is not a media type that this path reads. JSON is sent as application/json.',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid_json', 'The body does not have the length that Content-Length states.'],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['invalid_json', 'The request body is empty.'],
  FST_ERR_CTP_INVALID_JSON_BODY: ['invalid_json', 'The request body is not valid JSON.'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found', 'The resource does not exist, or you may not see it.'],
  FST_ERR_BAD_URL: ['invalid_path', 'The path contains an invalid escape sequence.'],
};

/** Converts any error to one that the caller may see. */
export function toAppError(error: unknown, request: FastifyRequest): AppError {
  if (error instanceof AppError) return error;
  const overQuota = quotaError(error);
  if (overQuota !== undefined) return overQuota;
  const missing = missingReference(error, Object.keys(request.params ?? {}));
  if (missing !== undefined) return missing;
  const code = (error as FastifyError | undefined)?.code;
  const known = code === undefined ? undefined : frameworkErrors[code];
  if (known) return new AppError(known[0], known[1], { cause: error });
  if (isRefusedByMove(error)) return movedError();
  if (isDatabaseUnavailable(error) || isBlobStoreUnavailable(error))
    return new AppError('unavailable', 'The database or the file store is currently unavailable. Try again shortly.', {
      cause: error,
    });
  return new AppError(
    'internal_error',
    'An internal error occurred. The server log has details under the request id.',
    {
      cause: error,
    },
  );
}
