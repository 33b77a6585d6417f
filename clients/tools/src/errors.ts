/** A failure that the model is told about. The message says what to do next and holds no credential. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
  /** The API's code, or `not_allowed`, `timeout`, `unreachable` or `invalid_arguments`. */
  readonly code: string;
  /** The status of the API's response, if there was one. */
  readonly status: number | undefined;

  constructor(code: string, message: string, { status, cause }: { status?: number; cause?: unknown } = {}) {
    super(redact(message), cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
  }
}

/** An error of `@quarry/client`, from whichever copy of it. Without a status, there was no response of Quarry. */
type ClientError = Error & { status: number | undefined; code: string };

const hints: Record<number, string> = {
  400: 'Correct the arguments.',
  401: 'The credential of this tool is missing, wrong or expired. Calling again does not help: tell the user.',
  403: 'The credential of this tool does not permit it. Calling again does not help.',
  404: 'Check the id or key.',
  422: 'Correct the arguments.',
  429: 'Too many requests or a used-up quota. Wait before you call again.',
};

/** Translates what a request threw; any other error is a defect and is returned as it is. */
export function translateError(error: unknown): unknown {
  if (error instanceof ToolError) return error;
  if (!isClientError(error)) return error;
  const { status, code } = error;
  if (code === 'bad_response' && (status === undefined || status < 500))
    return new ToolError('unreachable', 'The server did not return JSON. Its base URL may be wrong: tell the user.', {
      cause: error,
    });
  if (code === 'signed_out')
    return new ToolError(code, 'The user is signed out. Calling again does not help: tell the user.', { cause: error });
  if (status === undefined)
    return new ToolError('unreachable', 'The server cannot be reached. Call again later.', { cause: error });
  const hint = hints[status] ?? (status >= 500 ? 'The server has a problem. Call again later.' : '');
  const message = error.message.replace(/\.$/, '');
  return new ToolError(code, `${message} (${status} ${code}). ${hint}`.trim(), { status, cause: error });
}

function isClientError(error: unknown): error is ClientError {
  return error instanceof Error && error.name === 'QuarryError';
}

/** Keys and tokens, in case a proxy repeats the request's headers in its message. */
const secrets = /\b(?:pk|sk|rt|sat|dvt|whsec)_[\w-]{8,}|\beyJ[\w-]+\.[\w-]+\.[\w-]+|\bBearer\s+\S+/g;

function redact(message: string): string {
  return message.replace(secrets, '[redacted]');
}
