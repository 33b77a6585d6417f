// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const groups = (c: Connection) => ({
  /** Create a group of users. */
  create: (body: S.CreateGroupRequest, options?: CallOptions): Promise<S.Group> => c.postOnce('/api/v1/groups', body, options),
  /** List groups of users. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Only groups of this namespace. */
namespace?: string | undefined; /** Only groups with this name. */
external_id?: string | undefined; /** Only groups of this user (usr_…). */
user?: string | undefined; /** Part of the name or of the name in the namespace. */
search?: string | undefined; }, options?: CallOptions): Pages<S.Group, S.GroupPage> => c.list('/api/v1/groups', query, options),
  /** Get a group of users. */
  get: (group: string, options?: CallOptions): Promise<S.Group> => c.get(path`/api/v1/groups/${group}`, undefined, options),
  /** Update a group of users. */
  update: (group: string, body?: S.UpdateGroupRequest, options?: CallOptions): Promise<S.Group> => c.send('PATCH', path`/api/v1/groups/${group}`, body, options),
  /** Delete a group of users. */
  delete: (group: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/groups/${group}`, undefined, options),
  /** List the members of a group. */
  listMembers: (group: string, query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.GroupMember, S.GroupMemberPage> => c.list(path`/api/v1/groups/${group}/members`, query, options),
  /** Add a user to a group. */
  addMember: (group: string, body: S.AddGroupMemberRequest, options?: CallOptions): Promise<S.GroupMember> => c.postOnce(path`/api/v1/groups/${group}/members`, body, options),
  /** Replace the members of a group. */
  setMembers: (group: string, body: S.SetGroupMembersRequest, options?: CallOptions): Promise<void> => c.send('PUT', path`/api/v1/groups/${group}/members`, body, options),
  /** Remove a user from a group. */
  removeMember: (group: string, user: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/groups/${group}/members/${user}`, undefined, options),
});
