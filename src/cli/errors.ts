/** The command line is invalid. The program exits with 2. */
export class UsageError extends Error {}

type RefusedField = { field: string; message: string };

/** The server refused, or could not be reached. The program exits with 1. */
export class ApiError extends Error {
  /** The status of the response; 0 without a response. */
  readonly status: number;
  /** Whether the server may have received the request. */
  readonly isSent: boolean;
  /** The members that the server refused. */
  readonly fields: readonly RefusedField[];

  constructor(
    status: number,
    message: string,
    { isSent = true, fields = [] }: { isSent?: boolean; fields?: readonly RefusedField[] } = {},
  ) {
    super(message);
    this.status = status;
    this.isSent = isSent;
    this.fields = fields;
  }
}
