import type { Static } from 'typebox';
import type { Database } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { readTime } from '../http/route/times.ts';
import { invalidField } from '../lib/errors.ts';
import { type IdKind, parseId } from '../lib/ids.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { AuditLog } from './log.ts';
import type { auditQuery, credentialUseQuery } from './schema.ts';
import * as store from './store.ts';

export type AuditService = ReturnType<typeof createAuditService>;

/** The audit log of one app and sandbox, for developers. */
export function createAuditService({ db, audit }: { db: Database; audit: AuditLog | undefined }) {
  return {
    async list(scope: Scope, query: Static<typeof auditQuery>, page: PageRequest) {
      const filter = {
        actorId: readId('actor', query.actor, ['user', 'key', 'developer', 'source']),
        action: query.action,
        resource: query.resource,
        since: readTime('since', query.since),
        until: readTime('until', query.until),
      };
      // So that callers find their own latest changes.
      await audit?.flush();
      return store.listEntries(db, scope, filter, page);
    },

    async listUses(scope: Scope, query: Static<typeof credentialUseQuery>, page: PageRequest) {
      const credential = readId('credential', query.credential, ['user', 'key', 'token']);
      await audit?.flush();
      return store.listUses(db, scope, credential, page);
    },
  };
}

function readId(field: string, text: string | undefined, kinds: IdKind[]): string | undefined {
  if (text === undefined) return undefined;
  for (const kind of kinds) {
    const id = parseId(kind, text);
    if (id !== undefined) return id;
  }
  throw invalidField(field, 'is not an id of the right type');
}
