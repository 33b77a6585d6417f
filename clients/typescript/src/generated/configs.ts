// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const configs = (c: Connection) => ({
  /** List config entries. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Paths of this agent instead of the caller’s. */
agent?: string | undefined; /** Paths of this organisation instead of the caller’s. */
org?: string | undefined; /** Only paths that begin with this text. */
prefix?: string | undefined; }, options?: CallOptions): Pages<S.ConfigEntry, S.ConfigEntryPage> => c.list('/api/v1/config', query, options),
  /** Read a config entry. */
  get: (path_: string, query?: { /** Paths of this agent instead of the caller’s. */
agent?: string | undefined; /** Paths of this organisation instead of the caller’s. */
org?: string | undefined; /** The number of the version. Default: the current one. */
version?: number | undefined; }, options?: CallOptions): Promise<S.ConfigEntry> => c.get(path`/api/v1/config/${path_.split("/")}`, query, options),
  /** Write a config entry. */
  put: (path_: string, body: S.PutConfigRequest, options?: CallOptions): Promise<S.ConfigEntry> => c.send('PUT', path`/api/v1/config/${path_.split("/")}`, body, options),
  /** Delete a config entry. */
  delete: (path_: string, query?: { /** Paths of this agent instead of the caller’s. */
agent?: string | undefined; /** Paths of this organisation instead of the caller’s. */
org?: string | undefined; }, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/config/${path_.split("/")}`, undefined, { ...options, query }),
});
