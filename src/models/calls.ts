import type { Database } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { readTime } from '../http/route/times.ts';
import { found } from '../lib/errors.ts';
import type { Caller } from '../tenancy/caller.ts';
import { readsEverything } from '../tenancy/key-scopes.ts';
import { fieldId, pathId } from '../tenancy/references.ts';
import * as store from './call-store.ts';
import type { CallFilter } from './schema.ts';

/** The records of calls of models. */
export function createCallRecords(db: Database) {
  return {
    listCalls: (caller: Caller, page: PageRequest, filter: CallFilter) =>
      store.listCalls(db, caller, readFilter(filter), page),

    /** A call, with its contents for those who may read what they were made from. */
    async getCall(caller: Caller, id: string): Promise<store.CallRow> {
      const row = found(await store.findCall(db, caller, pathId('modelCall', id)));
      return readsEverything(caller.scopes) ? row : { ...row, prompt: null, output: null };
    },
  };
}

function readFilter(filter: CallFilter): store.StoredFilter {
  return {
    ...{ model: filter.model, status: filter.status },
    userId: fieldId('user', 'user', filter.user),
    agentId: fieldId('agent', 'agent', filter.agent),
    automationId: fieldId('automation', 'automation', filter.automation),
    runId: fieldId('automationRun', 'run', filter.run),
    extractionId: fieldId('extraction', 'extraction', filter.extraction),
    since: readTime('since', filter.since),
    until: readTime('until', filter.until),
  };
}
