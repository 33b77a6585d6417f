import { takeEntries } from '../automations/retention/prune.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import type { Database, Db, Transaction } from '../db/database.ts';
import { deleteDoomedBlob, isBackupRunning } from '../files/store.ts';
import { addJob } from '../jobs/queue.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { JobContext } from '../jobs/workers.ts';
import { type ErasedDocuments, eraseDocumentRows } from '../knowledge/documents/erase.ts';
import { signingKeys } from '../ledger/keys.ts';
import type { RemovedRun } from '../ledger/note-removals.ts';
import type { Ledger } from '../ledger/seal.ts';
import { signStatement } from '../ledger/statement.ts';
import type { Clock } from '../lib/clock.ts';
import { found } from '../lib/errors.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { type Retention, stateErasure } from './certificate.ts';
import { type Deletion, deleteBatch, deleteFiles } from './deletions.ts';
import { contentsOfSource } from './of-source.ts';
import { ownedByUser, propertyOfUser, runOfUser, tracesOfUser } from './of-user.ts';
import { findReceivers, type Services } from './receivers.ts';
import type { Register } from './register.ts';
import * as store from './store.ts';

export type EraseDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  ledger: Ledger;
  blobs: BlobStore;
  documents: ErasedDocuments;
  services: Services;
  retention: Retention;
  register: Register;
};

/** What deleting rows needs: a restore has no parsers and no blobs yet. */
type EraseRowsDeps = Pick<EraseDeps, 'db' | 'clock' | 'ledger' | 'services'>;

const runsBatch = 50;
const blobsBatch = 100;
/** A backup that is being taken copies blobs for so long that there is no point in asking more often. */
const backupRetryMs = 30_000;

/**
 * Erases a subject. Every step deletes in batches, each with its count in one transaction, and finds what is left by
 * itself: a job that was killed is simply repeated.
 */
export async function erase(deps: EraseDeps, payload: { appId: string; erasureId: string }, context: JobContext) {
  const { db } = deps;
  const erasure = await store.findErasureById(db, payload.appId, payload.erasureId);
  if (erasure === undefined || erasure.status === 'done') return;
  await deps.register.add(erasure);
  await eraseRows(deps, erasure, context.signal);
  const { work } = found(await store.findErasureById(db, erasure.appId, erasure.id));
  if (work.sourceId !== undefined)
    await deps.documents.compact({ appId: erasure.appId, sourceId: work.sourceId }, work.boundary ?? 0, context.signal);
  if (!(await removeBlobs(deps, erasure, context.signal)))
    return addJob(db, taskNames.erase, payload, {
      key: `erase/${erasure.id}`,
      inMs: backupRetryMs,
    });
  await finish(deps, erasure);
}

/** Deletes the rows of a subject, without what needs more than the database. */
export async function eraseRows(deps: EraseRowsDeps, erasure: store.ErasureRow, signal: AbortSignal): Promise<void> {
  const { db } = deps;
  if (erasure.receivers === null)
    await store.setReceivers(db, erasure, await findReceivers(db, erasure, deps.services));
  if (erasure.subjectKind === 'user') await eraseUser(deps, erasure, signal);
  else if (erasure.subjectKind === 'source') await eraseSource(db, erasure, erasure.subjectId, signal);
  else await eraseDocument(db, erasure);
}

async function eraseUser(deps: EraseRowsDeps, erasure: store.ErasureRow, signal: AbortSignal): Promise<void> {
  const { db, ledger } = deps;
  const { appId, subjectId } = erasure;
  await ledger.noteDeletion(erasure, { kind: 'user', id: subjectId });
  await deleteAll(db, erasure, tracesOfUser(erasure), signal);
  for (;;) {
    const sources = await db<{ id: string }[]>`
      select t.id from knowledge_sources t where t.app_id = ${appId} and ${ownedByUser(db, erasure)} limit 100`;
    if (sources.length === 0) break;
    for (const { id } of sources) {
      await db.begin((tx) => store.closeSource(tx, appId, id));
      await eraseSource(db, erasure, id, signal);
    }
  }
  await repeat(() => deleteRuns(deps, erasure), signal);
  await repeat(() => db.begin((tx) => deleteUploads(tx, erasure)), signal);
  const mine = (each: Db) => ownedByUser(each, erasure);
  const ofConfigs = (each: Db) =>
    each`t.id in (select v.file_id from config_versions v join configs t on t.app_id = v.app_id and t.id = v.config_id
      where v.app_id = ${appId} and ${mine(each)})`;
  for (const where of [ofConfigs, mine]) await repeat(() => db.begin((tx) => deleteFiles(tx, erasure, where)), signal);
  await db.begin((tx) => forgetApprover(tx, erasure));
  await deleteAll(db, erasure, propertyOfUser(erasure), signal);
}

