import { randomBytes } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { digest } from '../tenancy/secrets.ts';

const lifetimeMs = 10 * 60_000;
const linksMax = 10;

/**
 * Codes that sign one browser in as a developer, once. They exist only in the memory of this process, as digests, and
 * end with it: the link is printed for the person who has just started the process.
 */
export function createSignInLinks(clock: Clock) {
  const links = new Map<string, { developerToken: string; expiresAtMs: number }>();
  return {
    /** Creates a code for the holder of a developer token. */
    create(developerToken: string): string {
      const code = `csl_${randomBytes(32).toString('base64url')}`;
      const [oldest] = links.keys();
      if (links.size >= linksMax && oldest !== undefined) links.delete(oldest);
      links.set(keyOf(code), { developerToken, expiresAtMs: clock.now().getTime() + lifetimeMs });
      return code;
    },

    /**
     * Returns the developer token behind a code and uses up the code. Undefined if the code is unknown, used or too
     * old.
     */
    take(code: string): string | undefined {
      const link = links.get(keyOf(code));
      links.delete(keyOf(code));
      return link !== undefined && clock.now().getTime() < link.expiresAtMs ? link.developerToken : undefined;
    },
  };
}

/** The link with a code: after the #, so that no request, log or proxy ever contains it. */
export function signInUrl(baseUrl: string, code: string): string {
  return `${baseUrl}/console#sign-in=${code}`;
}

/** A lookup by digest takes equally long for every wrong code. */
const keyOf = (code: string) => digest(code).toString('hex');
