import type { Static } from 'typebox';
import type { Database } from '../db/database.ts';
import { refuseDuplicate } from '../db/unique.ts';
import { deleteOwner } from '../deletions/service.ts';
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

export type UserService = {
  get(caller: Caller, id: string): Promise<store.UserRow>;
  /** Finds a user without a visibility check, for sign-in. */
  findInScope(scope: Scope, id: string): ReturnType<typeof store.findUserInScope>;
  /** Finds the password hash of an e-mail address, likewise. */
  findPassword(scope: Scope, email: string): ReturnType<typeof store.findPassword>;
  create(caller: Caller, input: Static<typeof userCreateSchema>): Promise<store.UserRow>;
  list(
    caller: Caller,
    page: PageRequest,
    query: { search?: string | undefined; org?: string | undefined },
  ): Promise<[store.UserRow[], number]>;
  update(caller: Caller, id: string, input: Static<typeof userUpdateSchema>): Promise<store.UserRow>;
  /** Ends the user's access, refresh and personal tokens and console sessions. End users can only end their own. */
  endSessions(caller: Caller, id: string): Promise<void>;
  remove(caller: Caller, id: string): Promise<void>;
};

type UserDeps = { db: Database; clock: Clock; ledger: Ledger };

export function createUserService({ db, clock, ledger }: UserDeps): UserService {
  async function get(caller: Caller, id: string): Promise<store.UserRow> {
    return found(await store.findUser(db, caller, userPathId(caller, id)));
  }

  return {
    get,

    findInScope: (scope, id) => store.findUserInScope(db, scope, id),
    findPassword: (scope, email) => store.findPassword(db, scope, email),

    async create(caller, input) {
      const orgId = await readOrg(db, caller, input, null);
      const id = newUuid();
      const passwordHash = input.password === undefined ? null : await hashPassword(input.password);
      await uniqueEmail(() =>
        store.insertUser(db, caller, {
          id,
          email: input.email,
          name: input.name ?? null,
          passwordHash,
          orgId,
          orgRole: orgId === null ? null : (input.org_role ?? 'member'),
          isSystemUser: input.is_system_user ?? false,
          metadata: input.metadata ?? {},
        }),
      );
      return get(caller, formatId('user', id));
    },

    list(caller, page, query) {
      const org = fieldId('org', 'org', query.org);
      return store.listUsers(db, caller, page, { search: query.search, org });
    },

    async update(caller, id, input) {
      const user = await get(caller, id);
      const orgId = await readOrg(db, caller, input, user.orgId);
      const passwordHash = input.password === undefined ? undefined : await hashPassword(input.password);
      await uniqueEmail(() =>
        db.begin(async (tx) => {
          await store.updateUser(tx, caller, user.id, {
            ...{ email: input.email, name: input.name, metadata: input.metadata },
            ...{ passwordHash, now: clock.now() },
            ...{ orgId: input.org === undefined ? undefined : orgId, orgRole: input.org_role },
          });
          if (passwordHash !== undefined) await store.revokePersonalTokens(tx, caller, user.id);
        }),
      );
      return get(caller, id);
    },

    async endSessions(caller, id) {
      requireSelf(caller, id);
      const user = await get(caller, id);
      await db.begin(async (tx) => {
        await store.beginSessionEpoch(tx, caller, user.id, clock.now());
        await store.revokePersonalTokens(tx, caller, user.id);
      });
    },

    async remove(caller, id) {
      const userId = userPathId(caller, id);
      await ledger.noteDeletion(caller, { kind: 'user', id: userId });
      found(await deleteOwner(db, caller, 'user', userId));
    },
  };
}

/** The org that the user is in afterwards. `present` is the one before. */
async function readOrg(
  db: Database,
  caller: Caller,
  input: Pick<Static<typeof userUpdateSchema>, 'org' | 'org_role'>,
  present: string | null,
): Promise<string | null> {
  const { org } = await findNamedOwners(db, caller, { org: input.org ?? undefined });
  const after = input.org === undefined ? present : (org?.id ?? null);
  if (input.org_role !== undefined && after === null) throw invalidField('org_role', 'requires an org');
  return after;
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
