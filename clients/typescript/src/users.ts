import { type CallOptions, type Connection, path } from './connection.ts';
import { users as operations } from './generated/users.ts';

/** Users, and everything that is stored about one. */
export const users = (c: Connection) => ({
  ...operations(c),
  /** Everything about a user as a ZIP archive, which is incomplete without its last file, `export.json`. */
  export: (user: string, options: CallOptions = {}): Promise<Response> =>
    c.request({ method: 'GET', path: path`/api/v1/users/${user}/export` }, options),
});
