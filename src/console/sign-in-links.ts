import { randomBytes } from 'node:crypto';
import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { digest } from '../tenancy/secrets.ts';
import * as store from './store.ts';

const lifetimeMs = 10 * 60_000;
const linksMax = 10;

export type SignInLink = { code: string; expiresAt: Date };

/**
 * Codes that sign one browser in as a developer, once: the server prints one when it starts, and `quarry console`
 * creates others.
 */
export function createSignInLinks({ db, clock }: { db: Database; clock: Clock }) {
  return {
    async create(developerToken: string): Promise<SignInLink | undefined> {
      const code = `csl_${randomBytes(32).toString('base64url')}`;
      const expiresAt = new Date(clock.now().getTime() + lifetimeMs);
      const link = { digest: digest(code), tokenDigest: digest(developerToken), expiresAt };
      const isCreated = await db.begin((tx) => store.insertSignInLink(tx, link, linksMax));
      return isCreated ? { code, expiresAt } : undefined;
    },

    /** Uses up a code. Returns the digest of its developer token; undefined if it is unknown, used or too old. */
    take: (code: string): Promise<Buffer | undefined> => store.deleteSignInLink(db, digest(code), clock.now()),
  };
}

/** The link with a code: after the #, so that no request, log or proxy ever contains it. */
export function signInUrl(baseUrl: string, code: string): string {
  return `${baseUrl}/console#sign-in=${code}`;
}
