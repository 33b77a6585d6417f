// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const audit = (c: Connection) => ({
  /** List changes, newest first. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** usr_…, dak_…, dva_… or cso_… */
actor?: string | undefined; /** Only entries of this operation, such as `createKey`. */
action?: string | undefined; /** Only entries about this id. */
resource?: string | undefined; /** At or after this time (ISO 8601). */
since?: string | undefined; /** Before this time (ISO 8601). */
until?: string | undefined; }, options?: CallOptions): Pages<S.AuditEntry, S.AuditEntryPage> => c.list('/api/v1/audit', query, options),
  /** List the use of credentials by day. */
  listCredentialUses: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** usr_…, dak_… or tok_… */
credential?: string | undefined; }, options?: CallOptions): Pages<S.CredentialUse, S.CredentialUsePage> => c.list('/api/v1/credential_uses', query, options),
  /** Export the head of the ledger. */
  ledger: (query?: { /** Returns the segment with this number instead of the newest one. */
segment?: number | undefined; }, options?: CallOptions): Promise<S.LedgerHead> => c.get('/api/v1/ledger', query, options),
  /** Verify a part of the ledger. */
  verify: (query?: { /** The `next_cursor` of the previous part. */
cursor?: string | undefined; }, options?: CallOptions): Promise<S.LedgerVerification> => c.get('/api/v1/ledger/verification', query, options),
  /** List background jobs that are set aside, newest first. */
  listJobs: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.SetAsideJob, S.SetAsideJobPage> => c.list('/api/v1/jobs', query, options),
  /** Retry a job that is set aside. */
  retryJob: (job: string, options?: CallOptions): Promise<S.SetAsideJob> => c.postOnce(path`/api/v1/jobs/${job}/retry`, undefined, options),
});
