import type { KeyScope } from './key-scopes.ts';

/** One app, and within it production or one sandbox. Nothing is visible across these boundaries. */
export type Scope = { appId: string; sandboxId: string };

export type OrgRole = 'admin' | 'member' | 'viewer';
export type TeamRole = 'owner' | 'admin' | 'member';

/** What a key with scopes allows. A run that such a key bounds carries them, for every identity that it acts as. */
type Bounded = { scopes?: readonly KeyScope[] };

/** A signed-in end user, with the memberships that decide their rights. */
export type UserCaller = Scope &
  Bounded & {
    kind: 'user';
    userId: string;
    orgId: string | undefined;
    orgRole: OrgRole | undefined;
    /** The user's role in each of their teams. */
    teams: ReadonlyMap<string, TeamRole>;
  };

/** An agent acting as itself, as in a run with `run_as_agent`. */
export type AgentCaller = Scope &
  Bounded & {
    kind: 'agent';
    agentId: string;
    orgId: string | undefined;
    /** The teams that own the agent or have it as a member. */
    teams: ReadonlyMap<string, TeamRole>;
  };

/** A secret key: the whole app, in its sandbox; with scopes, a part of it. */
export type ServerCaller = Scope & Bounded & { kind: 'server'; keyId: string };

/** A developer who chose an app by path or header. */
export type DeveloperCaller = Scope & Bounded & { kind: 'developer'; developerId: string };

/** Every kind of caller that acts inside one app. */
export type Caller = UserCaller | AgentCaller | ServerCaller | DeveloperCaller;

/** Only a publishable key: identifies an app and allows only `auth/*`. */
export type PublishableCaller = Scope & { kind: 'publishable'; keyId: string };

/** A developer token without a chosen app. */
export type DeveloperIdentity = { kind: 'developer-without-app'; developerId: string };

export type Identity = Caller | PublishableCaller | DeveloperIdentity | { kind: 'anonymous' };

/** The caller as the owner of idempotency keys. All secret keys of an app are one, so that a key can be rotated. */
export function nameCaller(caller: Caller): string {
  switch (caller.kind) {
    case 'user':
      return `user/${caller.userId}`;
    case 'agent':
      return `agent/${caller.agentId}`;
    case 'server':
      return 'server';
    case 'developer':
      return `developer/${caller.developerId}`;
  }
}

/** True for callers with full access to the app (in its sandbox). */
export function canSeeWholeApp(caller: Caller): caller is ServerCaller | DeveloperCaller {
  return caller.kind === 'server' || caller.kind === 'developer';
}
