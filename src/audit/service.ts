import type { Static } from 'typebox';
import type { Database } from '../db/database.ts';
import { invalidField } from '../errors.ts';
import type { PageRequest } from '../http/pages.ts';
import { type IdKind, parseId } from '../ids.ts';
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
      // A caller finds their own latest changes.
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

function readTime(field: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const time = isoTime.test(text) ? Date.parse(text) : Number.NaN;
  if (!(time >= earliestTime && time <= latestTime))
    throw invalidField(field, 'must be an ISO 8601 time between the years 1 and 9999');
  return new Date(time);
}

const isoTime = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;
const earliestTime = Date.parse('0001-01-01T00:00:00Z');
const latestTime = Date.parse('9999-12-31T23:59:59.999Z');
