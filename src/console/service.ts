import type { Static } from 'typebox';
import type { AppPlacement } from '../apps/service.ts';
import { type AppRow, findApp } from '../apps/store.ts';
import { type Database, production } from '../db/database.ts';
import type { AuditActor } from '../http/route/audit.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError, type FieldError } from '../lib/errors.ts';
import type { AuthService } from '../sign-in/service.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import { digest } from '../tenancy/secrets.ts';
import { generateSessionValue, type Session, type Sessions, sessionSeconds } from '../tenancy/sessions.ts';
import type { UserService } from '../users/service.ts';
import type { UserRow } from '../users/store.ts';
import type { signInSchema } from './schema.ts';
import { createSignInLinks, type SignInLink } from './sign-in-links.ts';
import * as store from './store.ts';

/** The public data of a session, with a new CSRF token. */
export type ConsoleSession = { csrfToken: string; expiresAt: Date } & (
  | { kind: 'developer'; developer: { id: string; name: string } }
  | { kind: 'user'; user: UserRow; app: AppRow }
);

export type ConsoleService = {
  /** The session of a cookie's value. 401 if it has ended. */
  get(value: string | undefined): Promise<ConsoleSession>;
  /**
   * Creates a code for the holder of a developer token; undefined if it is unknown or revoked. The oldest of more than
   * ten codes ends.
   */
  createSignInLink(developerToken: string): Promise<SignInLink | undefined>;
  /** Opens a session. Returns its cookie value and its public data. 401 and 429 as for auth/login. */
  signIn(
    body: Static<typeof signInSchema>,
    address: string,
    noteActor: (actor: AuditActor) => void,
  ): Promise<{ value: string; session: ConsoleSession }>;
  /** Opens a session for a user who signed in at an issuer. */
  openUserSession(user: { appId: string; userId: string; epoch: number; issuerId: string }): Promise<{ value: string }>;
  /**
   * Ends the session and returns its owner. 401 without its CSRF token. No error if the session has already ended.
   */
  signOut(value: string | undefined, csrf: string | undefined): Promise<AuditActor | undefined>;
};

export type ConsoleDeps = {
  db: Database;
  /** The database of developers and their sessions. */
  directory: Database;
  clock: Clock;
  auth: AuthService;
  users: UserService;
  credentials: Credentials;
  sessions: Sessions;
  /** Lists a developer's apps in all cells. Undefined: every app is in `db`. */
  placement?: Pick<AppPlacement, 'listIds'> | undefined;
};

/** A developer's sign-in is logged in at most so many of their apps. */
const appsMax = 100;

export function createConsoleService(deps: ConsoleDeps): ConsoleService {
  const { db, directory, clock, sessions } = deps;
  const links = createSignInLinks({ db: directory, clock });

  return {
    async get(value) {
      const session = value === undefined ? undefined : await sessions.find(value);
      if (value === undefined || !session) throw sessionEnded();
      return describe(deps, value, session);
    },

    createSignInLink: links.create,

    async signIn(body, address, noteActor) {
      const method = readSignInMethod(body);
      const value =
        method.kind === 'user'
          ? await signInUser(deps, method, address, noteActor)
          : await signInDeveloper(deps, address, async () =>
              method.kind === 'developer' ? digest(method.token) : links.take(method.code),
            );
      const session = await sessions.find(value);
      if (!session) throw sessionEnded();
      if (session.kind === 'developer') noteActor(await actorOf(deps, session, 'developer_token'));
      return { value, session: await describe(deps, value, session) };
    },

    async openUserSession(user) {
      const { appId, userId, epoch, issuerId } = user;
      const value = generateSessionValue(appId);
      await store.insertUserSession(db, {
        ...{ appId, digest: digest(value), userId, epoch, issuerId, expiresAt: expiryOf(clock) },
      });
      return { value };
    },

    async signOut(value, csrf) {
      if (value === undefined) throw sessionEnded();
      sessions.requireCsrf(value, csrf);
      const session = await sessions.find(value);
      if (session === undefined) return undefined;
      if (session.kind === 'user') await store.deleteUserSession(db, session.appId, digest(value));
      else await store.deleteDeveloperSession(directory, digest(value));
      return actorOf(deps, session, 'session');
    },
  };
}

