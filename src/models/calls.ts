import type { Database } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { readTime } from '../http/route/times.ts';
import { found } from '../lib/errors.ts';
import type { IdKind } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { fieldId, pathId } from '../tenancy/references.ts';
import * as store from './call-store.ts';
import type { CallFilter } from './schema.ts';

/** The records of calls of models. */
export function createCallRecords(db: Database) {
  return {
    listCalls: (caller: Caller, page: PageRequest, filter: CallFilter) =>
      store.listCalls(db, caller, readFilter(filter), page),

    async getCall(caller: Caller, id: string): Promise<store.CallRow> {
      return found(await store.findCall(db, caller, pathId('modelCall', id)));
    },
  };
}

function readFilter(filter: CallFilter): store.StoredFilter {
  const id = (kind: IdKind, field: keyof CallFilter) => {
    const text = filter[field];
    return text === undefined ? undefined : fieldId(kind, field, text);
  };
  return {
    ...{ model: filter.model, status: filter.status },
    userId: id('user', 'user'),
    agentId: id('agent', 'agent'),
    automationId: id('automation', 'automation'),
    runId: id('automationRun', 'run'),
    extractionId: id('extraction', 'extraction'),
    since: readTime('since', filter.since),
    until: readTime('until', filter.until),
  };
}
