/** Why the renderer returned no page. `message` is for the caller; `cause` is only logged. */
export class RenderError extends Error {
  /** Whether another attempt may succeed, because the renderer itself failed and not the page. */
  readonly isTransient: boolean;

  constructor(message: string, options: { cause?: unknown; isTransient?: boolean } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'RenderError';
    this.isTransient = options.isTransient ?? false;
  }
}
