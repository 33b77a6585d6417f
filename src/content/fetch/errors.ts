/** Why a guarded fetch failed. With `unsafe_url` and `unsafe_address`, no connection was made. */
export type FetchErrorCode =
  | 'unsafe_url'
  | 'unsafe_address'
  | 'dns_failed'
  | 'connect_failed'
  | 'timeout'
  | 'too_large'
  | 'too_many_redirects'
  | 'bad_response'
  | 'robots_unavailable'
  | 'aborted';

/** `message` is for the caller and never reveals what a name resolved to. `cause` is only logged. */
export class FetchError extends Error {
  readonly code: FetchErrorCode;

  constructor(code: FetchErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'FetchError';
    this.code = code;
  }
}

/** Converts an error of a socket, the HTTP parser or a decompressor to a FetchError. */
export function asFetchError(error: unknown, timedOut: boolean): FetchError {
  if (error instanceof FetchError) return error;
  if (timedOut) return new FetchError('timeout', 'The response took too long.', error);
  const code = codeOf(error);
  if (code === 'UND_ERR_ABORTED' || code === 'ABORT_ERR')
    return new FetchError('aborted', 'The request was aborted.', error);
  if (/TIMEOUT|TIMEDOUT/.test(code)) return new FetchError('timeout', 'The response took too long.', error);
  if (/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/.test(code))
    return new FetchError('connect_failed', 'The host does not accept connections.', error);
  if (/CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code))
    return new FetchError('connect_failed', 'A secure connection to the host could not be established.', error);
  return new FetchError('bad_response', 'The host returned an invalid response.', error);
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'name' in error && error.name === 'AbortError' ? 'ABORT_ERR' : '';
}
