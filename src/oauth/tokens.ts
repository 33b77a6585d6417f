import { randomBytes } from 'node:crypto';
import { formatId, parseId } from '../lib/ids.ts';
import { readBase64url } from '../tenancy/base64url.ts';
import { isMcpToken, readMcpToken } from '../tenancy/mcp-tokens.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import type { Place } from './place.ts';

/*
 * The texts of codes (`mac_…`) and refresh tokens (`mrt_…`). Each names its grant, so that lookups never use the secret
 * alone.
 */

const secretBytes = 32;
/** The base64url form of a secret, and of a signature. */
const secretCharacters = 43;

export function mintCode(grantId: string): string {
  return `mac_${grantPart(grantId)}${randomBytes(secretBytes).toString('base64url')}`;
}

/** `mrt_`, the grant, a secret of 32 bytes, and a signature by which an older token is recognised without a row. */
export function mintRefreshToken(secrets: Secrets, grantId: string, secret: Buffer = randomBytes(secretBytes)): string {
  const text = `mrt_${grantPart(grantId)}${secret.toString('base64url')}`;
  return `${text}${secrets.sign('mcp-token', text).toString('base64url')}`;
}

/**
 * The one token that can follow this one. Only the server can compute it, and a repeated request gets the same, so that a
 * connection never has two.
 */
export function successorOf(secrets: Secrets, grantId: string, token: string): string {
  return mintRefreshToken(secrets, grantId, secrets.sign('mcp-token', `after ${token}`));
}

export function isOwnRefreshToken(secrets: Secrets, token: string): boolean {
  const text = token.slice(0, -secretCharacters);
  const proof = readBase64url(token.slice(-secretCharacters));
  return proof !== undefined && secrets.verify('mcp-token', text, proof);
}

/** The grant that a code or refresh token names. Says nothing about whether it is valid. */
export function readGrantId(token: string, prefix: 'mac_' | 'mrt_'): string | undefined {
  const length = prefix === 'mac_' ? secretCharacters : 2 * secretCharacters;
  const [, id] = new RegExp(`^${prefix}([0-9A-Za-z]{22})[\\w-]{${length}}$`).exec(token) ?? [];
  return id === undefined ? undefined : parseId('assistant', `asg_${id}`);
}

/** The grant of an access or refresh token that this server created; undefined for any other text. */
export async function findGrantId(
  secrets: Secrets,
  token: string,
  place: Place,
  now: Date,
): Promise<string | undefined> {
  if (token.startsWith('mrt_')) return isOwnRefreshToken(secrets, token) ? readGrantId(token, 'mrt_') : undefined;
  if (!isMcpToken(token)) return undefined;
  const claims = await readMcpToken(secrets, token, now).catch(() => undefined);
  return claims?.appId === place.appId ? claims.grantId : undefined;
}

function grantPart(grantId: string): string {
  return formatId('assistant', grantId).slice('asg_'.length);
}
