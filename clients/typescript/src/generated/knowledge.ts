// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type EventStream, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const knowledge = (c: Connection) => ({
  /** Search everything visible. */
  search: (body: S.SearchKnowledgeRequest, options?: CallOptions): Promise<S.SearchKnowledgeResponse> => c.postOnce('/api/v1/knowledge_search', body, options),
  /** List the types of sources that can be created. */
  listKinds: (options?: CallOptions): Promise<S.ListKnowledgeSourceKindsResponse> => c.get('/api/v1/knowledge_sources/kinds', undefined, options),
  /** List sources. */
  listSources: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Part of the type, case-insensitive. */
search?: string | undefined; /** Only those of this type. */
type?: string | undefined; /** Only those of this team (`tea_…`). */
team?: Array<string> | undefined; /** Only those of this thread (`thr_…`). */
thread?: Array<string> | undefined; /** Only what this installation (`cin_…`) filled. */
installation?: string | undefined; /** Only what this agent (`agt_…`) owns. */
agent?: string | undefined; /** Only those of this organisation (`org_…`). */
org?: string | undefined; /** `individual`: owned by a user, a team or an agent; `system`: all others; `any`: both. Default `any`. */
owner_scope?: 'any' | 'individual' | 'system' | undefined; /** Only the one with this lookup key. */
lookup_key?: string | undefined; /** Part of `name` in the metadata, or of `url` in the payload, case-insensitive. */
name?: string | undefined; /** Adds `statistics` to each source of the page. */
include?: 'statistics' | undefined; }, options?: CallOptions): Pages<S.KnowledgeSource, S.KnowledgeSourcePage> => c.list('/api/v1/knowledge_sources', query, options),
  /** Create a source. */
  createSource: (body: S.CreateKnowledgeSourceRequest, options?: CallOptions): Promise<S.KnowledgeSource> => c.postOnce('/api/v1/knowledge_sources', body, options),
  /** Get a source. */
  getSource: (source: string, options?: CallOptions): Promise<S.KnowledgeSource> => c.get(path`/api/v1/knowledge_sources/${source}`, undefined, options),
  /** Update a source. */
  updateSource: (source: string, body?: S.UpdateKnowledgeSourceRequest, options?: CallOptions): Promise<S.KnowledgeSource> => c.send('PATCH', path`/api/v1/knowledge_sources/${source}`, body, options),
  /** Delete a source with everything in it. */
  deleteSource: (source: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/knowledge_sources/${source}`, undefined, options),
  /** Search a source. */
  searchSource: (source: string, body: S.SearchKnowledgeSourceRequest, options?: CallOptions): Promise<S.SearchKnowledgeSourceResponse> => c.postOnce(path`/api/v1/knowledge_sources/${source}/search`, body, options),
  /** Ingest into a source. */
  ingest: (source: string, body?: S.IngestIntoKnowledgeSourceRequest, options?: CallOptions): Promise<S.KnowledgeIngestion> => c.postOnce(path`/api/v1/knowledge_sources/${source}/ingest`, body, options),
  /** Ingest up to 100 contents in one request. */
  ingestBatch: (source: string, body: S.IngestBatchIntoKnowledgeSourceRequest, options?: CallOptions): Promise<S.KnowledgeIngestion> => c.postOnce(path`/api/v1/knowledge_sources/${source}/ingest/batch`, body, options),
  /** List the ingestions of a source. */
  listIngestions: (source: string, query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.KnowledgeIngestion, S.KnowledgeIngestionPage> => c.list(path`/api/v1/knowledge_sources/${source}/ingestions`, query, options),
  /** Get an ingestion. */
  getIngestion: (ingestion: string, options?: CallOptions): Promise<S.KnowledgeIngestion> => c.get(path`/api/v1/knowledge_ingestions/${ingestion}`, undefined, options),
  /** Follow an ingestion. */
  streamIngestion: (ingestion: string, options?: CallOptions): EventStream<S.KnowledgeIngestion> => c.stream(path`/api/v1/knowledge_ingestions/${ingestion}/stream`, undefined, options),
  /** List documents. */
  listDocuments: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Beginning of the title, case-insensitive. */
q?: string | undefined; /** Only documents of this source (`cso_…`). */
source?: Array<string> | undefined; /** Only what this installation (`cin_…`) filled. */
installation?: Array<string> | undefined; /** Only what this agent (`agt_…`) owns. */
agent?: Array<string> | undefined; }, options?: CallOptions): Pages<S.KnowledgeDocument, S.KnowledgeDocumentPage> => c.list('/api/v1/knowledge_documents', query, options),
  /** Get a document. */
  getDocument: (document: string, options?: CallOptions): Promise<S.KnowledgeDocument> => c.get(path`/api/v1/knowledge_documents/${document}`, undefined, options),
  /** Change a document. */
  updateDocument: (document: string, body?: S.UpdateKnowledgeDocumentRequest, options?: CallOptions): Promise<S.KnowledgeIngestion> => c.send('PATCH', path`/api/v1/knowledge_documents/${document}`, body, options),
  /** Delete a document. */
  deleteDocument: (document: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/knowledge_documents/${document}`, undefined, options),
  /** Read a document's text, or a slice of it. */
  readDocument: (document: string, query?: { /** The number of units to skip. */
offset?: number | undefined; /** The number of units to return. */
limit?: number | undefined; /** What `offset` and `limit` count. */
unit?: 'lines' | 'bytes' | undefined; }, options?: CallOptions): Promise<S.KnowledgeDocumentContent> => c.get(path`/api/v1/knowledge_documents/${document}/content`, query, options),
  /** List the chunks of a document, in the order of the text. */
  listChunks: (document: string, query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.KnowledgeDocumentChunk, S.KnowledgeDocumentChunkPage> => c.list(path`/api/v1/knowledge_documents/${document}/chunks`, query, options),
  /** Get the secret URL at which a webhook/inbound source accepts documents. */
  getInboundUrl: (source: string, options?: CallOptions): Promise<S.GetInboundUrlResponse> => c.get(path`/api/v1/knowledge_sources/${source}/inbound_url`, undefined, options),
  /** Replace the inbound URL. */
  rotateInboundUrl: (source: string, options?: CallOptions): Promise<S.RotateInboundUrlResponse> => c.send('POST', path`/api/v1/knowledge_sources/${source}/inbound_url`, undefined, options),
  /** Require signatures at the inbound URL, or replace their secret. */
  setInboundSecret: (source: string, body?: S.SetInboundSecretRequest, options?: CallOptions): Promise<S.SetInboundSecretResponse> => c.send('POST', path`/api/v1/knowledge_sources/${source}/inbound_url/signing_secret`, body, options),
  /** Accept unsigned posts at the inbound URL again. */
  deleteInboundSecret: (source: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/knowledge_sources/${source}/inbound_url/signing_secret`, undefined, options),
  /** Start a sync of a source, or resume the one that expired. */
  startSync: (source: string, body: S.StartKnowledgeSyncRequest, options?: CallOptions): Promise<S.KnowledgeSync> => c.postOnce(path`/api/v1/knowledge_sources/${source}/syncs`, body, options),
  /** List the syncs of a source. */
  listSyncs: (source: string, query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.KnowledgeSync, S.KnowledgeSyncPage> => c.list(path`/api/v1/knowledge_sources/${source}/syncs`, query, options),
  /** Get a sync. */
  getSync: (sync: string, options?: CallOptions): Promise<S.KnowledgeSync> => c.get(path`/api/v1/knowledge_syncs/${sync}`, undefined, options),
  /** Send a batch of a sync. */
  sendSyncBatch: (sync: string, number: string, body: S.PutKnowledgeSyncBatchRequest, options?: CallOptions): Promise<S.KnowledgeSync> => c.send('PUT', path`/api/v1/knowledge_syncs/${sync}/batches/${number}`, body, options),
  /** Complete a sync. */
  completeSync: (sync: string, body: S.CompleteKnowledgeSyncRequest, options?: CallOptions): Promise<S.KnowledgeSync> => c.postOnce(path`/api/v1/knowledge_syncs/${sync}/complete`, body, options),
  /** Abort a sync. */
  abortSync: (sync: string, body?: S.AbortKnowledgeSyncRequest, options?: CallOptions): Promise<S.KnowledgeSync> => c.postOnce(path`/api/v1/knowledge_syncs/${sync}/abort`, body, options),
  /** Change who sees a document. */
  updateDocumentAcl: (document: string, body?: S.UpdateKnowledgeDocumentAclRequest, options?: CallOptions): Promise<S.KnowledgeDocument> => c.send('PATCH', path`/api/v1/knowledge_documents/${document}/acl`, body, options),
  /** Let every reader of its source see a document. */
  deleteDocumentAcl: (document: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/knowledge_documents/${document}/acl`, undefined, options),
  /** Get the embedder of a source and its progress. */
  getEmbedding: (source: string, query?: { /** Estimates what the vectors of this model or alias would use. Changes nothing. */
embedder?: string | undefined; }, options?: CallOptions): Promise<S.KnowledgeEmbedding> => c.get(path`/api/v1/knowledge_sources/${source}/embedding`, query, options),
  /** List the versions of a document. */
  listVersions: (document: string, query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.KnowledgeDocumentVersion, S.KnowledgeDocumentVersionPage> => c.list(path`/api/v1/knowledge_documents/${document}/versions`, query, options),
  /** Read a version of a document. */
  getVersion: (document: string, version: string, query?: { /** The number of units to skip. */
offset?: number | undefined; /** The number of units to return. */
limit?: number | undefined; /** What `offset` and `limit` count. */
unit?: 'lines' | 'bytes' | undefined; }, options?: CallOptions): Promise<S.KnowledgeDocumentVersionContent> => c.get(path`/api/v1/knowledge_documents/${document}/versions/${version}`, query, options),
  /** Compare a version of a document with another one. */
  compareVersions: (document: string, version: string, query?: { /** The version to compare with. By default, the one before. */
base?: number | undefined; }, options?: CallOptions): Promise<S.KnowledgeDocumentComparison> => c.get(path`/api/v1/knowledge_documents/${document}/versions/${version}/comparison`, query, options),
  /** Make a version of a document the newest one. */
  restoreVersion: (document: string, version: string, options?: CallOptions): Promise<S.KnowledgeIngestion> => c.postOnce(path`/api/v1/knowledge_documents/${document}/versions/${version}/restore`, undefined, options),
  /** List the deleted documents of a source. */
  listDeletedDocuments: (source: string, query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.KnowledgeDocumentVersion, S.KnowledgeDocumentVersionPage> => c.list(path`/api/v1/knowledge_sources/${source}/deleted_documents`, query, options),
  /** See what restoring a source to a time would change. */
  planRestore: (source: string, query: { /** The time, as in `2026-03-01T12:00:00Z`. */
at: string; }, options?: CallOptions): Promise<S.KnowledgeRestorePlan> => c.get(path`/api/v1/knowledge_sources/${source}/restore`, query, options),
  /** Bring a source back to a time. */
  restoreSource: (source: string, body: S.RestoreKnowledgeSourceRequest, options?: CallOptions): Promise<S.KnowledgeIngestion> => c.postOnce(path`/api/v1/knowledge_sources/${source}/restore`, body, options),
});
