import type { Identity } from './caller.ts';

/** The credential of a request, determined once, where it is checked. Digests are in hex. */
export type Credential =
  /** An access token. */
  | { kind: 'user'; epoch: number; sessionId: string | undefined }
  | { kind: 'personal_token'; digest: string; epoch: number; expiresAt: Date | null }
  | { kind: 'secret_key' | 'publishable_key'; keyId: string }
  | { kind: 'developer_token'; digest: string }
  /** A session of the web console. A developer's session ends with the token that opened it. */
  | { kind: 'session'; digest: string; epoch: number }
  | { kind: 'session'; digest: string; tokenDigest: string };

/** The caller of a request, and the credential. */
export type Identified = { identity: Identity; credential: Credential | undefined };

/** The session epoch of a user's credential; undefined for other credentials. */
export function epochOf(credential: Credential | undefined): number | undefined {
  return credential && 'epoch' in credential ? credential.epoch : undefined;
}

/** The data needed to check whether a credential has ended. `Identified` includes it. */
export type CredentialFacts = {
  identity: { kind: Identity['kind']; appId?: string; userId?: string };
  credential: Credential | undefined;
};

/** The credential that a resource created with this one depends on: the user or token behind a session. */
export function lastingCredential(credential: Credential | undefined): Credential | undefined {
  if (credential?.kind === 'user') return { ...credential, sessionId: undefined };
  if (credential?.kind !== 'session') return credential;
  if ('epoch' in credential) return { kind: 'user', epoch: credential.epoch, sessionId: undefined };
  return { kind: 'developer_token', digest: credential.tokenDigest };
}
