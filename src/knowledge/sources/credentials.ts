import type { Static, TSchema } from 'typebox';
import { invalidField } from '../../lib/errors.ts';
import { Type } from '../../lib/type.ts';
import { type Caller, canSeeWholeApp } from '../../tenancy/caller.ts';
import { requireHeaderToken } from '../../tenancy/header-token.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import type { SourceKind } from '../kinds/kind.ts';
import type { Payload } from '../kinds/payload.ts';
import { credentialsSchema } from '../schema.ts';
import type { SourceRow } from './store.ts';

export type Credentials = Static<typeof credentialsSchema>;

/** How credentials are stored: encrypted, with the scheme, host and port that they are for. Null: there are none. */
type StoredCredentials = { credentials: Buffer | null; credentialsFor: string | null };

/**
 * What a source stores after a change. Credentials that are not given stay while the payload names the same scheme, host
 * and port; otherwise they are forgotten, so that nobody who may change a source can send them elsewhere.
 */
export function nextCredentials(
  secrets: Secrets,
  kind: SourceKind | undefined,
  payload: Payload | null,
  given: Credentials | null | undefined,
  { credentials, credentialsFor }: StoredCredentials = { credentials: null, credentialsFor: null },
): StoredCredentials {
  const origin = kind?.credentials?.origin(payload);
  if (given === undefined && origin !== undefined && origin === credentialsFor) return { credentials, credentialsFor };
  if (given === undefined || given === null) return { credentials: null, credentialsFor: null };
  if (!kind?.credentials) throw invalidField('credentials', 'are not used by this type of source');
  const unknown = Object.keys(given).find((member) => !kind.credentials?.members.includes(member));
  if (unknown !== undefined) throw invalidField(`credentials.${unknown}`, 'is not used by this type of source');
  requireHeaderToken('credentials.token', given.token);
  if (origin === undefined) throw invalidField('credentials', 'need the address in the payload that they are for');
  return { credentials: secrets.wrap(Buffer.from(JSON.stringify(given))), credentialsFor: origin };
}

/**
 * Whether a change leaves the credentials with what they were stored for. An end user who may change a source need not be
 * the one who knows them: with another repository or bucket of the same host, they would open what was not meant.
 */
export function keepsCredentials(caller: Caller, before: Payload | null, after: Payload | null): boolean {
  return canSeeWholeApp(caller) || (before?.url === after?.url && before?.bucket === after?.bucket);
}

/** The credentials of a pull; empty if there are none for the address that it uses. */
export function readCredentials(secrets: Secrets, kind: SourceKind, source: SourceRow): Credentials {
  if (source.credentials === null || kind.credentials?.origin(source.payload) !== source.credentialsFor) return {};
  return JSON.parse(secrets.unwrap(source.credentials).plain.toString()) as Credentials;
}

/** The header for HTTP: a token as a bearer, or a name and a password. */
export function authorizationOf({ username, password, token }: Credentials): Record<string, string> {
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  if (username === undefined && password === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${username ?? ''}:${password ?? ''}`).toString('base64')}` };
}

/** Scheme, host and port of the address in `url`. */
export function urlOrigin(payload: Payload | null): string | undefined {
  return typeof payload?.url === 'string' && URL.canParse(payload.url) ? new URL(payload.url).origin : undefined;
}

/** The schema of these members of credentials. */
export function credentialsSchemaOf(members: readonly string[]): TSchema {
  const known = Object.entries(credentialsSchema.properties).filter(([name]) => members.includes(name));
  return Type.Object(Object.fromEntries(known));
}
