import type { Static } from 'typebox';
import type { Database, Db, Transaction } from '../db/database.ts';
import { refuseDuplicate } from '../db/unique.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { AppError, found } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { fieldId, pathId, unknownReference } from '../tenancy/references.ts';
import { lockRoom, requireRoom } from '../tenancy/room.ts';
import {
  type groupCreateSchema,
  type groupListSchema,
  groupMembersMax,
  type groupMembersSchema,
  groupsMax,
} from './schema.ts';
import * as store from './store.ts';

export type GroupService = ReturnType<typeof createGroupService>;

/** The groups of an app. Developers and secret keys manage them; issuers supply theirs. */
export function createGroupService({ db }: { db: Database }) {
  const get = (caller: Caller, id: string) => getGroup(db, caller, id);

  return {
    ...createGroupMembers(db),
    get,

    async create(caller: Caller, input: Static<typeof groupCreateSchema>): Promise<store.GroupRow> {
      const group = {
        id: newUuid(),
        namespace: input.namespace,
        externalId: input.external_id,
        name: input.name ?? null,
      };
      const duplicate = { field: 'external_id', message: 'The namespace already has a group with this name.' };
      return refuseDuplicate('groups_external_id', duplicate, () =>
        db.begin(async (tx) => {
          await requireRoom(tx, caller, { things: 'groups', max: groupsMax }, () => store.countGroups(tx, caller));
          return store.insertGroup(tx, caller, group);
        }),
      );
    },

    list(
      caller: Caller,
      page: PageRequest,
      { namespace, external_id: externalId, user, search }: Static<typeof groupListSchema>,
    ): Promise<[store.GroupRow[], number]> {
      const userId = fieldId('user', 'user', user);
      return store.listGroups(db, caller, { namespace, externalId, userId, search }, page);
    },

    async update(caller: Caller, id: string, input: { name?: string | null | undefined }): Promise<store.GroupRow> {
      const group = await get(caller, id);
      if (input.name !== undefined) await store.renameGroup(db, caller, group.id, input.name);
      return get(caller, id);
    },

    async remove(caller: Caller, id: string): Promise<void> {
      found(await store.deleteGroup(db, caller, pathId('group', id)));
    },
  };
}

async function getGroup(db: Database, caller: Caller, id: string): Promise<store.GroupRow> {
  return found(await store.findGroup(db, caller, pathId('group', id)));
}

function createGroupMembers(db: Database) {
  return {
    async listMembers(caller: Caller, id: string, page: PageRequest): Promise<[store.MemberRow[], number]> {
      const group = await getGroup(db, caller, id);
      return store.listMembers(db, caller.appId, group.id, page);
    },

    async addMember(caller: Caller, id: string, user: string): Promise<store.MemberRow> {
      const group = await getGroup(db, caller, id);
      const userId = fieldId('user', 'user', user);
      if (!(await store.filterUsers(db, caller, [userId])).has(userId)) throw unknownReference('user');
      const message = `A group has at most ${groupMembersMax} members.`;
      const room = { things: 'group members', max: groupMembersMax, message, of: group.id };
      const added = await db.begin(async (tx) => {
        await requireRoom(tx, group, room, () => store.countMembers(tx, group.appId, group.id));
        return store.insertMembers(tx, caller.appId, group.id, [userId]);
      });
      if (added === 0)
        throw new AppError('already_exists', 'This user is already a member of the group.', {
          fields: [{ field: 'user', message: 'is already a member' }],
        });
      return found(await store.findMember(db, caller.appId, group.id, userId));
    },

    /** Replaces all members. */
    async setMembers(caller: Caller, id: string, { users }: Static<typeof groupMembersSchema>): Promise<void> {
      const group = await getGroup(db, caller, id);
      const ids = users.map((text, i) => fieldId('user', `users.${i}`, text));
      const known = await store.filterUsers(db, caller, ids);
      const missing = ids.findIndex((each) => !known.has(each));
      if (missing >= 0) throw unknownReference(`users.${missing}`);
      await db.begin(async (tx) => {
        await lockRoom(tx, group, { things: 'group members', of: group.id });
        await store.deleteOtherMembers(tx, caller.appId, group.id, ids);
        await store.insertMembers(tx, caller.appId, group.id, ids);
      });
    },

    async removeMember(caller: Caller, id: string, user: string): Promise<void> {
      const group = await getGroup(db, caller, id);
      found(await store.deleteMember(db, caller.appId, group.id, pathId('user', user)));
    },
  };
}

/**
 * Makes a user a member of exactly these groups of a namespace: those that a token names. Groups that are
 * new are created while there is room; a group without room has no members and grants nothing.
 */
export async function setGroupsOfUser(
  tx: Transaction,
  scope: Scope,
  namespace: string,
  userId: string,
  externalIds: readonly string[],
): Promise<void> {
  await createMissing(tx, scope, namespace, externalIds);
  await store.replaceGroupsOfUser(tx, scope, namespace, userId, externalIds);
}

async function createMissing(tx: Db, scope: Scope, namespace: string, externalIds: readonly string[]): Promise<void> {
  if (externalIds.length === 0) return;
  // Usually none is missing.
  if ((await store.countNamedGroups(tx, scope, namespace, externalIds)) === externalIds.length) return;
  await lockRoom(tx, scope, { things: 'groups' });
  const room = groupsMax - (await store.countGroups(tx, scope));
  if (room > 0) await store.insertMissingGroups(tx, scope, namespace, externalIds, room);
}
