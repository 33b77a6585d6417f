// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const installations = (c: Connection) => ({
  /** Create an installation. */
  create: (body: S.CreateInstallationRequest, options?: CallOptions): Promise<S.Installation> => c.postOnce('/api/v1/installations', body, options),
  /** List installations. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.Installation, S.InstallationPage> => c.list('/api/v1/installations', query, options),
  /** Get an installation. */
  get: (installation: string, options?: CallOptions): Promise<S.Installation> => c.get(path`/api/v1/installations/${installation}`, undefined, options),
  /** Update an installation. */
  update: (installation: string, body?: S.UpdateInstallationRequest, options?: CallOptions): Promise<S.Installation> => c.send('PATCH', path`/api/v1/installations/${installation}`, body, options),
  /** Delete an installation. */
  delete: (installation: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/installations/${installation}`, undefined, options),
});
