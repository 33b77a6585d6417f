import type { FastifyRequest } from 'fastify';
import { isLoopback } from '../config/loopback.ts';
import { requireMinimumSpeed } from '../http/body/body.ts';
import { bodyBudgets } from '../http/body/budgets.ts';
import type { ErrorDialect } from '../http/errors.ts';
import { AppError } from '../lib/errors.ts';

/** The parameters of a request. None is empty. */
export type Parameters = ReadonlyMap<string, string>;

type OauthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_client_metadata'
  | 'invalid_redirect_uri'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'unsupported_grant_type'
  | 'unsupported_response_type';

/** An error of the OAuth protocol, which clients read in `error` and people in `error_description`. */
export function oauthError(code: OauthErrorCode, message: string, cause?: unknown): AppError {
  return new AppError('invalid_parameters', message, {
    details: { oauth: code },
    ...(cause === undefined ? {} : { cause }),
  });
}

export function oauthCodeOf(error: AppError): string {
  if (typeof error.details.oauth === 'string') return error.details.oauth;
  if (error.status === 429 || error.status === 503) return 'temporarily_unavailable';
  return error.status >= 500 ? 'server_error' : 'invalid_request';
}

/** Errors under `/oauth`, in the shape of RFC 6749. */
export const oauthErrors: ErrorDialect = {
  prefix: '/oauth/',
  present(error) {
    const code = oauthCodeOf(error);
    const status = code === 'invalid_client' ? 401 : error.status === 422 ? 400 : error.status;
    return { status, body: { error: code, error_description: error.message } };
  },
};

const parametersMax = 40;

/** The parameters of a query or form. 400 if one is repeated, which readers could understand differently. */
export function readParameters(text: string): Parameters {
  const read = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (read.has(name)) throw oauthError('invalid_request', `The parameter ${JSON.stringify(name)} is repeated.`);
    // An empty parameter is the same as a missing one (RFC 6749, section 3.1).
    if (value !== '') read.set(name, value);
    if (read.size > parametersMax) throw oauthError('invalid_request', 'There are too many parameters.');
  }
  return read;
}

export const formType = 'application/x-www-form-urlencoded';

/** Reads a small form from the body of a request. */
export async function readForm(request: FastifyRequest): Promise<Parameters> {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  if (!new RegExp(`^${formType}\\s*(?:;|$)`, 'i').test(type) || encoding !== 'identity') {
    request.raw.resume();
    throw oauthError('invalid_request', `Send the parameters as ${formType}.`);
  }
  return readParameters((await requireMinimumSpeed(request, readBytes(request))).toString());
}

async function readBytes(request: FastifyRequest): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > bodyBudgets.small.bytesMax) {
      request.raw.resume();
      throw new AppError('payload_too_large', `The body has more than ${bodyBudgets.small.bytesMax} bytes.`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const redirectUriCharactersMax = 1_000;
/** Parameters that the response adds. In the address itself, they could pass for parts of a response. */
const responseParameters = ['code', 'state', 'iss', 'error', 'error_description', 'error_uri'];

/** Why an address cannot receive codes; undefined if it can. */
export function problemOfRedirectUri(text: string): string | undefined {
  if (text.length > redirectUriCharactersMax) return `must have at most ${redirectUriCharactersMax} characters`;
  // A backslash means a slash to browsers, and to nobody else.
  if (!/^https?:\/\/[!-~]+$/i.test(text) || text.includes('\\') || !URL.canParse(text))
    return 'must be an https URL, or an http URL of this machine (127.0.0.1, [::1] or localhost)';
  const url = new URL(text);
  if (text.includes('#')) return 'must have no fragment';
  if (url.username !== '' || url.password !== '' || /^https?:\/\/[^/?]*@/i.test(text)) return 'must have no user name';
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    return 'must be https, except on this machine (127.0.0.1, [::1] or localhost)';
  const added = responseParameters.find((name) => url.searchParams.has(name));
  return added === undefined ? undefined : `must have no parameter ${added}`;
}

/** Whether a code may go to `given`: one of the client's addresses, exactly; on this machine, with any port (RFC 8252). */
export function matchesRedirectUri(registered: readonly string[], given: string): boolean {
  if (problemOfRedirectUri(given) !== undefined) return false;
  return registered.some(
    (one) => one === given || (isLocal(one) && isLocal(given) && portless(one) === portless(given)),
  );
}

export function isLocal(uri: string): boolean {
  const url = new URL(uri);
  return url.protocol === 'http:' && isLoopback(url.hostname);
}

function portless(uri: string): string {
  return uri.replace(/^(http:\/\/(?:\[[^\]]*\]|[^/:?]*))(?::\d*)?/i, '$1');
}

/** Adds parameters to an address, whose own query stays as it is. */
export function addParameters(uri: string, parameters: Record<string, string>): string {
  return `${uri}${uri.includes('?') ? '&' : '?'}${new URLSearchParams(parameters).toString()}`;
}
