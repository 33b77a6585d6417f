import type { Comparison } from '../../content/compare-lines.ts';
import { compact, iso } from '../../http/route/present.ts';
import { formatId } from '../../lib/ids.ts';
import type { DocumentContent } from '../documents/slices.ts';
import type { VersionRow } from './store.ts';

export function presentVersion(row: VersionRow) {
  return compact({
    document: formatId('document', row.documentId),
    source: formatId('source', row.sourceId),
    version: row.number,
    current: row.endedAt === null,
    title: row.title,
    metadata: row.metadata,
    content_type: row.contentType,
    content_hash: row.contentHash.toString('hex'),
    total_lines: row.totalLines,
    total_size: row.totalSize,
    source_url: row.sourceUrl,
    external_id: row.externalId,
    created_at: iso(row.startedAt),
    replaced_at: row.endedAt && !row.isDeletion ? iso(row.endedAt) : null,
    deleted_at: row.endedAt && row.isDeletion ? iso(row.endedAt) : null,
  });
}

export function presentVersionContent({ version, ...slice }: DocumentContent & { version: VersionRow }) {
  return compact({ ...presentVersion(version), ...slice });
}

export function presentComparison({
  base,
  version,
  text,
}: {
  base: VersionRow;
  version: VersionRow;
  text: Comparison;
}) {
  const names = new Set([...Object.keys(base.metadata), ...Object.keys(version.metadata)]);
  const isChanged = (name: string) => JSON.stringify(base.metadata[name]) !== JSON.stringify(version.metadata[name]);
  return {
    document: formatId('document', version.documentId),
    base: base.number,
    version: version.number,
    ...(base.title === version.title ? {} : { title: compact({ before: base.title, after: version.title }) }),
    metadata: [...names].filter(isChanged).sort(),
    ...text,
  };
}
