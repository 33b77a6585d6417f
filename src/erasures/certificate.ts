import { formatId } from '../lib/ids.ts';
import { presentSubject } from './present.ts';
import type { Certificate, ErasureRow } from './store.ts';

/** For how long the installation keeps what an erasure does not delete, in days. */
export type Retention = {
  auditDays: number;
  modelCallDays: number;
  /** Backups, archived WAL and snapshots; undefined if the operator has not said. */
  backupDays: number | undefined;
};

type Statement = Certificate['statement'];
type Remains = Statement['remains'][number];

const dayMs = 24 * 60 * 60 * 1_000;
const eventDays = 7;
const covers =
  'Everything that was stored under the subject in this app and sandbox. Not covered: mentions in what belongs to others, such as documents, entries of runs, and answers that others keep.';

/** The statement that is signed when the erasure is done. */
export function stateErasure(erasure: ErasureRow, now: Date, retention: Retention): Statement {
  return {
    erasure: formatId('erasure', erasure.id),
    app: formatId('app', erasure.appId),
    sandbox: formatId('sandbox', erasure.sandboxId),
    ...presentSubject(erasure),
    requested_at: erasure.createdAt.toISOString(),
    completed_at: now.toISOString(),
    covers,
    removed: erasure.counts,
    remains: listRemains(erasure, now, retention),
    receivers: erasure.receivers ?? [],
  };
}

function listRemains({ subjectKind, withFiles }: ErasureRow, now: Date, retention: Retention): Remains[] {
  const { auditDays, modelCallDays, backupDays } = retention;
  const after = (days: number) => ({ until: new Date(now.getTime() + days * dayMs).toISOString().slice(0, 10) });
  const copies = backupDays === undefined ? {} : after(backupDays);
  const operator = backupDays === undefined ? ' The operator has not stated for how long (QUARRY_BACKUP_DAYS).' : '';
  return [
    {
      ...{ what: 'audit_entries', where: 'database', ...after(auditDays) },
      note: 'Ids of the actor and the resource, and addresses of requests. No contents.',
    },
    {
      ...{ what: 'ids', where: 'database' },
      note: 'The id of the subject in this certificate, in the signed ledger and in records of others.',
    },
    {
      ...{ what: 'events', where: 'database', ...after(eventDays) },
      note: 'Events about the deletion itself. They carry ids.',
    },
    {
      ...{ what: 'stored_responses', where: 'database', ...after(1) },
      note: 'Encrypted responses to requests of others with an Idempotency-Key.',
    },
    ...(subjectKind === 'user'
      ? []
      : [
          {
            ...{ what: 'model_calls', where: 'database', ...after(modelCallDays) },
            note: 'Records of calls of language models that belong to others. They hold messages only if the operator keeps them (QUARRY_MODEL_CALL_CONTENTS).',
          },
        ]),
    ...(subjectKind === 'user' || withFiles
      ? []
      : [{ what: 'files', where: 'file store', note: 'The files that the documents were read from, if any.' }]),
    {
      ...{ what: 'data_pages', where: 'data files of PostgreSQL' },
      note: 'Deleted rows stay in free space until it is used again, and common values in statistics until the next ANALYZE. ANALYZE, then VACUUM FULL removes both.',
    },
    {
      ...{ what: 'write_ahead_log', where: 'WAL and standbys of PostgreSQL', ...copies },
      note: `Until PostgreSQL recycles it, and in archives.${operator}`,
    },
    { what: 'backups', where: 'backups and snapshots', ...copies, note: `As long as they are kept.${operator}` },
    {
      ...{ what: 'object_versions', where: 'bucket of the file store', ...copies },
      note: `Only in a bucket that keeps versions of objects.${operator}`,
    },
    {
      ...{ what: 'memory', where: 'memory of server processes' },
      note: 'Parts of the search index may stay in the cache, where no search reaches them, until they are displaced or the process ends.',
    },
  ];
}
