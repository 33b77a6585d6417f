/** Why an app cannot be moved, or not now, with what the operator can do. */
export class MoveError extends Error {
  override readonly name = 'MoveError';
}

/** Another process is working on the move. */
export class MoveBusyError extends MoveError {
  constructor() {
    super('Another process is working on the move of this app.');
  }
}
