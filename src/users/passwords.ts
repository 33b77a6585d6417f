import { lazyPackage } from '../lib/lazy-package.ts';

const argon2 = lazyPackage<typeof import('@node-rs/argon2')>('@node-rs/argon2');

/** The allowed length of a new password, in characters. */
export const passwordCharacters = { min: 8, max: 1_024 } as const;

/** Argon2id at OWASP's 2024 minimum: 19 MiB, 2 passes, 1 lane. The library's default algorithm is Argon2id. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** Returns the hash as a PHC string, which includes its cost, so that the cost can be raised later. */
export function hashPassword(password: string): Promise<string> {
  return argon2().hash(password, cost);
}

/** Whether the password matches the hash. Without a hash, does the same work and returns false. */
export async function verifyPassword(password: string, stored: string | undefined): Promise<boolean> {
  dummy ??= hashPassword('a password that matches no user');
  const matches = await argon2().verify(stored ?? (await dummy), password);
  return matches && stored !== undefined;
}

let dummy: Promise<string> | undefined;
