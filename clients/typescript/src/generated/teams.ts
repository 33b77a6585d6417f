// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const teams = (c: Connection) => ({
  /** Create a team. */
  create: (body: S.CreateTeamRequest, options?: CallOptions): Promise<S.Team> => c.postOnce('/api/v1/teams', body, options),
  /** List teams. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Part of the name or the description. */
search?: string | undefined; /** Only teams in which the caller is a member (`joined`), or that the caller may join (`joinable`). */
membership?: 'joined' | 'joinable' | undefined; }, options?: CallOptions): Pages<S.Team, S.TeamPage> => c.list('/api/v1/teams', query, options),
  /** Get a team. */
  get: (team: string, options?: CallOptions): Promise<S.Team> => c.get(path`/api/v1/teams/${team}`, undefined, options),
  /** Update a team. */
  update: (team: string, body?: S.UpdateTeamRequest, options?: CallOptions): Promise<S.Team> => c.send('PATCH', path`/api/v1/teams/${team}`, body, options),
  /** Delete a team. */
  delete: (team: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/teams/${team}`, undefined, options),
  /** List the members of a team. */
  listMembers: (team: string, query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.Membership, S.MembershipPage> => c.list(path`/api/v1/teams/${team}/members`, query, options),
  /** Add a user or an agent to a team. */
  addMember: (team: string, body?: S.AddTeamMemberRequest, options?: CallOptions): Promise<S.Membership> => c.postOnce(path`/api/v1/teams/${team}/members`, body, options),
  /** Get a member of a team. */
  getMember: (team: string, member: string, options?: CallOptions): Promise<S.Membership> => c.get(path`/api/v1/teams/${team}/members/${member}`, undefined, options),
  /** Change a member's role. */
  updateMember: (team: string, member: string, body: S.UpdateTeamMemberRequest, options?: CallOptions): Promise<S.Membership> => c.send('PATCH', path`/api/v1/teams/${team}/members/${member}`, body, options),
  /** Remove a member from a team. */
  removeMember: (team: string, member: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/teams/${team}/members/${member}`, undefined, options),
});
