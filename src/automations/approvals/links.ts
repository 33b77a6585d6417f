import type { Secrets } from '../../tenancy/secrets.ts';
import { readSignedIds, writeSignedIds } from '../../tenancy/signed-ids.ts';

/** The tokens of links to approvals. */

const purpose = 'approval-link';

type LinkName = { appId: string; id: string };

export function writeLinkToken(secrets: Secrets, { appId, id }: LinkName): string {
  return writeSignedIds(secrets, purpose, [appId, id]);
}

/** Returns undefined for a token that this installation has not signed. */
export function readLinkToken(secrets: Secrets, token: string): LinkName | undefined {
  const [appId, id] = readSignedIds(secrets, purpose, token, 2) ?? [];
  return appId === undefined || id === undefined ? undefined : { appId, id };
}
