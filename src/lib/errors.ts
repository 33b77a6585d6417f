/**
 * Every error code of the API, with its HTTP status and type. docs/errors.md documents each code, which a test
 * checks.
 */
export const errorCodes = {
  invalid_json: { status: 400, type: 'bad_request' },
  invalid_cursor: { status: 400, type: 'bad_request' },
  invalid_path: { status: 400, type: 'bad_request' },
  user_required: { status: 400, type: 'bad_request' },
  unauthenticated: { status: 401, type: 'authentication_error' },
  invalid_credentials: { status: 401, type: 'authentication_error' },
  expired_token: { status: 401, type: 'authentication_error' },
  app_scope_required: { status: 403, type: 'forbidden' },
  forbidden: { status: 403, type: 'forbidden' },
  not_found: { status: 404, type: 'not_found' },
  request_timeout: { status: 408, type: 'bad_request' },
  method_not_allowed: { status: 405, type: 'method_not_allowed' },
  conflict: { status: 409, type: 'conflict' },
  claim_lost: { status: 409, type: 'conflict' },
  request_in_progress: { status: 409, type: 'conflict' },
  rewind_refused: { status: 409, type: 'conflict' },
  precondition_failed: { status: 412, type: 'precondition_failed' },
  payload_too_large: { status: 413, type: 'payload_too_large' },
  unsupported_media_type: { status: 415, type: 'unsupported_media_type' },
  range_not_satisfiable: { status: 416, type: 'bad_request' },
  locked: { status: 423, type: 'conflict' },
  headers_too_large: { status: 431, type: 'bad_request' },
  invalid_parameters: { status: 422, type: 'validation_error' },
  idempotency_key_reused: { status: 422, type: 'validation_error' },
  already_exists: { status: 422, type: 'validation_error' },
  file_too_large: { status: 422, type: 'validation_error' },
  unsupported_content: { status: 422, type: 'validation_error' },
  needs_browser: { status: 422, type: 'validation_error' },
  extraction_failed: { status: 422, type: 'validation_error' },
  not_an_image: { status: 422, type: 'validation_error' },
  quota_exceeded: { status: 422, type: 'validation_error' },
  token_budget_exceeded: { status: 429, type: 'rate_limited' },
  rate_limited: { status: 429, type: 'rate_limited' },
  checksum_mismatch: { status: 460, type: 'bad_request' },
  internal_error: { status: 500, type: 'server_error' },
  not_implemented: { status: 501, type: 'server_error' },
  upstream_failed: { status: 502, type: 'server_error' },
  unavailable: { status: 503, type: 'server_error' },
  timeout: { status: 504, type: 'server_error' },
} as const;

export type ErrorCode = keyof typeof errorCodes;

export type FieldError = { field: string; message: string };

type AppErrorOptions = {
  /** The invalid members of the request; nested names are joined with dots. */
  fields?: FieldError[];
  details?: Record<string, unknown>;
  /** Response headers that belong to the error, such as Retry-After or Allow. */
  headers?: Record<string, string>;
  /** The underlying error, which is only logged. */
  cause?: unknown;
};

/** An error for the caller. `message` is part of the response; `cause` is only logged. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly fields: FieldError[];
  readonly details: Record<string, unknown>;
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.fields = options.fields ?? [];
    this.details = options.details ?? {};
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return errorCodes[this.code].status;
  }
}

/** 422 `invalid_parameters` for one member of the request. */
export function invalidField(field: string, message: string): AppError {
  return new AppError('invalid_parameters', `${field}: ${message}`, { fields: [{ field, message }] });
}

/** Throws 422 if the value of a field has more bytes as JSON. */
export function requireJsonSize(field: string, value: unknown, bytesMax: number): void {
  if (Buffer.byteLength(JSON.stringify(value ?? null)) > bytesMax)
    throw invalidField(field, `must be at most ${bytesMax} bytes`);
}

/** 404, the same for missing resources and for those that the caller may not see. */
export function notFound(): AppError {
  return new AppError('not_found', 'The resource does not exist, or you may not see it.');
}

/** Returns the row, or throws 404 if there is none or if a statement says that it changed none. */
export function found<T>(row: T | false | undefined): T {
  if (row === undefined || row === false) throw notFound();
  return row;
}
