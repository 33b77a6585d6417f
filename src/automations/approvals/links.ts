import { formatUuidBytes, uuidBytes } from '../../lib/ids.ts';
import { readBase64url } from '../../tenancy/base64url.ts';
import type { Secrets } from '../../tenancy/secrets.ts';

/** The tokens of links to approvals: the ids of the app and the link, and a signature over both. */

const idBytes = 16;
const macBytes = 32;
const purpose = 'approval-link';

type LinkName = { appId: string; id: string };

export function writeLinkToken(secrets: Secrets, { appId, id }: LinkName): string {
  const named = Buffer.concat([uuidBytes(appId), uuidBytes(id)]);
  return Buffer.concat([named, secrets.sign('signed-url', message(named))]).toString('base64url');
}

/** Returns undefined for a token that this installation has not signed. */
export function readLinkToken(secrets: Secrets, token: string): LinkName | undefined {
  const bytes = readBase64url(token);
  if (bytes?.length !== 2 * idBytes + macBytes) return undefined;
  const named = bytes.subarray(0, 2 * idBytes);
  if (!secrets.verify('signed-url', message(named), bytes.subarray(2 * idBytes))) return undefined;
  return { appId: formatUuidBytes(named.subarray(0, idBytes)), id: formatUuidBytes(named.subarray(idBytes)) };
}

function message(named: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${purpose}\0`), named]);
}
