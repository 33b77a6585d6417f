import type { Database } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { retrySetAside } from '../jobs/set-aside.ts';
import { notFound } from '../lib/errors.ts';
import type { Scope } from '../tenancy/caller.ts';
import { pathId } from '../tenancy/references.ts';
import * as store from './store.ts';

export type SetAsideJobService = ReturnType<typeof createSetAsideJobService>;

/** Lists and retries the jobs of an app that are set aside, for its operators. */
export function createSetAsideJobService({ db }: { db: Database }) {
  return {
    list: (scope: Scope, page: PageRequest) => store.listSetAsideJobs(db, scope, page),

    async retry(scope: Scope, id: string): Promise<store.SetAsideJobRow> {
      const number = jobNumber(pathId('job', id));
      return db.begin(async (tx) => {
        const job = number === undefined ? undefined : await store.findSetAsideJob(tx, scope, number);
        if (job === undefined || !(await retrySetAside(tx, job.id, scope.appId))) throw notFound();
        return job;
      });
    },
  };
}

/** The queue numbers its jobs. The public id wraps the number in the format of all ids. */
export function jobUuid(number: string): string {
  const hex = BigInt(number).toString(16).padStart(16, '0');
  return `${unusedHalf}-${hex.slice(0, 4)}-${hex.slice(4)}`;
}

function jobNumber(uuid: string): string | undefined {
  const number = BigInt(`0x${uuid.slice(-17).replace('-', '')}`);
  return uuid.startsWith(unusedHalf) && number <= jobNumberMax ? String(number) : undefined;
}

const unusedHalf = '00000000-0000-0000';
const jobNumberMax = 2n ** 63n - 1n;
