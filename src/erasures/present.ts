import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { ErasureRow } from './store.ts';

export function presentErasure(row: ErasureRow) {
  return compact({
    id: formatId('erasure', row.id),
    app: formatId('app', row.appId),
    sandbox: presentSandboxId(row.sandboxId),
    ...presentSubject(row),
    files: row.withFiles,
    status: row.status,
    removed: row.counts,
    created_at: iso(row.createdAt),
    completed_at: row.completedAt && iso(row.completedAt),
  });
}

/** What is erased, as one of the members `user`, `document` and `source`. */
export function presentSubject({ subjectKind, subjectId }: Pick<ErasureRow, 'subjectKind' | 'subjectId'>) {
  return { [subjectKind]: formatId(subjectKind, subjectId) } as { user?: string; document?: string; source?: string };
}
