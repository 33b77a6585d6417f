import { compact, iso } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import { presentUser } from '../users/present.ts';
import type { UserRow } from '../users/store.ts';
import type { PersonalTokenRow } from './store.ts';

/** The JSON of a session: the access token under both of its names. */
export function presentSession(session: SessionTokens, user: UserRow) {
  return {
    token: session.accessToken,
    access_token: session.accessToken,
    refresh_token: session.refreshToken,
    token_type: 'Bearer',
    expires_in: session.expiresIn,
    user: presentUser(user),
  };
}

export function presentToken(row: PersonalTokenRow) {
  return compact({
    id: formatId('token', row.id),
    name: row.name,
    created_at: iso(row.createdAt),
    last_used_at: row.lastUsedAt && iso(row.lastUsedAt),
    expires_at: row.expiresAt && iso(row.expiresAt),
    revoked_at: row.revokedAt && iso(row.revokedAt),
  });
}

type SessionTokens = { accessToken: string; refreshToken: string; expiresIn: number };
