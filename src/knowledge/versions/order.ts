import type { Static } from 'typebox';
import { readTime } from '../../http/route/times.ts';
import { AppError, found, invalidField } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import { type Caller, canSeeWholeApp } from '../../tenancy/caller.ts';
import type { IngestService } from '../ingestion/service.ts';
import type { IngestionView } from '../ingestion/store.ts';
import type { VisibleSource } from '../sources/find.ts';
import { type FindDeps, findVersioned } from './find.ts';
import type { RestoreOrder } from './restore.ts';
import type { restoreSchema } from './schema.ts';
import * as store from './store.ts';

const dayMs = 24 * 3_600_000;
/** As many lists of grants as the readers of an ingestion may need. */
const aclsMax = 100;

/** Later than every change. */
const latest = new Date('9999-12-31T00:00:00Z');

export type OrderDeps = FindDeps & { ingestions: IngestService };

/** How restores of documents and sources are ordered. Ingestions carry them out. */
export function createRestoreOrders(deps: OrderDeps) {
  const { db, clock, sources, ingestions } = deps;

  function readPast(source: VisibleSource, text: string): Date {
    const at = found(readTime('at', text));
    const now = clock.now();
    const { versionRetentionDays: days, versionsFrom: from } = source;
    if (days === null || from === null) throw invalidField('at', 'the source keeps no versions');
    if (at > now) throw invalidField('at', 'is in the future');
    const since = new Date(Math.max(from.getTime(), now.getTime() - days * dayMs));
    if (at < since)
      throw invalidField('at', `is before ${since.toISOString()}, the first time of which versions are kept`);
    return at;
  }

  /** What a restore would change among the documents that the caller sees. What is hidden stays as it is. */
  async function plan(caller: Caller, text: string, at: string) {
    const source = await sources.getForChange(db, caller, text, 'update');
    const key = { appId: source.appId, sourceId: source.id };
    const acls = canSeeWholeApp(caller) ? undefined : await store.listAdmitted(db, caller, key, aclsMax + 1);
    if (acls !== undefined && acls.length > aclsMax)
      throw new AppError('conflict', `You see documents with more than ${aclsMax} lists of grants. Use a secret key.`);
    const restore = { ...key, at: readPast(source, at), until: latest, acls };
    const counts = await store.countRestoreSteps(db, restore);
    return { source, acls, plan: { at: restore.at.toISOString(), ...counts } };
  }

  return {
    /** Starts to make a version the newest one. A document that was deleted comes back. */
    async restore(caller: Caller, text: string, number: number): Promise<IngestionView> {
      const { id, sourceId } = await findVersioned(deps, caller, text);
      const source = await sources.getForChange(db, caller, formatId('source', sourceId), 'update');
      const version = found(await store.findVersion(db, caller.appId, id, number, clock.now()));
      if (version.endedAt === null) throw new AppError('conflict', 'This is the current version.');
      const order: RestoreOrder = { document: id, restored_version: number };
      return ingestions.restore(caller, source, order);
    },

    plan: async (caller: Caller, text: string, at: string) => (await plan(caller, text, at)).plan,

    /** Starts to bring a source back to a time. Deleting most of it must be confirmed. */
    async restoreSource(caller: Caller, text: string, input: Static<typeof restoreSchema>): Promise<IngestionView> {
      const { source, acls, plan: planned } = await plan(caller, text, input.at);
      const { documents: all, deleted } = planned;
      if (deleted * 2 > all && input.confirm_deletions !== true)
        throw new AppError(
          'conflict',
          `This deletes ${deleted} of ${all} documents. Confirm it with confirm_deletions.`,
          {
            details: { deleted, documents: all },
          },
        );
      const order: RestoreOrder = { restored_to: planned.at, ...(acls && { acls }) };
      return ingestions.restore(caller, source, order);
    },
  };
}
