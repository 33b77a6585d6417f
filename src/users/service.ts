import type { Static } from 'typebox';
import type { Database } from '../db/database.ts';
import { refuseDuplicate } from '../db/unique.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Ledger } from '../ledger/seal.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError, found, invalidField, notFound } from '../lib/errors.ts';
import { formatId, newUuid, parseId } from '../lib/ids.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { fieldId, findNamedOwners, pathId } from '../tenancy/references.ts';
import { hashPassword } from './passwords.ts';
import type { userCreateSchema, userUpdateSchema } from './schema.ts';
import * as store from './store.ts';

export type UserService = ReturnType<typeof createUserService>;

export function createUserService({ db, clock, ledger }: { db: Database; clock: Clock; ledger: Ledger }) {
  async function get(caller: Caller, id: string): Promise<store.UserRow> {
    return found(await store.findUser(db, caller, userPathId(caller, id)));
  }

  return {
    get,

    /** Finds a user and a password hash without a visibility check, for sign-in. */
    findInScope: (scope: Scope, id: string) => store.findUserInScope(db, scope, id),
    findPassword: (scope: Scope, email: string) => store.findPassword(db, scope, email),

    async create(caller: Caller, input: Static<typeof userCreateSchema>): Promise<store.UserRow> {
      const { org } = await findNamedOwners(db, caller, { org: input.org ?? undefined });
      if (input.org_role !== undefined && !org) throw invalidField('org_role', 'requires an org');
      const id = newUuid();
      const passwordHash = input.password === undefined ? null : await hashPassword(input.password);
      await uniqueEmail(() =>
        store.insertUser(db, caller, {
          id,
          email: input.email,
          name: input.name ?? null,
          passwordHash,
          orgId: org?.id ?? null,
          orgRole: org ? (input.org_role ?? 'member') : null,
          isSystemUser: input.is_system_user ?? false,
          metadata: input.metadata ?? {},
        }),
      );
      return get(caller, formatId('user', id));
    },

    list(caller: Caller, page: PageRequest, query: { search?: string | undefined; org?: string | undefined }) {
      const org = fieldId('org', 'org', query.org);
      return store.listUsers(db, caller, page, { search: query.search, org });
    },

    async update(caller: Caller, id: string, input: Static<typeof userUpdateSchema>): Promise<store.UserRow> {
      const user = await get(caller, id);
      const { org } = await findNamedOwners(db, caller, { org: input.org ?? undefined });
      const orgAfter = input.org === undefined ? user.orgId : (org?.id ?? null);
      if (input.org_role !== undefined && orgAfter === null) throw invalidField('org_role', 'requires an org');
      const passwordHash = input.password === undefined ? undefined : await hashPassword(input.password);
      await uniqueEmail(() =>
        db.begin(async (tx) => {
          await store.updateUser(tx, caller, user.id, {
            email: input.email,
            name: input.name,
            passwordHash,
            now: clock.now(),
            orgId: input.org === undefined ? undefined : (org?.id ?? null),
            orgRole: input.org_role,
            metadata: input.metadata,
          });
          if (passwordHash !== undefined) await store.revokePersonalTokens(tx, caller, user.id);
        }),
      );
      return get(caller, id);
    },

    /** Ends the user's access, refresh and personal tokens and console sessions. End users can only end their own. */
    async endSessions(caller: Caller, id: string): Promise<void> {
      requireSelf(caller, id);
      const user = await get(caller, id);
      await db.begin(async (tx) => {
        await store.beginSessionEpoch(tx, caller, user.id, clock.now());
        await store.revokePersonalTokens(tx, caller, user.id);
      });
    },

    async remove(caller: Caller, id: string): Promise<void> {
      const userId = userPathId(caller, id);
      await ledger.noteDeletion(caller, { kind: 'user', id: userId });
      found(await store.deleteUser(db, caller, userId));
    },
  };
}

/** The user in a path; `me` is the calling user. */
function userPathId(caller: Caller, text: string): string {
  if (text !== 'me') return pathId('user', text);
  if (caller.kind !== 'user') throw notFound();
  return caller.userId;
}

/** 403 for an end user who names another user, whether or not that user exists. */
export function requireSelf(caller: Caller, text: string): void {
  if (caller.kind !== 'user' || text === 'me' || parseId('user', text) === caller.userId) return;
  throw new AppError('forbidden', 'You may do this only for yourself.');
}

function uniqueEmail<T>(write: () => Promise<T>): Promise<T> {
  return refuseDuplicate(
    'users_email',
    { field: 'email', message: 'Another user already has this e-mail address.' },
    write,
  );
}
