// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const auth = (c: Connection) => ({
  /** Sign in with e-mail and password. */
  login: (body: S.LoginRequest, options?: CallOptions): Promise<S.MintedToken> => c.send('POST', '/api/v1/auth/login', body, options),
  /** Exchange a refresh token for a new pair. */
  refresh: (body: S.RefreshSessionRequest, options?: CallOptions): Promise<S.MintedToken> => c.send('POST', '/api/v1/auth/refresh', body, options),
  /** End a session. */
  logout: (body: S.LogoutRequest, options?: CallOptions): Promise<void> => c.send('POST', '/api/v1/auth/logout', body, options),
  /** Create an issuer of external identities. */
  createIssuer: (body: S.CreateIdentityIssuerRequest, options?: CallOptions): Promise<S.IdentityIssuer> => c.postOnce('/api/v1/identity_issuers', body, options),
  /** List issuers of external identities. */
  listIssuers: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.IdentityIssuer, S.IdentityIssuerPage> => c.list('/api/v1/identity_issuers', query, options),
  /** Get an issuer of external identities. */
  getIssuer: (identityIssuer: string, options?: CallOptions): Promise<S.IdentityIssuer> => c.get(path`/api/v1/identity_issuers/${identityIssuer}`, undefined, options),
  /** Update an issuer of external identities. */
  updateIssuer: (identityIssuer: string, body?: S.UpdateIdentityIssuerRequest, options?: CallOptions): Promise<S.IdentityIssuer> => c.send('PATCH', path`/api/v1/identity_issuers/${identityIssuer}`, body, options),
  /** Delete an issuer of external identities. */
  deleteIssuer: (identityIssuer: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/identity_issuers/${identityIssuer}`, undefined, options),
  /** List connected assistants. */
  listAssistants: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Only those of this user, usr_…. */
user?: string | undefined; }, options?: CallOptions): Pages<S.ConnectedAssistant, S.ConnectedAssistantPage> => c.list('/api/v1/connected_assistants', query, options),
  /** Get a connected assistant. */
  getAssistant: (connectedAssistant: string, options?: CallOptions): Promise<S.ConnectedAssistant> => c.get(path`/api/v1/connected_assistants/${connectedAssistant}`, undefined, options),
  /** Delete a connected assistant. */
  disconnectAssistant: (connectedAssistant: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/connected_assistants/${connectedAssistant}`, undefined, options),
});