/** Checks the password, and opens a session. Returns its cookie value. */
async function signInUser(
  { db, clock, auth, credentials }: ConsoleDeps,
  { key, email, password }: Extract<SignInMethod, { kind: 'user' }>,
  address: string,
  noteActor: (actor: AuditActor) => void,
): Promise<string> {
  const scope = await identifyPublishable(credentials, key);
  const { appId, sandboxId, keyId } = scope;
  noteActor({ scopes: [{ appId, sandboxId }], kind: 'publishable_key', id: keyId, credential: 'publishable_key' });
  const { userId, epoch } = await auth.checkPassword(scope, address, email, password);
  const value = generateSessionValue(appId);
  await store.insertUserSession(db, { appId, digest: digest(value), userId, epoch, expiresAt: expiryOf(clock) });
  return value;
}

/** Finds the app of a publishable key. Throws 401 for other keys. */
export async function identifyPublishable(credentials: Credentials, key: string) {
  const headers = { apiKey: key, authorization: undefined, app: undefined, sandbox: undefined };
  const { identity } = await credentials.identify(headers);
  if (identity.kind === 'publishable') return identity;
  throw new AppError('invalid_credentials', 'Sign in with the publishable key (pk_…) of the app.');
}

/** Opens a session for the developer whose token has the digest that `take` returns. Returns its cookie value. */
async function signInDeveloper(
  { directory, clock, auth }: ConsoleDeps,
  address: string,
  take: () => Promise<Buffer | undefined>,
): Promise<string> {
  const value = generateSessionValue();
  await auth.attemptFrom(address, async () => {
    const tokenDigest = await take();
    if (tokenDigest === undefined)
      throw new AppError('invalid_credentials', 'The sign-in link was already used or is too old.');
    const row = { digest: digest(value), tokenDigest, expiresAt: expiryOf(clock) };
    if (!(await store.insertDeveloperSession(directory, row)))
      throw new AppError('invalid_credentials', 'The developer token is unknown or revoked.');
    return undefined;
  });
  return value;
}

function expiryOf(clock: Clock): Date {
  return new Date(clock.now().getTime() + sessionSeconds * 1_000);
}

async function describe(
  { db, users, sessions }: ConsoleDeps,
  value: string,
  session: Session,
): Promise<ConsoleSession> {
  const base = { csrfToken: sessions.csrfToken(value), expiresAt: session.expiresAt };
  if (session.kind === 'developer')
    return { ...base, kind: session.kind, developer: { id: session.developerId, name: session.name } };
  const user = await users.findInScope(session, session.userId);
  const app = await findApp(db, session.appId);
  if (!user || !app) throw sessionEnded();
  return { ...base, kind: session.kind, user, app };
}

/** The audit actor of changes made in the session. A developer acts in all their apps. */
async function actorOf({ db, placement }: ConsoleDeps, session: Session, credential: string): Promise<AuditActor> {
  if (session.kind === 'user') {
    const { appId, sandboxId, userId } = session;
    return { scopes: [{ appId, sandboxId }], kind: 'user', id: userId, credential };
  }
  const appIds = await (placement?.listIds(session.developerId, appsMax) ??
    store.listDeveloperApps(db, session.developerId, appsMax));
  const scopes = appIds.map((appId) => ({ appId, sandboxId: production }));
  return { scopes, kind: 'developer', id: session.developerId, credential };
}

type SignInMethod =
  | { kind: 'developer'; token: string }
  | { kind: 'link'; code: string }
  | { kind: 'user'; key: string; email: string; password: string };

function readSignInMethod(body: Static<typeof signInSchema>): SignInMethod {
  const { developer_token: token, sign_in_code: code, publishable_key: key, email, password } = body;
  for (const alone of ['developer_token', 'sign_in_code'] as const) {
    if (body[alone] === undefined) continue;
    const extra = Object.keys(body).filter((member) => member !== alone);
    if (extra.length > 0) throw invalid(extra.map((field) => ({ field, message: `cannot be combined with ${alone}` })));
  }
  if (token !== undefined) return { kind: 'developer', token };
  if (code !== undefined) return { kind: 'link', code };
  if (key !== undefined && email !== undefined && password !== undefined) return { kind: 'user', key, email, password };
  const missing = Object.entries({ publishable_key: key, email, password }).filter(([, given]) => given === undefined);
  throw invalid(missing.map(([field]) => ({ field, message: 'is required unless developer_token is given' })));
}

function invalid(fields: FieldError[]): AppError {
  return new AppError('invalid_parameters', fields.map(({ field, message }) => `${field}: ${message}`).join('; '), {
    fields,
  });
}

function sessionEnded(): AppError {
  return new AppError('unauthenticated', 'No session is open. Sign in.');
}