async function eraseSource(db: Database, erasure: store.ErasureRow, sourceId: string, signal: AbortSignal) {
  const { appId, subjectKind } = erasure;
  const ofDocuments = (each: Db) =>
    each`(t.id in (select d.file_id from knowledge_documents d where d.app_id = ${appId} and d.source_id = ${sourceId})
      or t.id in (select v.file_id from knowledge_versions v where v.app_id = ${appId} and v.source_id = ${sourceId}))`;
  if (erasure.withFiles && subjectKind === 'source')
    await repeat(() => db.begin((tx) => deleteFiles(tx, erasure, ofDocuments)), signal);
  await deleteAll(db, erasure, contentsOfSource(erasure, sourceId), signal);
}

/** Deletes a document and everything of it except its words in the index, which a compaction removes. */
async function eraseDocument(db: Database, erasure: store.ErasureRow): Promise<void> {
  const { appId, subjectId, withFiles } = erasure;
  await db.begin(async (tx) => {
    const current = found(await store.findErasureById(tx, appId, erasure.id));
    if (current.work.sourceId !== undefined) return;
    const erased = await eraseDocumentRows(tx, appId, subjectId);
    if (erased === undefined) return;
    const ofDocument = (each: Db) => each`t.id = any(${erased.fileIds}::uuid[])`;
    while (withFiles && (await deleteFiles(tx, erasure, ofDocument)));
    for (const [name, count] of Object.entries(erased.counts)) await store.addCount(tx, erasure, name, count);
    await store.setWork(tx, erasure, { sourceId: erased.sourceId, boundary: erased.boundary });
  });
}

async function deleteAll(db: Database, erasure: store.ErasureRow, all: readonly Deletion[], signal: AbortSignal) {
  for (const deletion of all) await repeat(() => db.begin((tx) => deleteBatch(tx, erasure, deletion)), signal);
}

/** Repeats a batch until it finds nothing. Throws when the process stops; the job then resumes elsewhere. */
async function repeat(batch: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  while (await batch()) signal.throwIfAborted();
}

/** Deletes a batch of runs with their journals. The signed ledger says which, as for runs that retention deletes. */
async function deleteRuns({ db, ledger, clock }: EraseRowsDeps, erasure: store.ErasureRow): Promise<boolean> {
  const { appId } = erasure;
  const next = await db<{ id: string; sequence: number }[]>`
    select t.id, t.sequence from automation_runs t
    where t.app_id = ${appId} and ${runOfUser(db, erasure)} limit ${runsBatch}`;
  if (next.length === 0) return false;
  const ids = takeEntries(next).map(({ id }) => id);
  // The runs that these started are found by their parents. The last of them is passed on before a parent is deleted.
  const passOn = async (tx: Transaction) => {
    const { count } = await tx`
      update automation_runs c set user_id = ${erasure.subjectId} where c.app_id = ${appId} and c.id = any(array(
        select t.id from automation_runs t where t.app_id = ${appId} and t.parent_run_id = any(${ids}::uuid[])
          and not (t.id = any(${ids}::uuid[])) and t.user_id is distinct from ${erasure.subjectId}
        order by t.id limit ${runsBatch} for update of t))`;
    return count;
  };
  if ((await db.begin(passOn)) === runsBatch) return true;
  await db.begin(async (tx) => {
    await passOn(tx);
    const runs = await tx<RemovedRun[]>`
      select id, sequence, link, coalesce(completed_at, ${clock.now()}) as at from automation_runs
      where app_id = ${appId} and id = any(${ids}::uuid[]) order by id for update`;
    if (runs.length > 0) await ledger.noteRemovedRuns(tx, erasure, runs);
    const [entries] = await tx<[{ total: number }]>`
      select count(*)::integer as total from automation_run_entries
      where app_id = ${appId} and run_id = any(${ids}::uuid[])`;
    const calls = await tx`delete from model_calls where app_id = ${appId} and run_id = any(${ids}::uuid[])`;
    const approvals = await tx`delete from approvals where app_id = ${appId} and run_id = any(${ids}::uuid[])`;
    const events = await tx`
      delete from events where app_id = ${appId} and subject_id = any(${ids}::uuid[])`;
    const gone = await tx`delete from automation_runs where app_id = ${appId} and id = any(${ids}::uuid[])`;
    await store.addCount(tx, erasure, 'model_calls', calls.count);
    await store.addCount(tx, erasure, 'approvals', approvals.count);
    await store.addCount(tx, erasure, 'events', events.count);
    await store.addCount(tx, erasure, 'journal_entries', entries.total);
    await store.addCount(tx, erasure, 'runs', gone.count);
  });
  return true;
}

