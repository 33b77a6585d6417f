import type { Db, Statement } from '../db/database.ts';
import { exported } from './exported.ts';
import { automationsOfUser, ownedByUser, propertyOfUser, runOfUser, tracesOfUser } from './of-user.ts';
import type { Subject } from './store.ts';

/**
 * Rows `t` of a table that belong to a user: those of the condition, and those whose column `ofRuns` names a run of the
 * user or one that such a run started.
 */
export type ExportStep = { table: string; where: (db: Db) => Statement; ofRuns?: string };

/**
 * What the archive of a user has, in its order: all that an erasure deletes, by the same conditions, and what others keep
 * about the user. What lies below runs and files is read with them (export.ts).
 */
export function exportSteps(subject: Subject, email: string | null): ExportStep[] {
  const { appId, subjectId } = subject;
  const mine = (db: Db) => ownedByUser(db, subject);
  const below = (column: string, table: string) => (db: Db) =>
    db`${db(column)} in (select t.id from ${db(table)} t where t.app_id = ${appId} and ${mine(db)})`;
  const ofSource = below('t.source_id', 'knowledge_sources');
  const ofExtraction = below('t.extraction_id', 'extractions');
  /** Runs are deleted with these rows of theirs. */
  const alsoOfRuns: Record<string, string> = { events: 't.subject_id', model_calls: 't.run_id' };
  const erased = [...propertyOfUser(subject).reverse(), ...tracesOfUser(subject)]
    .filter(({ table }) => Object.hasOwn(exported, table))
    .map(({ table, where }) => {
      const ofRuns = alsoOfRuns[table];
      return { table, where, ...(ofRuns !== undefined && { ofRuns }) };
    });
  return [
    ...erased,
    { table: 'files', where: (db) => filesOfUser(db, subject) },
    { table: 'uploads', where: (db) => db`t.user_id = ${subjectId} and t.finished_at is null` },
    { table: 'extraction_data', where: ofExtraction },
    { table: 'extraction_schemas', where: ofExtraction },
    { table: 'knowledge_sources', where: mine },
    { table: 'knowledge_documents', where: ofSource },
    { table: 'knowledge_versions', where: ofSource },
    { table: 'knowledge_ingestions', where: ofSource },
    {
      table: 'knowledge_ingestion_items',
      where: (db) => db`t.ingestion_id in (
        select t.id from knowledge_ingestions t where t.app_id = ${appId} and ${ofSource(db)})`,
    },
    { table: 'knowledge_syncs', where: ofSource },
    { table: 'knowledge_tombstones', where: ofSource },
    { table: 'crawled_pages', where: below('t.collection_id', 'knowledge_sources') },
    { table: 'automation_graphs', where: (db) => db`t.automation_id in (${automationsOfUser(db, subject)})` },
    { table: 'automation_runs', where: (db) => runOfUser(db, subject), ofRuns: 't.id' },
    {
      table: 'approvals',
      where: (db) => db`(${subjectId} = any(t.users || t.excluded_users) or t.excluded_user_id = ${subjectId})`,
      ofRuns: 't.run_id',
    },
    { table: 'approval_links', where: (db) => db`lower(t.sent_to) = lower(${email})` },
    { table: 'audit_entries', where: (db) => db`t.actor_kind = 'user' and t.actor_id = ${subjectId}` },
  ];
}

/** SQL: the files `t` that belong to the user, and those that have the user's config entries. */
function filesOfUser(db: Db, subject: Subject): Statement {
  return db`(${ownedByUser(db, subject)} or t.id in (
    select v.file_id from config_versions v join configs t on t.app_id = v.app_id and t.id = v.config_id
    where v.app_id = ${subject.appId} and ${ownedByUser(db, subject)}))`;
}
