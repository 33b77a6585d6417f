// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const threads = (c: Connection) => ({
  /** Create a thread. */
  create: (body?: S.CreateThreadRequest, options?: CallOptions): Promise<S.Thread> => c.postOnce('/api/v1/threads', body, options),
  /** List threads. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.Thread, S.ThreadPage> => c.list('/api/v1/threads', query, options),
  /** Get a thread. */
  get: (thread: string, options?: CallOptions): Promise<S.Thread> => c.get(path`/api/v1/threads/${thread}`, undefined, options),
  /** Update a thread. */
  update: (thread: string, body?: S.UpdateThreadRequest, options?: CallOptions): Promise<S.Thread> => c.send('PATCH', path`/api/v1/threads/${thread}`, body, options),
  /** Delete a thread. */
  delete: (thread: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/threads/${thread}`, undefined, options),
  /** Post a message to a thread. */
  createMessage: (thread: string, body: S.CreateThreadMessageRequest, options?: CallOptions): Promise<S.CreateThreadMessageResponse> => c.postOnce(path`/api/v1/threads/${thread}/messages`, body, options),
});
