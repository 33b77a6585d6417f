import type { Identity } from './caller.ts';

/** What a request showed to say who it comes from: found once, where it is checked. Digests are in hex. */
export type Credential =
  /** An access token. */
  | { kind: 'user'; epoch: number; sessionId: string | undefined }
  | { kind: 'personal_token'; digest: string; epoch: number; expiresAt: Date | null }
  | { kind: 'secret_key' | 'publishable_key'; keyId: string }
  | { kind: 'developer_token'; digest: string }
  /** A session of the web console; a developer's was opened by a token and ends with it. */
  | { kind: 'session'; digest: string; epoch: number }
  | { kind: 'session'; digest: string; tokenDigest: string };

/** Who a request comes from, and by what. */
export type Identified = { identity: Identity; credential: Credential | undefined };

/** The epoch of a user's credential; undefined for what is no user's. */
export function epochOf(credential: Credential | undefined): number | undefined {
  return credential && 'epoch' in credential ? credential.epoch : undefined;
}

/** What says whether a credential has ended; `Identified` is one. */
export type Shown = {
  identity: { kind: Identity['kind']; appId?: string; userId?: string };
  credential: Credential | undefined;
};

/** What a thing made by this credential hangs on: not the session of the moment, but the user or the token behind it. */
export function lastingCredential(credential: Credential | undefined): Credential | undefined {
  if (credential?.kind === 'user') return { ...credential, sessionId: undefined };
  if (credential?.kind !== 'session') return credential;
  if ('epoch' in credential) return { kind: 'user', epoch: credential.epoch, sessionId: undefined };
  return { kind: 'developer_token', digest: credential.tokenDigest };
}
