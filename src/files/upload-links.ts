import type { Db } from '../db/database.ts';
import type { AuditActor } from '../http/route/audit.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import { readBase64url } from '../tenancy/base64url.ts';
import { type Caller, canSeeWholeApp, type DeveloperCaller, type Scope, type ServerCaller } from '../tenancy/caller.ts';
import { loadUserCaller } from '../tenancy/callers.ts';
import { type Credential, lastingCredential } from '../tenancy/credential.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import type { OwnerInput } from '../tenancy/references.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import type { Owned } from '../tenancy/visible.ts';
import { resolveFileOwner } from './owners.ts';
import { findFile } from './store.ts';

/** Everything decided when an upload link is created. Its holder supplies only the bytes. */
export type UploadClaims = Scope &
  Owned & {
    /** The id of the file, which can be created once. */
    id: string;
    filename: string;
    contentType: string;
    shared: boolean;
    sizeMax: number;
    /** SHA-256 in hex. */
    checksum?: string;
    /** The run that makes the file. */
    runId?: string;
    /** Seconds since 1970. */
    expires: number;
    /** The creator of the link, their credential, and the owner they named. The link ends with their rights. */
    maker: { identity: LinkCreator; credential: Credential | undefined };
    owner: OwnerInput;
  };

type LinkCreator = (Scope & { kind: 'user'; userId: string }) | ServerCaller | DeveloperCaller;

/** The creator of a link requested by this caller. */
export function linkCreatorOf(caller: Caller, credential: Credential | undefined): UploadClaims['maker'] {
  if (caller.kind === 'agent') throw new Error('Agents cannot create upload links.');
  const { appId, sandboxId } = caller;
  const identity = caller.kind === 'user' ? { kind: caller.kind, appId, sandboxId, userId: caller.userId } : caller;
  return { identity, credential: lastingCredential(credential) };
}

type RedeemDeps = {
  db: Db;
  clock: Clock;
  secrets: Secrets;
  credentials: Pick<Credentials, 'findEnded'>;
};

/**
 * The claims of a token that may be used now. 403 when it is invalid or expired, or its creator may no longer create the
 * file; 409 when it was used before. Of two concurrent uploads, the primary key of files accepts one.
 */
export async function redeemUpload(
  { db, clock, secrets, credentials }: RedeemDeps,
  token: unknown,
): Promise<UploadClaims> {
  const claims = typeof token === 'string' ? openUpload(secrets, token) : undefined;
  const expired = claims === undefined || claims.expires < nowSeconds(clock);
  if (expired || !(await mayStillCreate(db, credentials, claims)))
    throw new AppError('forbidden', 'This upload link is not valid or has expired.');
  if (await findFile(db, claims.appId, claims.id)) throw new AppError('conflict', 'The file was already uploaded.');
  return claims;
}

/**
 * Whether this caller may create a file of these owners now, with this credential: for a link its creator, for a
 * resumable upload the caller who sends the last bytes.
 */
export async function mayStillCreate(
  db: Db,
  credentials: Pick<Credentials, 'findEnded'>,
  { maker, owner, orgId, teamId, userId, agentId }: Pick<UploadClaims, 'maker' | 'owner'> & Owned,
): Promise<boolean> {
  const { identity } = maker;
  const [[ended], caller] = await Promise.all([
    credentials.findEnded([maker]),
    identity.kind === 'user' ? loadUserCaller(db, identity) : identity,
  ]);
  if (ended || !caller) return false;
  if (canSeeWholeApp(caller)) return true;
  try {
    const now = await resolveFileOwner(db, caller, owner);
    return now.orgId === orgId && now.teamId === teamId && now.userId === userId && now.agentId === agentId;
  } catch (error) {
    if (error instanceof AppError) return false;
    throw error;
  }
}

/** The actor in the audit log for uploads by the link: its creator. */
export function actorOfLink({ appId, sandboxId, maker: { identity } }: UploadClaims): AuditActor {
  const by = { scopes: [{ appId, sandboxId }], credential: 'upload_link' };
  if (identity.kind === 'user') return { ...by, kind: 'user', id: identity.userId };
  if (identity.kind === 'server') return { ...by, kind: 'secret_key', id: identity.keyId };
  return { ...by, kind: 'developer', id: identity.developerId };
}

const purpose = 'upload';

/** The token of an upload link: its claims in base64url, a dot, and the signature. */
export function signUpload(secrets: Secrets, claims: UploadClaims): string {
  const text = Buffer.from(JSON.stringify(claims)).toString('base64url');
  return `${text}.${secrets.sign('signed-url', `${purpose}\0${text}`).toString('base64url')}`;
}

/** The claims of a token, or undefined when its signature is invalid. The caller checks expiry. */
function openUpload(secrets: Secrets, token: string): UploadClaims | undefined {
  const [text = '', signature = '', ...rest] = token.split('.');
  const bytes = readBase64url(text);
  const proof = readBase64url(signature);
  if (bytes === undefined || proof === undefined || rest.length > 0) return undefined;
  if (!secrets.verify('signed-url', `${purpose}\0${text}`, proof)) return undefined;
  // The signature proves that this server wrote it.
  return JSON.parse(bytes.toString()) as UploadClaims;
}
