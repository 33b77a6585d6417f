import type { KeysetPage } from '../db/pages.ts';
import type { FileRow } from '../files/store.ts';
import type { Batch, Counts } from '../knowledge/attached-files/batches.ts';
import type { Tallied } from '../knowledge/attached-files/service.ts';
import type { Attachment } from '../knowledge/attached-files/store.ts';
import type { SearchHit } from '../knowledge/search/results.ts';
import type { SourceRow } from '../knowledge/sources/store.ts';
import { formatId } from '../lib/ids.ts';
import { purposes } from './schema.ts';

const suffixOf = (id: string) => id.slice(id.indexOf('_') + 1);
export const fileId = (uuid: string) => `file-${suffixOf(formatId('file', uuid))}`;
export const storeId = (uuid: string) => `vs_${suffixOf(formatId('source', uuid))}`;
const batchId = (uuid: string) => `vsfb_${suffixOf(formatId('ingestion', uuid))}`;

const secondsOf = (date: Date) => Math.floor(date.getTime() / 1_000);

/** The purpose of a file that was not uploaded through this API. */
const purposeDefault = 'user_data';

export function presentFile(file: FileRow) {
  const { purpose } = file.providerMetadata;
  return {
    id: fileId(file.id),
    object: 'file' as const,
    bytes: file.size,
    created_at: secondsOf(file.createdAt),
    filename: file.filename,
    purpose: purposes.find((known) => known === purpose) ?? purposeDefault,
    status: 'processed' as const,
  };
}

/** A page of a list, with its cursors. */
export function presentList<T extends { id: string }>(data: T[], hasMore: boolean) {
  return {
    data,
    object: 'list' as const,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: hasMore,
  };
}

/** The member of a source's metadata that stores what only a vector store has. */
export const storeMember = 'vector_store';

type StoreMember = { name?: string; description?: string };

export function storeMemberOf(source: SourceRow): StoreMember {
  const member = source.metadata?.[storeMember];
  return typeof member === 'object' && member !== null ? (member as StoreMember) : {};
}

export function presentStore(source: SourceRow, tally: Tallied | undefined) {
  const counts = presentCounts(tally?.counts);
  const { name, description } = storeMemberOf(source);
  return {
    id: storeId(source.id),
    object: 'vector_store' as const,
    created_at: secondsOf(source.createdAt),
    name: typeof name === 'string' ? name : '',
    description: typeof description === 'string' ? description : null,
    usage_bytes: tally?.bytes ?? 0,
    file_counts: counts,
    status: counts.in_progress > 0 ? ('in_progress' as const) : ('completed' as const),
    last_active_at: secondsOf(source.updatedAt),
    metadata: ofTypes(source.metadata, ['string']) as Record<string, string>,
    expires_after: null,
    expires_at: null,
  };
}

function presentCounts(counts: Counts = { in_progress: 0, completed: 0, failed: 0, cancelled: 0 }) {
  return { ...counts, total: Object.values(counts).reduce((sum, count) => sum + count, 0) };
}

type Attributes = Record<string, string | number | boolean>;

function ofTypes(members: Record<string, unknown> | null, types: string[]): Attributes {
  const entries = Object.entries(members ?? {}).filter(([, value]) => types.includes(typeof value));
  return Object.fromEntries(entries) as Attributes;
}

const attributesOf = (metadata: Record<string, unknown>) => ofTypes(metadata, ['string', 'number', 'boolean']);

export function presentStoreFile(source: SourceRow, file: Attachment) {
  return {
    id: file.hasFile ? fileId(file.id) : formatId('document', file.id),
    object: 'vector_store.file' as const,
    created_at: secondsOf(file.createdAt),
    usage_bytes: file.bytes,
    vector_store_id: storeId(source.id),
    status: file.status,
    last_error: file.status === 'failed' ? presentFailure(file.error) : null,
    attributes: attributesOf(file.metadata),
    chunking_strategy: { type: 'other' as const },
  };
}

export function presentStoreFiles(source: SourceRow, { rows, hasMore }: KeysetPage<Attachment>) {
  return presentList(
    rows.map((row) => presentStoreFile(source, row)),
    hasMore,
  );
}

/** Error codes that blame the file itself. All others blame its processing. */
const fileFaults: Record<string, 'unsupported_file' | 'invalid_file'> = {
  unsupported_content: 'unsupported_file',
  extraction_failed: 'invalid_file',
  file_too_large: 'invalid_file',
  not_found: 'invalid_file',
};

function presentFailure(error: Attachment['error']) {
  const { code = '', message = 'The file could not be processed.' } = error ?? {};
  return { code: fileFaults[code] ?? ('server_error' as const), message };
}

export function presentBatch(source: SourceRow, { ingestion, counts }: Batch) {
  return {
    id: batchId(ingestion.id),
    object: 'vector_store.files_batch' as const,
    created_at: secondsOf(ingestion.createdAt),
    vector_store_id: storeId(source.id),
    status: statusOf(ingestion),
    file_counts: presentCounts(counts),
  };
}

function statusOf({ status, error }: Batch['ingestion']) {
  if (status === 'succeeded') return 'completed' as const;
  if (status !== 'failed') return 'in_progress' as const;
  return error?.code === 'cancelled' ? ('cancelled' as const) : ('failed' as const);
}

export function presentHit({ row, score }: SearchHit, file: { fileId: string; filename: string } | undefined) {
  return {
    file_id: file ? fileId(file.fileId) : formatId('document', row.documentId),
    filename: file?.filename ?? row.title ?? '',
    score,
    attributes: attributesOf(row.metadata),
    content: [{ type: 'text' as const, text: row.content.toString() }],
  };
}
