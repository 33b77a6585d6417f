import { isDeepStrictEqual } from 'node:util';
import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import { newUuid, parseId } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import type { OrgRole } from '../tenancy/caller.ts';
import { insertUser } from '../users/store.ts';
import type { ClaimMapping } from './schema.ts';
import * as store from './store.ts';
import { isStorableText, type VerifiedToken } from './verify.ts';

type AccountsDeps = { db: Database; clock: Clock };

/**
 * Finds the user of a verified token by account (app, sandbox, issuer, subject), never by e-mail. 401 if there is
 * none.
 */
export async function findAccountUser(
  { db, clock }: AccountsDeps,
  issuer: store.IssuerRow,
  token: VerifiedToken,
): Promise<{ userId: string; epoch: number }> {
  const { subject, issuedAt, claims } = token;
  let account = await store.findAccount(db, issuer, subject);
  if (account === undefined) {
    await createAccount(db, issuer, token, clock.now());
    account = await store.findAccount(db, issuer, subject);
  }
  const { userId, epoch, sessionsEndedAt } = account ?? {};
  if (userId == null || epoch == null) throw unknownAccount();
  // `iat` counts whole seconds. A token issued in the second in which the sessions ended may be older than their end.
  if (sessionsEndedAt != null && issuedAt <= sessionsEndedAt)
    throw new AppError(
      'invalid_credentials',
      'The sessions of this user ended after the token was issued. Sign in again.',
    );
  const rights = mapRights(issuer.claims, claims);
  const isNews = !isDeepStrictEqual(rights, account?.applied ?? {});
  if (isNews && (account?.appliedIssuedAt == null || account.appliedIssuedAt <= issuedAt))
    await db.begin((tx) => store.applyRights(tx, issuer, { subject, userId, issuedAt }, rights));
  return { userId, epoch };
}

/** Links the account to the user with its e-mail, or creates a user, if the app allows either. */
async function createAccount(
  db: Database,
  issuer: store.IssuerRow,
  { subject, claims }: VerifiedToken,
  now: Date,
): Promise<void> {
  const email = claims.email_verified === true ? readEmail(claims.email) : undefined;
  const owner = email === undefined ? undefined : await store.findUserByEmail(db, issuer, email);
  if (owner?.isSame && issuer.linksByEmail) {
    await store.insertAccount(db, issuer, { subject, userId: owner.id, now });
    return;
  }
  if (!issuer.createsUsers) return;
  const id = newUuid();
  await db
    .begin(async (tx) => {
      await insertUser(tx, issuer, {
        id,
        // The e-mail address belongs to another user, who keeps it.
        email: owner === undefined ? (email ?? null) : null,
        name: readName(claims[issuer.claims.name ?? 'name']),
        passwordHash: null,
        orgId: null,
        orgRole: null,
        isSystemUser: false,
        metadata: {},
      });
      // Another request may have created the account meanwhile.
      if (!(await store.insertAccount(tx, issuer, { subject, userId: id, now }))) throw new AccountExists();
    })
    .catch((error: unknown) => {
      if (!(error instanceof AccountExists)) throw error;
    });
}

class AccountExists extends Error {}

/** Maps a token's claims to the rights that the app has listed. Other claims are ignored. */
function mapRights(mapping: ClaimMapping, claims: Record<string, unknown>): store.MappedRights {
  const { org, role, teams, groups } = mapping;
  const rights: store.MappedRights = {};
  if (org !== undefined) {
    const [id = null] = idsOf('org', org.values, claims[org.claim]);
    rights.org = { id, role: roleOf(role, claims), of: allIds('org', org.values) };
  }
  if (teams !== undefined)
    rights.teams = { ids: idsOf('team', teams.values, claims[teams.claim]), of: allIds('team', teams.values) };
  if (groups !== undefined)
    rights.groups = { names: groupsOf(claims[groups.claim]), overage: leavesOut(groups.claim, claims) };
  return rights;
}

function groupsOf(claim: unknown): string[] {
  const names = valuesOf(claim).filter((name) => isStorableText(name) && name !== '' && name.length <= groupNameMax);
  return [...new Set(names)].sort();
}

/** Whether the token says that its issuer knows of more groups than it lists. Entra then leaves out the claim. */
function leavesOut(claim: string, claims: Record<string, unknown>): boolean {
  if (claims[claim] !== undefined) return false;
  const named = claims._claim_names;
  const isNamed = typeof named === 'object' && named !== null && Object.hasOwn(named, claim);
  return isNamed || claims.hasgroups === true || claims.hasgroups === 'true';
}

function roleOf(role: ClaimMapping['role'], claims: Record<string, unknown>): OrgRole {
  const named = role === undefined ? [] : valuesOf(claims[role.claim]);
  const values = new Map(Object.entries(role?.values ?? {}));
  const roles = named.flatMap((value) => values.get(value) ?? []);
  return (['admin', 'member', 'viewer'] as const).find((each) => roles.includes(each)) ?? 'member';
}

const claimValuesMax = 1_000;
const groupNameMax = 500;

function valuesOf(claim: unknown): string[] {
  const all: unknown[] = Array.isArray(claim) ? claim.slice(0, claimValuesMax) : [claim];
  return all.filter((value) => typeof value === 'string');
}

type Values = Record<string, string> | undefined;

function idsOf(kind: 'org' | 'team', values: Values, claim: unknown): string[] {
  const known = new Map(Object.entries(values ?? {}));
  return [...new Set(valuesOf(claim).flatMap((value) => parseId(kind, known.get(value) ?? '') ?? []))].sort();
}

function allIds(kind: 'org' | 'team', values: Values): string[] {
  return [...new Set(Object.values(values ?? {}).flatMap((id) => parseId(kind, id) ?? []))].sort();
}

function readEmail(claim: unknown): string | undefined {
  return isStorableText(claim) && /^[^\s@]+@[^\s@]+$/.test(claim) && claim.length <= 254 ? claim : undefined;
}

function readName(claim: unknown): string | null {
  if (typeof claim !== 'string' || claim.trim() === '' || claim.includes('\0')) return null;
  return claim.slice(0, limits.nameCharactersMax).toWellFormed();
}

function unknownAccount(): AppError {
  return new AppError('invalid_credentials', 'This account of the issuer is not a user of the app, or was deleted.');
}
