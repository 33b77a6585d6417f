import { presentGrant } from '../files/present.ts';
import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { defined } from '../lib/defined.ts';
import { formatId } from '../lib/ids.ts';
import type { Grant } from '../tenancy/visible.ts';
import type { DocumentContent } from './documents/slices.ts';
import type { ChunkRow, DocumentView } from './documents/store.ts';
import type { EmbeddingStatus } from './embedding/service.ts';
import type { IngestionView } from './ingestion/store.ts';
import { findMistypedMembers } from './kinds/index.ts';
import type { Payload } from './kinds/payload.ts';
import type { SearchResult } from './search/request.ts';
import type { SearchHit } from './search/results.ts';
import type { ContextRow } from './search/results-store.ts';
import type { ListedSource, SourceView } from './sources/store.ts';

export function presentSource(row: SourceView) {
  return {
    id: formatId('source', row.id),
    type: row.type,
    state: row.state,
    agent: row.agentId && formatId('agent', row.agentId),
    context_installation: row.installationId && formatId('installation', row.installationId),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
    lookup_key: row.lookupKey,
    learned_model: row.model && {
      status: row.model.refusedBytes === null ? ('ready' as const) : ('over_quota' as const),
      bytes: row.model.bytes,
      bytes_needed: row.hidesCounts ? null : row.model.refusedBytes,
      trained_at: row.model.trainedAt && iso(new Date(row.model.trainedAt)),
    },
    metadata: row.metadata,
    has_credentials: row.credentials !== null,
    held_deletions: row.hidesCounts ? null : row.heldDeletions,
    org: row.orgId && formatId('org', row.orgId),
    parent_source: row.parentSourceId && formatId('source', row.parentSourceId),
    payload: row.payload,
    sandbox: presentSandboxId(row.sandboxId),
    team: row.teamId && formatId('team', row.teamId, 'tea'),
    thread: row.threadId && formatId('thread', row.threadId),
    user: row.userId && formatId('user', row.userId),
    ...defined({ embedder: row.embedder?.name ?? undefined }),
    ...(row.versionRetentionDays === null
      ? {}
      : {
          version_retention_days: row.versionRetentionDays,
          ...(row.versionsFrom && { versions_from: iso(row.versionsFrom) }),
        }),
  };
}

/** The embedder of a source, and how far its vectors are. */
export function presentEmbedding({ row, isRunning, documents, done, estimate }: EmbeddingStatus) {
  const hasFailed = row !== undefined && row.error !== null;
  return {
    embedder: row?.name ?? null,
    serving: row?.servingName ?? null,
    status: hasFailed ? ('failed' as const) : isRunning ? ('running' as const) : ('ready' as const),
    documents,
    embedded: done,
    tokens: row?.tokens ?? 0,
    cost: row?.cost ?? 0,
    ...defined({
      error: row?.error ?? undefined,
      retry_at: row?.retryAt ? iso(row.retryAt) : undefined,
      started_at: row && iso(row.startedAt),
      completed_at: row?.completedAt ? iso(row.completedAt) : undefined,
    }),
    ...(estimate && { estimate }),
  };
}

/** A source that was created or changed with this payload, with what in it looks like a mistake. */
export function presentWrittenSource(row: SourceView, payload: Payload | null | undefined) {
  const warnings = findMistypedMembers(row.type, payload);
  return { ...presentSource(row), ...(warnings.length === 0 ? {} : { warnings }) };
}

/** A source of a list, with its statistics if the caller asked for them. */
export function presentListedSource({ statistics, ...row }: ListedSource) {
  const source = presentSource(row);
  if (statistics === undefined) return source;
  const { documents, lastIngestion } = statistics;
  const last = lastIngestion && { status: lastIngestion.status, created_at: iso(new Date(lastIngestion.createdAt)) };
  return { ...source, statistics: { documents, last_ingestion: last } };
}

function owners(row: { agentId: string | null; teamId: string | null; userId: string | null; orgId: string | null }) {
  return {
    agent: row.agentId && formatId('agent', row.agentId),
    team: row.teamId && formatId('team', row.teamId, 'tea'),
    user: row.userId && formatId('user', row.userId),
    org: row.orgId && formatId('org', row.orgId),
  };
}

