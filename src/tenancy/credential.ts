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
  | { kind: 'personal_token'; digest: string; epoch: number; expiresAt: Date | null }
  | { kind: 'secret_key' | 'publishable_key'; keyId: string; expiresAt: Date | null }
  | { kind: 'developer_token'; digest: string }
  /** A session of the web console. A developer's session ends with the token that opened it. */
  | { kind: 'session'; digest: string; epoch: number }
  | { kind: 'session'; digest: string; tokenDigest: string };

/**
 * What a token of an issuer depends on, apart from its user: the issuer as it was at that time, and the key that named the
 * app. Without `changedAt` and `keyId`: the issuer alone.
 */
type IssuerFacts = { id: string; changedAt?: Date; keyId?: string };

/** The caller of a request, and the credential. */
export type Identified = { identity: Identity; credential: Credential | undefined };

/** The session epoch of a user's credential; undefined for other credentials. */
export function epochOf(credential: Credential | undefined): number | undefined {
  return credential && 'epoch' in credential ? credential.epoch : undefined;
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
  if (credential?.kind === 'user') {
    const { kind, epoch, issuer, grantId } = credential;
    const of = { ...(issuer === undefined ? {} : { issuer: { id: issuer.id } }), ...defined({ grantId }) };
    return { kind, epoch, sessionId: undefined, ...of };
  }
  if (credential?.kind !== 'session') return credential;
  if ('epoch' in credential) return { kind: 'user', epoch: credential.epoch, sessionId: undefined };
  return { kind: 'developer_token', digest: credential.tokenDigest };
}
