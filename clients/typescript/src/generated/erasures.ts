// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const erasures = (c: Connection) => ({
  /** Erase a user, a document or a source. */
  create: (body?: S.CreateErasureRequest, options?: CallOptions): Promise<S.Erasure> => c.postOnce('/api/v1/erasures', body, options),
  /** List erasures. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.Erasure, S.ErasurePage> => c.list('/api/v1/erasures', query, options),
  /** Get an erasure. */
  get: (erasure: string, options?: CallOptions): Promise<S.Erasure> => c.get(path`/api/v1/erasures/${erasure}`, undefined, options),
  /** Get the certificate of an erasure. */
  certificate: (erasure: string, options?: CallOptions): Promise<S.ErasureCertificate> => c.get(path`/api/v1/erasures/${erasure}/certificate`, undefined, options),
});