export function presentIngestion(row: IngestionView) {
  return compact({
    id: formatId('ingestion', row.id),
    source: formatId('source', row.sourceId),
    status: row.status,
    ...owners(row),
    error: row.error,
    metadata: presentOutcome(row.metadata),
    stats: row.stats,
    started_at: row.startedAt && iso(row.startedAt),
    completed_at: row.completedAt && iso(row.completedAt),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}

/** Documents and files are stored by UUID and shown by id. */
function presentOutcome(metadata: Record<string, unknown>): Record<string, unknown> {
  // The lists of grants of a restore are for the server alone.
  const { acls: _acls, ...shown } = metadata;
  const { document, files, items } = shown;
  return {
    ...shown,
    ...(Array.isArray(files) ? { files: files.map((file: string) => formatId('file', file)) } : {}),
    ...(typeof document === 'string' ? { document: formatId('document', document) } : {}),
    ...(Array.isArray(items) ? { items: items.map((item) => presentOutcome(item as Record<string, unknown>)) } : {}),
  };
}

export function presentDocument(row: DocumentView, grants?: readonly Grant[]) {
  return compact({
    id: formatId('document', row.id),
    source: formatId('source', row.sourceId),
    title: row.title,
    file: row.fileId && formatId('file', row.fileId),
    ...owners(row),
    metadata: row.metadata,
    content_type: row.contentType,
    content_hash: row.contentHash.toString('hex'),
    total_lines: row.totalLines,
    total_size: row.totalSize,
    total_chunks: row.chunkCount,
    source_url: row.sourceUrl,
    acl: grants && { grants: grants.map(presentGrant) },
    external_id: row.externalId,
    version: row.keepsVersions ? row.version : null,
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}

export function presentContent({ document, ...slice }: DocumentContent & { document: DocumentView }) {
  return compact({
    id: formatId('document', document.id),
    ...slice,
    total_lines: document.totalLines,
    total_size: document.totalSize,
    title: document.title,
    metadata: document.metadata,
  });
}

export function presentChunk(row: ChunkRow) {
  return {
    id: formatId('chunk', row.id),
    content: row.content.toString(),
    heading_path: row.headingPath,
    ...(row.fragment === null ? {} : { fragment: row.fragment }),
    start_line: row.startLine,
    end_line: row.endLine,
    start_byte: row.startByte,
    end_byte: row.endByte,
  };
}

export function presentSearch(result: SearchResult, explain: boolean) {
  return {
    data: result.hits.map((hit) => presentHit(hit, explain)),
    ...(result.facets && { facets: Object.fromEntries(result.facets) }),
    ...defined({ vectors_unavailable: result.vectorsUnavailable, rerank_unavailable: result.rerankUnavailable }),
    ...(explain
      ? {
          explain: {
            chunks: result.chunks,
            average_length: result.averageLength,
            terms: result.terms.map(({ term, documentFrequency, idf }) => ({
              term,
              document_frequency: documentFrequency,
              idf,
            })),
            ...(result.models && {
              learned_weight: result.models.weight,
              models: result.models.sources.map(({ sourceId, ...model }) => ({
                source: formatId('source', sourceId),
                ...model,
              })),
            }),
            ...(result.feedback && {
              feedback: { passages: result.feedback.passages, terms: result.feedback.added },
            }),
            ...defined({ vectors_unavailable: result.vectorsUnavailable }),
          },
        }
      : {}),
  };
}

function presentHit(hit: SearchHit, explain: boolean) {
  const { row } = hit;
  return compact({
    id: formatId('chunk', row.id),
    kind: 'chunk' as const,
    content: row.content.toString(),
    content_type: row.contentType ?? 'text/markdown',
    raw_content: { heading_path: row.headingPath, start_byte: row.startByte, end_byte: row.endByte },
    metadata: row.metadata,
    type: row.sourceType,
    document: formatId('document', row.documentId),
    source: formatId('source', row.sourceId),
    title: row.title,
    source_url: row.sourceUrl,
    fragment: row.fragment,
    version: row.version,
    ...presentPosition(row),
    score: hit.score,
    created_at: iso(row.createdAt),
    highlights: hit.highlights?.map(({ start, end, startByte, endByte }) => ({
      start,
      end,
      start_byte: startByte,
      end_byte: endByte,
    })),
    context: hit.context && compact({ content: hit.context.content.toString(), ...presentPosition(hit.context) }),
    explain: explain
      ? compact({
          fulltext_rank: hit.textRank,
          fulltext_score: hit.textScore,
          learned_rank: hit.learnedRank,
          learned_score: hit.learnedScore,
          vector_rank: hit.vectorRank,
          similarity: hit.similarity,
          rank_before_reranking: hit.rankBefore,
        })
      : null,
  });
}

function presentPosition(row: Omit<ContextRow, 'sourceId' | 'ordinal' | 'content'>) {
  return {
    start_line: row.startLine,
    end_line: row.endLine,
    start_byte: row.startByte,
    end_byte: row.endByte,
    start_page: row.startPage,
    end_page: row.endPage,
  };
}
