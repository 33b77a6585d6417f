import { hash, randomBytes } from 'node:crypto';
import { FetchError } from '../content/fetch/errors.ts';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError, found } from '../lib/errors.ts';
import { parseId } from '../lib/ids.ts';
import type { Scope } from '../tenancy/caller.ts';
import { digest, isDigestOf, type Secrets } from '../tenancy/secrets.ts';
import { findAccountUser } from './accounts.ts';
import { type IssuerKeys, readJson } from './issuer-keys.ts';
import { findIssuer, type IssuerRow, listIssuers } from './store.ts';
import { verifyToken } from './verify.ts';

type SignInDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  fetcher: Pick<Fetcher, 'fetch' | 'check'>;
  keys: IssuerKeys;
};

/** What the browser keeps, encrypted, while the user signs in at the issuer. */
type Pending = Scope & {
  issuer: string;
  state: string;
  nonce: string;
  verifier: string;
  redirect: string;
  until: number;
};

/** How long the user may take to sign in at the issuer. */
export const pendingSeconds = 600;
const timeoutMs = 10_000;
const bytesMax = 64 * 1024;
const issuersMax = 20;

/** A user who has signed in at an issuer. */
type SignedIn = Scope & { userId: string; epoch: number; issuerId: string };

/**
 * Signs users in to the web console at an issuer: authorization code with PKCE (RFC 7636), with this server as the
 * client.
 */
export type ExternalSignIn = {
  /** The issuers at which an app's users may sign in to the console. */
  list(scope: Scope): Promise<IssuerRow[]>;
  /** Returns the URL to send the browser to, and the cookie that it must return with. */
  begin(scope: Scope, issuerId: string, redirect: string): Promise<{ url: string; cookie: string }>;
  /** Returns the user who comes back from the issuer. 401 unless everything matches. */
  finish(cookie: string | undefined, query: { code?: unknown; state?: unknown }): Promise<SignedIn>;
};

/** The app of a sign-in in progress, from its cookie. Undefined if this installation did not set it. */
export function readPendingApp(secrets: Secrets, cookie: string): string | undefined {
  try {
    return (JSON.parse(secrets.unwrap(Buffer.from(cookie, 'base64url')).plain.toString()) as Pending).appId;
  } catch {
    return undefined;
  }
}

export function createExternalSignIn(deps: SignInDeps): ExternalSignIn {
  const { db, clock, secrets, fetcher, keys } = deps;
  return {
    async list(scope) {
      const [rows] = await listIssuers(db, scope, { page: 1, pageSize: issuersMax, offset: 0 });
      return rows.filter(({ clientId }) => clientId !== null);
    },

    async begin(scope, issuerId, redirect) {
      const id = parseId('identityIssuer', issuerId);
      const issuer = found(id === undefined ? undefined : await findIssuer(db, scope, id));
      const { authorizationEndpoint } = await keys.discover(issuer);
      if (issuer.clientId === null || authorizationEndpoint === undefined) throw notConfigured();
      const checked = fetcher.check(authorizationEndpoint);
      if (!checked.ok) throw notConfigured();
      const { appId, sandboxId } = scope;
      const until = clock.now().getTime() + pendingSeconds * 1_000;
      const pending = { appId, sandboxId, issuer: issuer.id, redirect, until, ...newSecrets() };
      const url = addRequest(checked.url, issuer.clientId, pending);
      return { url, cookie: secrets.wrap(Buffer.from(JSON.stringify(pending))).toString('base64url') };
    },

    async finish(cookie, { code, state }) {
      const pending = readPending(deps, cookie, state);
      const { appId, sandboxId } = pending;
      const issuer = await findIssuer(db, pending, pending.issuer);
      if (issuer === undefined || issuer.clientId === null) throw notConfigured();
      if (typeof code !== 'string' || code.length > 4_096)
        throw new AppError('invalid_credentials', 'The issuer did not sign you in.');
      let token: string;
      try {
        token = await exchange(deps, issuer, pending, code);
      } catch (error) {
        if (!(error instanceof FetchError)) throw error;
        throw new AppError('invalid_credentials', 'The issuer did not sign you in.', { cause: error });
      }
      const verified = await verifyToken(keys, issuer, token, [issuer.clientId], clock.now());
      const { nonce } = verified.claims;
      if (typeof nonce !== 'string' || !isDigestOf(nonce, digest(pending.nonce)))
        throw new AppError('invalid_credentials', 'The token belongs to another sign-in.');
      const user = await findAccountUser(deps, issuer, verified);
      return { appId, sandboxId, issuerId: issuer.id, ...user };
    },
  };
}

function newSecrets(): Pick<Pending, 'state' | 'nonce' | 'verifier'> {
  const secret = () => randomBytes(32).toString('base64url');
  return { state: secret(), nonce: secret(), verifier: secret() };
}

/** Adds the request to the address of the issuer at which users sign in. */
function addRequest(endpoint: URL, clientId: string, { redirect, state, nonce, verifier }: Pending): string {
  const query = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirect,
    scope: 'openid email profile',
    state,
    nonce,
    code_challenge_method: 'S256',
    code_challenge: hash('sha256', verifier, 'base64url'),
  };
  for (const [name, value] of Object.entries(query)) endpoint.searchParams.set(name, value);
  return endpoint.href;
}

function readPending({ secrets, clock }: SignInDeps, cookie: string | undefined, state: unknown): Pending {
  let pending: Pending | undefined;
  try {
    const text = cookie === undefined ? undefined : secrets.unwrap(Buffer.from(cookie, 'base64url')).plain.toString();
    pending = text === undefined ? undefined : (JSON.parse(text) as Pending);
  } catch {
    // This server did not set the cookie.
  }
  const isOver = typeof pending?.state !== 'string' || pending.until < clock.now().getTime();
  if (pending === undefined || isOver || typeof state !== 'string' || !isDigestOf(state, digest(pending.state)))
    throw new AppError('invalid_credentials', 'This sign-in is not valid or took too long. Start again.');
  return pending;
}

async function exchange(
  { fetcher, keys, secrets }: SignInDeps,
  issuer: IssuerRow,
  pending: Pending,
  code: string,
): Promise<string> {
  const { tokenEndpoint } = await keys.discover(issuer);
  if (tokenEndpoint === undefined || issuer.clientId === null) throw notConfigured();
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: pending.redirect,
    client_id: issuer.clientId,
    code_verifier: pending.verifier,
  });
  const secret = issuer.clientSecret === null ? undefined : secrets.unwrap(issuer.clientSecret).plain.toString();
  const basic = secret && Buffer.from(`${encodeURIComponent(issuer.clientId)}:${encodeURIComponent(secret)}`);
  const response = await fetcher.fetch(tokenEndpoint, {
    method: 'POST',
    headers: {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'content-type': 'application/x-www-form-urlencoded',
      ...(basic ? { authorization: `Basic ${basic.toString('base64')}` } : {}),
    },
    body: form.toString(),
    lane: issuer.appId,
    redirect: 'manual',
    bytesMax,
    timeoutMs,
  });
  const { id_token: token } = readJson(response.status, response.headers, await response.bytes());
  if (typeof token !== 'string') throw new FetchError('bad_response', 'The issuer did not send an id_token.');
  return token;
}

function notConfigured(): AppError {
  return new AppError('not_found', 'This issuer cannot sign users in to the console.');
}
