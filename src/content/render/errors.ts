/** Why the renderer returned no page. `message` is for the caller, `cause` only for the log. */
export class RenderError extends Error {
  /** Another attempt may succeed: the renderer itself failed, not the page. */
  readonly isTransient: boolean;

  constructor(message: string, options: { cause?: unknown; isTransient?: boolean } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'RenderError';
    this.isTransient = options.isTransient ?? false;
  }
}
