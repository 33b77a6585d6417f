import { assistantAreas, intersectScopes, type KeyScope } from '../tenancy/key-scopes.ts';
import { oauthError } from './protocol.ts';

/** Every scope that a client may ask for. */
export const assistantScopes: KeyScope[] = [
  'read',
  ...assistantAreas,
  ...assistantAreas.map((area) => `${area}:read` as const),
];
/** Clients ask for these by habit. They grant nothing here: every client gets a refresh token, and no identity token. */
const habitualScopes = ['openid', 'offline_access'];

/**
 * The scopes of a request; undefined if it names none. The smallest list that allows the same, without areas that users
 * cannot open.
 */
export function readScopes(text = ''): KeyScope[] | undefined {
  const asked = text.split(' ').filter((scope) => scope !== '' && !habitualScopes.includes(scope));
  const unknown = asked.find((scope) => !(assistantScopes as string[]).includes(scope));
  if (unknown !== undefined)
    throw oauthError(
      'invalid_scope',
      `${JSON.stringify(unknown)} is unknown. There are ${assistantScopes.join(', ')}.`,
    );
  return asked.length === 0 ? undefined : [...(intersectScopes(asked as KeyScope[], assistantAreas) ?? [])];
}
