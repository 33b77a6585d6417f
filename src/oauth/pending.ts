import { AppError } from '../lib/errors.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { KeyScope } from '../tenancy/key-scopes.ts';
import type { Secrets } from '../tenancy/secrets.ts';

/** What a client asked for, while its user decides. It is in the address of the consent page, encrypted. */
export type PendingRequest = Scope & {
  kind: 'assistant';
  keyId: string;
  /** The publishable key. */
  key: string;
  client: { digest: string; name: string; url?: string; isVerified: boolean };
  redirectUri: string;
  state?: string;
  challenge: string;
  scopes: KeyScope[];
  untilMs: number;
};

/** How long the user may take to sign in and decide. */
export const pendingMs = 15 * 60_000;
export const pendingCharactersMax = 7_000;

export function wrapPending(secrets: Secrets, pending: PendingRequest): string {
  return secrets.wrap(Buffer.from(JSON.stringify(pending))).toString('base64url');
}

/** 422 unless this installation wrote the text, for this app, and its time is not over. */
export function readPending(secrets: Secrets, text: string, { appId, sandboxId }: Scope, now: Date): PendingRequest {
  let pending: PendingRequest | undefined;
  try {
    pending = JSON.parse(secrets.unwrap(Buffer.from(text, 'base64url')).plain.toString()) as PendingRequest;
  } catch {
    // This installation did not write it.
  }
  if (pending?.kind !== 'assistant' || pending.untilMs <= now.getTime())
    throw refused('is not valid or has expired. Start again in the assistant.');
  if (pending.appId !== appId || pending.sandboxId !== sandboxId)
    throw refused('is for another app. Sign in as a user of that app.');
  return pending;
}

function refused(message: string): AppError {
  return new AppError('invalid_parameters', `The request of the assistant ${message}`, {
    fields: [{ field: 'request', message }],
  });
}
