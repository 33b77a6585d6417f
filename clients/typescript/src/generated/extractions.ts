// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type EventStream, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const extractions = (c: Connection) => ({
  /** Turn a document, a page or a site into Markdown. */
  create: (body: S.CreateExtractionRequest, options?: CallOptions): Promise<S.Extraction> => c.postOnce('/api/v1/extractions', body, options),
  /** List extractions. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Only those of this kind. */
kind?: 'document' | 'link' | 'site' | undefined; /** Only those in this state. */
state?: 'running' | 'done' | 'failed' | undefined; /** agt_… */
agent?: string | undefined; }, options?: CallOptions): Pages<S.Extraction, S.ExtractionPage> => c.list('/api/v1/extractions', query, options),
  /** Get an extraction. */
  get: (extraction: string, options?: CallOptions): Promise<S.Extraction> => c.get(path`/api/v1/extractions/${extraction}`, undefined, options),
  /** Cancel and delete an extraction. */
  delete: (extraction: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/extractions/${extraction}`, undefined, options),
  /** Follow an extraction. */
  stream: (extraction: string, options?: CallOptions): EventStream<S.Extraction> => c.stream(path`/api/v1/extractions/${extraction}/stream`, undefined, options),
});
