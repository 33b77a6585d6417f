// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const users = (c: Connection) => ({
  /** Get the calling user. */
  me: (options?: CallOptions): Promise<S.User> => c.get('/api/v1/users/me', undefined, options),
  /** Create a user. */
  create: (body: S.CreateUserRequest, options?: CallOptions): Promise<S.User> => c.postOnce('/api/v1/users', body, options),
  /** List users. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Only those whose name or address contains this text. */
search?: string | undefined; /** Only those of this organisation (`org_…`). */
org?: string | undefined; }, options?: CallOptions): Pages<S.User, S.UserPage> => c.list('/api/v1/users', query, options),
  /** Get a user. */
  get: (user: string, options?: CallOptions): Promise<S.User> => c.get(path`/api/v1/users/${user}`, undefined, options),
  /** Update a user. */
  update: (user: string, body?: S.UpdateUserRequest, options?: CallOptions): Promise<S.User> => c.send('PATCH', path`/api/v1/users/${user}`, body, options),
  /** Delete a user. */
  delete: (user: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/users/${user}`, undefined, options),
  /** Create a token for a user. */
  createToken: (user: string, body?: S.CreateUserTokenRequest, options?: CallOptions): Promise<S.MintedToken> => c.send('POST', path`/api/v1/users/${user}/tokens`, body, options),
  /** List a user's personal tokens. */
  listTokens: (user: string, options?: CallOptions): Promise<S.ListUserTokensResponse> => c.get(path`/api/v1/users/${user}/tokens`, undefined, options),
  /** Revoke a personal token. */
  revokeToken: (user: string, token: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/users/${user}/tokens/${token}`, undefined, options),
  /** End every session and token of a user. */
  revokeSessions: (user: string, options?: CallOptions): Promise<void> => c.postOnce(path`/api/v1/users/${user}/sessions/revoke`, undefined, options),
});