async function deleteUploads(tx: Transaction, erasure: store.ErasureRow): Promise<boolean> {
  const { appId, id, subjectId } = erasure;
  const gone = await tx`
    with gone as (
      delete from uploads u where u.app_id = ${appId} and u.id = any(array(
        select t.id from uploads t where t.app_id = ${appId} and t.user_id = ${subjectId}
        order by t.id limit ${runsBatch} for update of t))
      returning u.blob_key, u.state, u.finished_at),
    doomed as (
      insert into doomed_blobs as d (app_id, blob_key, partial, erasure_id)
      select ${appId}, blob_key, state, ${id}::uuid from gone where finished_at is null
      on conflict (app_id, blob_key) do update
        set due_at = excluded.due_at, partial = excluded.partial, erasure_id = excluded.erasure_id)
    select 1 from gone`;
  await store.addCount(tx, erasure, 'uploads', gone.count);
  return gone.count > 0;
}

/** Removes the user from approvals of others, and what was sent to the user's address. */
async function forgetApprover(tx: Transaction, erasure: store.ErasureRow): Promise<void> {
  const { appId, sandboxId, subjectId, work } = erasure;
  const asked = await tx`
    update approvals set users = array_remove(users, ${subjectId}),
      excluded_user_id = nullif(excluded_user_id, ${subjectId}),
      excluded_users = array_remove(excluded_users, ${subjectId})
    where app_id = ${appId} and sandbox_id = ${sandboxId}
      and (${subjectId} = any(users || excluded_users) or excluded_user_id = ${subjectId})`;
  await store.addCount(tx, erasure, 'approval_requests', asked.count);
  if (!work.email) return;
  const links = await tx`
    delete from approval_links l using approvals a where l.app_id = ${appId} and a.app_id = l.app_id
      and a.id = l.approval_id and a.sandbox_id = ${sandboxId} and lower(l.sent_to) = lower(${work.email})`;
  await store.addCount(tx, erasure, 'approval_links', links.count);
  await tx`
    update approvals set answered_by = 'holder of a link that was erased'
    where app_id = ${appId} and sandbox_id = ${sandboxId}
      and lower(answered_by) = lower(${`holder of the link sent to ${work.email}`})`;
}

/** Deletes the contents of erased files. Returns false while a backup still has to copy them. */
async function removeBlobs({ db, blobs }: EraseDeps, { appId, id }: store.ErasureRow, signal: AbortSignal) {
  for (;;) {
    const due = await db<{ blobKey: string; partial: never | null }[]>`
      select blob_key, partial from doomed_blobs where app_id = ${appId} and erasure_id = ${id}
      order by blob_key limit ${blobsBatch}`;
    if (due.length === 0) return true;
    // A backup that starts after this does not see the rows of these blobs.
    if (await isBackupRunning(db)) return false;
    // No transaction is open meanwhile: the store may take long. A blob may be deleted twice, and its record is last.
    for (const { blobKey, partial } of due) {
      await blobs.remove(blobKey);
      if (partial !== null) await blobs.partials.remove(blobKey, partial);
      await deleteDoomedBlob(db, appId, blobKey);
      signal.throwIfAborted();
    }
  }
}

/** Signs what was done. */
async function finish({ db, clock, secrets, retention }: EraseDeps, { appId, id }: store.ErasureRow): Promise<void> {
  const [key] = signingKeys(secrets);
  if (key === undefined) throw new Error('There is no key to sign with.');
  const now = clock.now();
  await db.begin(async (tx) => {
    const done = found(await store.findErasureById(tx, appId, id));
    const certificate = signStatement(key, 'quarry:erasure:1', stateErasure(done, now, retention));
    await store.complete(tx, done, certificate, now);
  });
}
