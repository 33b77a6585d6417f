import type { Database } from '../db/database.ts';
import { AppError } from '../lib/errors.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import { mcpResource } from '../tenancy/mcp-tokens.ts';
import { oauthError, type Parameters } from './protocol.ts';
import { findSwitch } from './store.ts';

/** The app and key in the path. */
export type Place = Scope & { keyId: string; key: string };

export type PlaceDeps = {
  db: Database;
  credentials: Credentials;
  baseUrl: () => string;
  /** Whether the operator switched this on. */
  mcpOauth: boolean;
  /** Counts a request from this address. 429 after too many in a minute. */
  takeTurn: (what: string, address: string, perMinute: number) => Promise<void>;
};

/** Assistants in a data centre share an address. */
const turnsPerMinute = { authorize: 60, register: 60, token: 600 };

/** The app of a publishable key; 404 for any other text, or if the operator or the app has not switched this on. */
export async function getPlace({ db, credentials, mcpOauth }: PlaceDeps, key: string): Promise<Place> {
  const identity = mcpOauth ? await credentials.getPublishable(key) : undefined;
  if (identity === undefined || !(await findSwitch(db, identity.appId)))
    throw new AppError('not_found', 'There is no such path.');
  return { appId: identity.appId, sandboxId: identity.sandboxId, keyId: identity.keyId, key };
}

/** Like `getPlace`, for an endpoint that counts the requests of each address. */
export async function enterPlace(
  deps: PlaceDeps,
  what: keyof typeof turnsPerMinute,
  key: string,
  address: string,
): Promise<Place> {
  const place = await getPlace(deps, key);
  await deps.takeTurn(what, address, turnsPerMinute[what]);
  return place;
}

export function requireResource({ baseUrl }: PlaceDeps, { key }: Place, given: Parameters): void {
  const resource = mcpResource(baseUrl(), key);
  if ((given.get('resource') ?? resource) !== resource)
    throw oauthError('invalid_target', `resource must be ${resource}.`);
}
