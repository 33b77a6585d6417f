// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const orgs = (c: Connection) => ({
  /** Create an organisation. */
  create: (body: S.CreateOrgRequest, options?: CallOptions): Promise<S.Org> => c.postOnce('/api/v1/orgs', body, options),
  /** List organisations. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Only those whose name or address contains this text. */
search?: string | undefined; }, options?: CallOptions): Pages<S.Org, S.OrgPage> => c.list('/api/v1/orgs', query, options),
  /** Get an organisation. */
  get: (org: string, options?: CallOptions): Promise<S.Org> => c.get(path`/api/v1/orgs/${org}`, undefined, options),
  /** Update an organisation. */
  update: (org: string, body?: S.UpdateOrgRequest, options?: CallOptions): Promise<S.Org> => c.send('PATCH', path`/api/v1/orgs/${org}`, body, options),
  /** Delete an organisation. */
  delete: (org: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/orgs/${org}`, undefined, options),
});
