import { defined } from '../lib/defined.ts';
import { AppError } from '../lib/errors.ts';
import type { Identity } from './caller.ts';

/** The credential of a request, determined once, where it is checked. Digests are in hex. */
export type Credential =
  /** An access token, or a token of an issuer. Without `expiresAt`: the user, in what they leave to others. */
  | {
      kind: 'user';
      epoch: number;
      sessionId: string | undefined;
      expiresAt?: Date;
      issuer?: IssuerFacts;
      /** For a token of an assistant: what the user allows it. */
      grantId?: string;
    }
  | { kind: 'personal_token'; digest: string; epoch: number; expiresAt: Date | null; issuerId: string | null }
  | { kind: 'secret_key' | 'publishable_key'; keyId: string; expiresAt: Date | null }
  | { kind: 'developer_token'; digest: string }
  /** A session of the web console. A developer's session ends with the token that opened it. */
  | { kind: 'session'; digest: string; epoch: number; issuerId: string | null }
  | { kind: 'session'; digest: string; tokenDigest: string };

/**
 * What a token of an issuer depends on, apart from its user: the issuer as it was at that time, and the key that named the
 * app. Without `changedAt`: the issuer whatever its settings, in what the user created with the token.
 */
type IssuerFacts = { id: string; changedAt?: Date; keyId?: string };

/** The caller of a request, and the credential. */
export type Identified = { identity: Identity; credential: Credential | undefined };

/** The session epoch of a user's credential; undefined for other credentials. */
export function epochOf(credential: Credential | undefined): number | undefined {
  return credential && 'epoch' in credential ? credential.epoch : undefined;
}

/**
 * The issuer on which a user's credential depends: that of the token, or of the sign-in with which it was created. What is
 * created with the credential ends with the same issuer.
 */
export function issuerOf(credential: Credential | undefined): string | undefined {
  if (credential === undefined) return undefined;
  if ('issuerId' in credential) return credential.issuerId ?? undefined;
  return credential.kind === 'user' ? credential.issuer?.id : undefined;
}

/** Throws 403 for a token that scripts use: what it asks for is only for the person. */
export function requirePerson(credential: Credential | undefined, message: string): void {
  if (credential?.kind === 'personal_token') throw new AppError('forbidden', message);
}

/** Whether the time of the credential is over, as far as the credential itself shows. */
export function hasExpired(credential: Credential | undefined, now: Date): boolean {
  const expiresAt = credential && 'expiresAt' in credential ? credential.expiresAt : undefined;
  return expiresAt != null && expiresAt <= now;
}

/** The data needed to check whether a credential has ended. `Identified` includes it. */
export type CredentialFacts = {
  identity: { kind: Identity['kind']; appId?: string; sandboxId?: string; userId?: string };
  credential: Credential | undefined;
};

/** The credential that a resource created with this one depends on: the user or token behind a session. */
export function lastingCredential(credential: Credential | undefined): Credential | undefined {
  if (credential?.kind === 'session' && 'tokenDigest' in credential)
    return { kind: 'developer_token', digest: credential.tokenDigest };
  if (credential?.kind !== 'user' && credential?.kind !== 'session') return credential;
  const issuerId = issuerOf(credential);
  const keyId = credential.kind === 'user' ? credential.issuer?.keyId : undefined;
  const issuer = issuerId === undefined ? undefined : { id: issuerId, ...defined({ keyId }) };
  const grantId = credential.kind === 'user' ? credential.grantId : undefined;
  return { kind: 'user', epoch: credential.epoch, sessionId: undefined, ...defined({ issuer, grantId }) };
}
