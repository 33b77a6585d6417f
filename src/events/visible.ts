import type { Db, Statement } from '../db/database.ts';
import { type Caller, canSeeWholeApp } from '../tenancy/caller.ts';
import { ingestionVisible } from '../tenancy/document-readers.ts';
import { approvalVisible, fileGranted, inScope, ownedVisible } from '../tenancy/visible.ts';

/*
 * The one rule for every receiver of events, a reader of a stream as well as the run of an automation: they learn of an
 * event if a request of theirs could read what the event is about.
 */

/**
 * SQL: the caller may learn of the event `alias`: it is about a resource that they can see, a file shared with them, or
 * for an admin of an org one of its sources. Those about an approval are for the people who may answer it. Events of the
 * app itself are visible only to those who see the whole app.
 */
export function eventVisible(db: Db, caller: Caller, alias: string): Statement {
  if (canSeeWholeApp(caller)) return inScope(db, caller, alias);
  const column = (name: string) => db(`${alias}.${name}`);
  const administered = caller.kind === 'user' && caller.orgRole === 'admin' ? (caller.orgId ?? null) : null;
  return db`${inScope(db, caller, alias)} and (
      (${ownedVisible(db, caller, alias)})
      or (${column('subject_kind')} in ('source', 'ingestion') and ${column('org_id')} = ${administered})
      or (${column('subject_kind')} = 'file' and exists (
        select 1 from files f where f.app_id = ${column('app_id')} and f.id = ${column('subject_id')}
          and ${fileGranted(db, caller, 'f', 'read')})))
    and (${column('name')} not in ('approval.requested', 'approval.answered') or exists (
      select 1 from approvals p where p.app_id = ${column('app_id')} and p.id = ${column('subject_id')}
        and ${approvalVisible(db, caller, 'p')}))
    and ${documentsVisible(db, caller, alias)}`;
}

/** SQL: the event `alias` is not about documents that are hidden from the caller. */
export function documentsVisible(db: Db, caller: Caller, alias: string): Statement {
  if (canSeeWholeApp(caller)) return db`true`;
  const column = (name: string) => db(`${alias}.${name}`);
  return db`(${column('subject_kind')} is distinct from 'ingestion' or exists (
    select 1 from knowledge_ingestions i
    where i.app_id = ${column('app_id')} and i.id = ${column('subject_id')} and ${ingestionVisible(db, caller, 'i')}))`;
}
