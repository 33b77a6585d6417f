import { hash, verify } from '@node-rs/argon2';

/** Argon2id at OWASP's 2024 minimum: 19 MiB, 2 passes, 1 lane. The library's default algorithm is Argon2id. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** The hash as a PHC string, which names its own cost: it can be raised later without losing old hashes. */
export function hashPassword(password: string): Promise<string> {
  return hash(password, cost);
}

/** True when the password made this hash. Without a hash it does the same work and says false. */
export async function verifyPassword(password: string, stored: string | undefined): Promise<boolean> {
  dummy ??= hashPassword('the password of nobody');
  const matches = await verify(stored ?? (await dummy), password);
  return matches && stored !== undefined;
}

let dummy: Promise<string> | undefined;
