// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type EventStream, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const kv = (c: Connection) => ({
  /** List entries. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Only entries of this user. */
user?: string | undefined; /** Substring of the user's e-mail or full name, case-insensitive. */
user_search?: string | undefined; /** Only entries whose key begins with this literal prefix. */
key?: string | undefined; }, options?: CallOptions): Pages<S.KvListEntry, S.ListKvEntriesResponse> => c.list('/api/v1/kv', query, options),
  /** Get an entry. */
  get: (key: string, query?: { /** The user (`usr_…`). Required for developers and secret keys, ignored for end users. */
user?: string | undefined; }, options?: CallOptions & { headers?: { 'If-None-Match'?: string } }): Promise<S.KvEntry> => c.get(path`/api/v1/kv/${key}`, query, options),
  /** Create or overwrite an entry. */
  put: (key: string, body: S.PutKvEntryRequest, options?: CallOptions & { headers?: { 'If-Match'?: string; 'If-None-Match'?: string } }): Promise<S.KvEntry> => c.send('PUT', path`/api/v1/kv/${key}`, body, options),
  /** Create an entry. */
  create: (body: S.CreateKvEntryRequest, options?: CallOptions): Promise<S.KvEntry> => c.postOnce('/api/v1/kv', body, options),
  /** Delete an entry. */
  delete: (key: string, query?: { /** The user (`usr_…`). Required for developers and secret keys, ignored for end users. */
user?: string | undefined; }, options?: CallOptions & { headers?: { 'If-Match'?: string; 'If-None-Match'?: string } }): Promise<void> => c.send('DELETE', path`/api/v1/kv/${key}`, undefined, { ...options, query }),
  /** List a user's entries by key. */
  entries: (query?: { /** Only keys with this literal prefix. */
prefix?: string | undefined; /** Continues after the page that returned it as `next_cursor`. */
cursor?: string | undefined; /** Entries per page. Default 100. */
limit?: number | undefined; /** The user (`usr_…`). Required for developers and secret keys, ignored for end users. */
user?: string | undefined; }, options?: CallOptions): Pages<S.KvEntry, S.ListKvEntriesByKeyResponse> => c.list('/api/v1/kv_entries', query, options),
  /** Add to a number. */
  increment: (body: S.IncrementKvEntryRequest, options?: CallOptions): Promise<S.KvEntry> => c.postOnce('/api/v1/kv_increment', body, options),
  /** Change several entries in one request. */
  batch: (body: S.BatchKvEntriesRequest, options?: CallOptions): Promise<S.BatchKvEntriesResponse> => c.postOnce('/api/v1/kv_batch', body, options),
  /** Follow changes of a user's entries. */
  watch: (query?: { /** Only this key. */
key?: string | undefined; /** Only keys with this literal prefix. */
prefix?: string | undefined; /** The user (`usr_…`). Required for developers and secret keys, ignored for end users. */
user?: string | undefined; }, options?: CallOptions): EventStream<S.KvChange> => c.stream('/api/v1/kv_watch', query, options),
});
