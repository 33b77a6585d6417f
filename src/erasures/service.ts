import { Readable } from 'node:stream';
import type { Static } from 'typebox';
import type { BlobStore } from '../blob/blob-store.ts';
import { type Database, type Db, isUniqueViolation } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { addJob } from '../jobs/queue.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError, found } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { readsEverything, requireScope } from '../tenancy/key-scopes.ts';
import { fieldId, pathId, unknownReference } from '../tenancy/references.ts';
import { requireRoom } from '../tenancy/room.ts';
import { type erasureCreateSchema, erasuresMax, runningErasuresMax, type SubjectKind, subjectKinds } from './schema.ts';
import * as store from './store.ts';

export type ErasureService = ReturnType<typeof createErasureService>;

type ServiceDeps = { db: Database; clock: Clock; blobs: BlobStore };

export function createErasureService({ db, clock, blobs }: ServiceDeps) {
  async function get(caller: Caller, id: string): Promise<store.ErasureRow> {
    return found(await store.findErasure(db, caller, pathId('erasure', id)));
  }

  return {
    get,

    async create(caller: Caller, input: Static<typeof erasureCreateSchema>): Promise<store.ErasureRow> {
      const { kind, id: subjectId } = readSubject(input);
      requireDeletion(caller, kind, input.files === true);
      if (!(await store.findSubject(db, caller, kind, subjectId))) throw unknownReference(kind);
      const { appId, sandboxId } = caller;
      const id = newUuid();
      const order = { appId, sandboxId, id, subjectKind: kind, subjectId, withFiles: input.files ?? false };
      await refuseRunning(() =>
        db.begin(async (tx) => {
          await requireErasureRoom(tx, { appId, sandboxId });
          await startErasure(tx, { ...order, createdAt: clock.now() });
        }),
      );
      return found(await store.findErasureById(db, appId, id));
    },

    /** Everything about a user, as one archive that is read while it is written. */
    async export(caller: Caller, id: string): Promise<Readable> {
      if (!readsEverything(caller.scopes))
        throw new AppError('forbidden', 'The scopes of this key do not allow reading everything. It requires read.');
      const user = found(await store.findExportedUser(db, caller, pathId('user', id)));
      const { exportUser } = await import('./export.ts');
      return Readable.from(exportUser({ db, blobs }, user, clock.now()), { objectMode: false });
    },

    list: (caller: Caller, page: PageRequest) => store.listErasures(db, caller, page),

    async certificate(caller: Caller, id: string): Promise<store.Certificate> {
      const { certificate } = await get(caller, id);
      if (certificate === null) throw new AppError('conflict', 'The erasure is still running.');
      return certificate;
    },
  };
}

/**
 * Hides the subject, stores the order and queues the work, in one transaction. Returns false if the order exists, or the
 * subject does not.
 */
export async function startErasure(tx: Db, order: Omit<store.NewErasure, 'work'>): Promise<boolean> {
  const { appId, id, subjectKind, subjectId, createdAt } = order;
  if (!(await store.isSubject(tx, order, subjectKind, subjectId))) return false;
  const user = subjectKind === 'user' ? await store.hideUser(tx, order, subjectId, createdAt) : undefined;
  if (!(await store.insertErasure(tx, { ...order, work: user === undefined ? {} : { email: user.email } })))
    return false;
  if (subjectKind === 'source') await store.closeSource(tx, appId, subjectId);
  await addJob(tx, taskNames.erase, { appId, erasureId: id }, { key: `erase/${id}` });
  return true;
}

/** Exactly one of the three members that name what is erased. */
function readSubject(input: Static<typeof erasureCreateSchema>): { kind: SubjectKind; id: string } {
  const named = subjectKinds.filter((kind) => input[kind] !== undefined);
  const [kind] = named;
  if (kind === undefined || named.length > 1) {
    const message = 'exactly one of user, document and source is required';
    const fields = (named.length > 1 ? named : subjectKinds).map((field) => ({ field, message }));
    throw new AppError('invalid_parameters', `user, document, source: ${message}`, { fields });
  }
  return { kind, id: fieldId(kind, kind, input[kind] ?? '') };
}

/** Throws 403 unless the caller may also delete what is erased by itself. */
function requireDeletion({ scopes }: Caller, kind: SubjectKind, withFiles: boolean): void {
  const words = { what: `erasing a ${kind}` };
  requireScope(scopes, { area: kind === 'user' ? 'people' : 'knowledge', reads: false }, words);
  if (withFiles) requireScope(scopes, { area: 'files', reads: false }, { what: 'erasing files' });
}

async function requireErasureRoom(tx: Db, scope: Scope): Promise<void> {
  const runningMessage = `At most ${runningErasuresMax} erasures run at a time. Wait until one is done.`;
  const running = { things: 'running erasures', max: runningErasuresMax, message: runningMessage };
  await requireRoom(tx, scope, running, () => store.countErasures(tx, scope, 'running'));
  const message = `An app or a sandbox keeps at most ${erasuresMax} erasures.`;
  const all = { things: 'erasures', max: erasuresMax, message };
  await requireRoom(tx, scope, all, () => store.countErasures(tx, scope, 'any'));
}

async function refuseRunning(write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isUniqueViolation(error, 'erasures_running')) throw error;
    throw new AppError('conflict', 'An erasure of it is already running.', { cause: error });
  }
}
