import type { Error as ErrorBody } from './generated/schema.ts';

type Body = ErrorBody['error'];
/** A stable code: those of the API, which docs/errors.md explains, and those of the client itself. */
export type ErrorCode = Body['code'] | 'unreachable' | 'timed_out' | 'signed_out' | 'bad_response';

type Details = {
  status?: number;
  fields?: Body['fields'];
  details?: Body['details'];
  requestId?: string | undefined;
  retryAfterMs?: number | undefined;
  cause?: unknown;
};

/**
 * Why a call failed. An error of the API has its `status`, `code`, `fields` and `details`. An error of the client has
 * no status: `unreachable` (no response), `timed_out`, `signed_out` (the session cannot be renewed) or `bad_response`.
 */
export class QuarryError extends Error {
  override readonly name = 'QuarryError';
  readonly code: ErrorCode;
  readonly status: number | undefined;
  /** The invalid members of the request. */
  readonly fields: Body['fields'];
  readonly details: Body['details'];
  /** Names the request in the log of the server. */
  readonly requestId: string | undefined;
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, given: Details = {}) {
    super(message, 'cause' in given ? { cause: given.cause } : undefined);
    this.code = code;
    this.status = given.status;
    this.fields = given.fields ?? [];
    this.details = given.details ?? {};
    this.requestId = given.requestId;
    this.retryAfterMs = given.retryAfterMs;
  }
}

/** Reads the error of a response, whatever a proxy made of it. */
export async function readError(response: Response): Promise<QuarryError> {
  const { status, headers } = response;
  const common = { status, requestId: headers.get('x-request-id') ?? undefined, retryAfterMs: retryAfterOf(headers) };
  const text = await response.text().catch(() => '');
  try {
    const { code, message, fields, details } = (JSON.parse(text) as ErrorBody).error;
    if (typeof code === 'string') return new QuarryError(code, message, { ...common, fields, details });
  } catch {
    // Not from the API: a proxy in between, or the wrong address.
  }
  return new QuarryError('bad_response', `The response has status ${status} and is not one of Quarry.`, common);
}

function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get('retry-after');
  if (value === null) return undefined;
  const seconds = Number(value);
  const ms = Number.isNaN(seconds) ? Date.parse(value) - Date.now() : seconds * 1_000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
