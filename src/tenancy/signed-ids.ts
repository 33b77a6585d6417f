import { formatUuidBytes, uuidBytes } from '../lib/ids.ts';
import { readBase64url } from './base64url.ts';
import type { Secrets } from './secrets.ts';

/** Tokens that are credentials themselves: ids, that of the app first, and a signature over them and their purpose. */

const idBytes = 16;
const macBytes = 32;

export function writeSignedIds(secrets: Secrets, purpose: string, ids: readonly string[]): string {
  const named = Buffer.concat(ids.map(uuidBytes));
  return Buffer.concat([named, secrets.sign('signed-url', message(purpose, named))]).toString('base64url');
}

/** Returns the ids; undefined for a token that this installation has not signed for the purpose. */
export function readSignedIds(secrets: Secrets, purpose: string, token: string, count: number): string[] | undefined {
  const bytes = readBase64url(token);
  if (bytes?.length !== count * idBytes + macBytes) return undefined;
  const named = bytes.subarray(0, count * idBytes);
  if (!secrets.verify('signed-url', message(purpose, named), bytes.subarray(count * idBytes))) return undefined;
  return Array.from({ length: count }, (_, at) => formatUuidBytes(named.subarray(at * idBytes, (at + 1) * idBytes)));
}

function message(purpose: string, named: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${purpose}\0`), named]);
}
