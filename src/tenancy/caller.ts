/** One app, and inside it production or one sandbox. Nothing is visible across either wall. */
export type Scope = { appId: string; sandboxId: string };

export type OrgRole = 'admin' | 'member' | 'viewer';
export type TeamRole = 'owner' | 'admin' | 'member';

/** A signed-in end user, with what decides their rights. */
export type UserCaller = Scope & {
  kind: 'user';
  userId: string;
  orgId: string | undefined;
  orgRole: OrgRole | undefined;
  /** Role in each team that the user belongs to. */
  teams: ReadonlyMap<string, TeamRole>;
};

/** An agent acting by itself, as in a run with `run_as_agent`. */
export type AgentCaller = Scope & {
  kind: 'agent';
  agentId: string;
  orgId: string | undefined;
  /** The team that owns the agent and the teams that it is a member of. */
  teams: ReadonlyMap<string, TeamRole>;
};

/** A secret key: the whole app, of its sandbox. */
export type ServerCaller = Scope & { kind: 'server'; keyId: string };

/** A developer with an app chosen by path or header. */
export type DeveloperCaller = Scope & { kind: 'developer'; developerId: string };

/** Whoever may act inside one app. */
export type Caller = UserCaller | AgentCaller | ServerCaller | DeveloperCaller;

/** A publishable key alone: names an app, opens only `auth/*`. */
type PublishableCaller = Scope & { kind: 'publishable'; keyId: string };

/** A developer token with no app chosen. */
export type DeveloperIdentity = { kind: 'developer-without-app'; developerId: string };

export type Identity = Caller | PublishableCaller | DeveloperIdentity | { kind: 'anonymous' };

/** True for callers that see and may change all of the app (of its sandbox). */
export function seesWholeApp(caller: Caller): caller is ServerCaller | DeveloperCaller {
  return caller.kind === 'server' || caller.kind === 'developer';
}
