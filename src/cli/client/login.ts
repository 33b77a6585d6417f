import { hostname } from 'node:os';
import { readConfig } from '../../config/config.ts';
import { defined } from '../../lib/defined.ts';
import { ApiError, UsageError } from '../errors.ts';
import { type ConnectionOptions, connect } from './client.ts';
import { findProfile, type Profile, profilePath, removeProfile, writeProfile } from './profile.ts';
import { readSecret } from './prompt.ts';
import { jsonLine, type Session } from './session.ts';

export type LoginOptions = ConnectionOptions & { email?: string; publishableKey?: string };

type Minted = { access_token: string; refresh_token: string; user: { id: string } };
type Identity = { kind: 'user' | 'key' | 'developer'; name: string; app?: string | undefined; sandbox?: string };

const appsPath = '/protected/api/v1/developer/apps';

/** `quarry login <url>`: checks a credential and stores it for later commands. */
export async function login(url: string, options: LoginOptions): Promise<number> {
  const config = readConfig();
  const profile = await readProfile(url, options);
  const { kind, name, app, sandbox } = await identify({ client: open(profile) });
  const scope = { ...defined({ app, sandbox }) };
  writeProfile(config, { ...profile, ...(kind === 'developer' ? scope : {}) });
  process.stderr.write(`Logged in to ${profile.url} as ${name}. Written to ${profilePath(config)}.\n`);
  return 0;
}

/** `quarry logout`: deletes the stored credential, and revokes the token that the login created. */
export async function logout(): Promise<number> {
  const config = readConfig();
  const profile = findProfile(config);
  if (profile === undefined) {
    process.stderr.write('Not logged in.\n');
    return 0;
  }
  removeProfile(config);
  if (profile.created === undefined) return 0;
  const { user, token } = profile.created;
  try {
    await open(profile).send('DELETE', `/users/${user}/tokens/${token}`);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    process.stderr.write(`Logged out, but ${token} could not be revoked and stays valid until it expires.\n`);
    throw error;
  }
  return 0;
}

/** `quarry whoami`: prints the server and the identity that commands use. */
export async function whoami(session: Session): Promise<number> {
  const { url, from } = session.client.target;
  const identity = await identify(session);
  if (session.json) await session.print(jsonLine({ url, from, ...identity }));
  else {
    const lines = [
      `server   ${url}`,
      `as       ${identity.name}`,
      `app      ${identity.app ?? 'none: name one with --app'}`,
    ];
    if (identity.sandbox !== undefined) lines.push(`sandbox  ${identity.sandbox}`);
    await session.print(`${[...lines, `from     ${from}`].join('\n')}\n`);
  }
  return 0;
}

async function readProfile(given: string, options: LoginOptions): Promise<Profile> {
  const url = given.replace(/\/+$/, '');
  const { key, token, app, sandbox, email, publishableKey } = options;
  if ([key, token, email].filter((each) => each !== undefined).length > 1)
    throw new UsageError('Give only one of --key, --token and --email.');
  if (email !== undefined) return signIn(url, email, publishableKey);
  const secret = key ?? token ?? (await readSecret('Secret key or token'));
  const scope = { ...defined({ app, sandbox }) };
  const isKey = key !== undefined || (token === undefined && /^[ps]k_/.test(secret));
  return { url, ...(isKey ? { key: secret } : { token: secret }), ...scope };
}

/** Exchanges the password for a personal token, and ends the session of the sign-in. Stores no password. */
async function signIn(url: string, email: string, publishableKey: string | undefined): Promise<Profile> {
  if (publishableKey === undefined)
    throw new UsageError('--email requires --publishable-key (pk_…): it names the app of the user.');
  const password = await readSecret('Password');
  const app = open({ url, key: publishableKey });
  const session = await app.send<Minted>('POST', '/auth/login', { body: { email, password } });
  const user = session.user.id;
  const personal = await open({ url, token: session.access_token }).send<{ id: string; token: string }>(
    'POST',
    `/users/${user}/tokens`,
    { body: { type: 'personal', name: `quarry on ${hostname()}`.slice(0, 100) } },
  );
  await app.send('POST', '/auth/logout', { body: { refresh_token: session.refresh_token } });
  return { url, token: personal.token, created: { user, token: personal.id } };
}

function open(options: ConnectionOptions) {
  return connect(options, new AbortController().signal);
}

async function identify({ client }: Pick<Session, 'client'>): Promise<Identity> {
  const { kind } = client.target;
  if (kind === 'user') {
    const me = await client.send<{ id: string; app: string; email?: string; sandbox?: string }>('GET', '/users/me');
    return { kind, name: `user ${me.email ?? ''} (${me.id})`, app: me.app, ...sandboxOf(me) };
  }
  if (kind === 'key') {
    const { data } = await client.send<{ data: { app: string; sandbox?: string }[] }>('GET', '/keys', {
      query: { page_size: 1 },
    });
    return { kind, name: 'secret key', app: data[0]?.app, ...sandboxOf(data[0] ?? {}) };
  }
  const { app, sandbox } = await client.scope();
  const { data } = await client.send<{ data: { id: string; name: string }[] }>('GET', appsPath, {
    query: { page_size: 100 },
  });
  const chosen = app ?? (data.length === 1 ? data[0]?.id : undefined);
  if (chosen !== undefined && data.some(({ id }) => id === chosen))
    return { kind, name: 'developer', app: chosen, ...sandboxOf({ sandbox }) };
  const candidates = data.map(({ id, name }) => `\n  ${id}  ${name}`).join('');
  throw new UsageError(
    app === undefined
      ? `The developer has ${data.length} apps. Name one with --app:${candidates}`
      : `${app} is not an app of this developer. Its apps are:${candidates}`,
  );
}

function sandboxOf({ sandbox }: { sandbox?: string | null | undefined }): { sandbox?: string } {
  return sandbox == null ? {} : { sandbox };
}
