import { defined } from '../../lib/defined.ts';
import { findId } from './names.ts';
import { jsonLine, type Session } from './session.ts';

export type KeyOptions = {
  publishable?: boolean;
  name?: string;
  inSandbox?: string;
  expiresInDays?: number;
  scope?: string[];
};

type Minted = { access_token: string; refresh_token: string; expires_in: number };
type Key = {
  id: string;
  type: string;
  name?: string;
  hint: string;
  full_key?: string;
  revoked_at?: string;
  expires_at?: string;
  scopes?: string[];
};

/** `quarry token user`: creates a session for a user, by id, e-mail or name. Prints only the access token on standard output. */
export async function user(session: Session, named: string): Promise<number> {
  const id = await findId(session.client, 'user', named);
  const minted = await session.client.send<Minted>('POST', `/users/${encodeURIComponent(id)}/tokens`, { body: {} });
  await session.print(session.json ? jsonLine(minted) : `${minted.access_token}\n`);
  if (!session.json) session.say(`Valid for ${Math.round(minted.expires_in / 60)} minutes. Send it as a bearer token.`);
  return 0;
}

/** `quarry token key`: creates an API key and shows it once. */
export async function key(
  session: Session,
  { publishable, name, inSandbox, expiresInDays, scope }: KeyOptions,
): Promise<number> {
  const created = await session.client.send<Key>('POST', '/keys', {
    body: {
      type: publishable ? 'publishable' : 'secret',
      ...defined({ name, expires_in_days: expiresInDays, scopes: scope }),
      ...(inSandbox === undefined ? {} : { sandbox: await findId(session.client, 'sandbox', inSandbox) }),
    },
  });
  await session.print(session.json ? jsonLine(created) : `${created.full_key}\n`);
  if (!session.json)
    session.say(`${created.id}: the key is not shown again. Revoke it with \`quarry token revoke ${created.id}\`.`);
  return 0;
}

/** `quarry token keys`: lists all keys, without their secret part. */
export async function keys(session: Session): Promise<number> {
  for (let page = 1; ; page++) {
    const found = await session.client.send<{ data: Key[]; has_next: boolean }>('GET', '/keys', {
      query: { page, page_size: 100 },
    });
    for (const each of found.data) await session.print(session.json ? jsonLine(each) : describe(each));
    if (!found.has_next) return 0;
  }
}

/** `quarry token revoke`: revokes a key immediately. */
export async function revoke(session: Session, named: string): Promise<number> {
  const id = await findId(session.client, 'key', named);
  await session.client.send('DELETE', `/keys/${encodeURIComponent(id)}`);
  return 0;
}

function describe({ id, type, hint, name, revoked_at, expires_at, scopes }: Key): string {
  const parts = [id, type.padEnd(11), `${hint}…`, name, scopes?.join(','), expires_at && `until ${expires_at}`];
  return `${[...parts, revoked_at && 'revoked'].filter(Boolean).join('  ')}\n`;
}
