/** The command line is invalid. The program exits with 2. */
export class UsageError extends Error {}

/** The server refused, or could not be reached. The program exits with 1. */
export class ApiError extends Error {
  /** Of the response; 0 when there was none. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
