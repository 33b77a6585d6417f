import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { ErasureRow } from './store.ts';

export function presentErasure(row: ErasureRow) {
  return compact({
    id: formatId('erasure', row.id),
    ...presentScope(row),
    ...presentSubject(row),
    files: row.withFiles,
    status: row.status,
    removed: row.counts,
    created_at: iso(row.createdAt),
    completed_at: row.completedAt && iso(row.completedAt),
  });
}

/** The app, and the sandbox if it is none of production. */
export function presentScope({ appId, sandboxId }: Scope) {
  return compact({ app: formatId('app', appId), sandbox: presentSandboxId(sandboxId) });
}

/** What is erased, as one of the members `user`, `document` and `source`. */
export function presentSubject({ subjectKind, subjectId }: Pick<ErasureRow, 'subjectKind' | 'subjectId'>) {
  return { [subjectKind]: formatId(subjectKind, subjectId) } as { user?: string; document?: string; source?: string };
}
