import type { UserCaller } from '../../tenancy/caller.ts';

/** Names a user among the readers of all apps. */
export function userName({ appId, userId }: UserCaller): string {
  return `${appId}/${userId}`;
}

/** The user's memberships as text. Equal rights give equal text. */
export function rightsOf({ orgId, orgRole, teams }: UserCaller): string {
  return JSON.stringify([orgId, orgRole, [...teams].sort()]);
}
