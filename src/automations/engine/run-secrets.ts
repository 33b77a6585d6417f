import type { Db } from '../../db/database.ts';
import type { Scope } from '../../tenancy/caller.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { findSecrets } from '../runs/secret-store.ts';
import { SecretValues } from './secret-values.ts';

/** The secrets of an app or a sandbox as its runs read them, and what finds them in other values. */
export type OpenSecrets = { values: Readonly<Record<string, string>>; finder: SecretValues };

type Cached = OpenSecrets & { version: string; characters: number };

/** Characters of all cached secrets. */
const cachedCharactersMax = 16 * 1024 * 1024;
const none: OpenSecrets = { values: {}, finder: new SecretValues({}) };

/** Reads and decrypts the secrets of an app once for each version of them, not for each run that is advanced. */
export class RunSecrets {
  readonly #secrets: Secrets;
  readonly #cached = new Map<string, Cached>();
  #characters = 0;

  constructor(secrets: Secrets) {
    this.#secrets = secrets;
  }

  /** @param version changes with every change of the secrets; null if there are none */
  async of(db: Db, run: Scope, version: string | null): Promise<OpenSecrets> {
    if (version === null) return none;
    const key = `${run.appId}/${run.sandboxId}`;
    const known = this.#cached.get(key);
    if (known?.version === version) return known;
    const { values, ...read } = await readSecrets(db, this.#secrets, run);
    const characters = Object.values(values).reduce((sum, value) => sum + value.length, 0);
    const opened = { values, finder: new SecretValues(values), version: read.version ?? '', characters };
    this.#keep(key, opened);
    return opened;
  }

  #keep(key: string, opened: Cached): void {
    this.#characters -= this.#cached.get(key)?.characters ?? 0;
    if (this.#characters + opened.characters > cachedCharactersMax) {
      this.#cached.clear();
      this.#characters = 0;
    }
    this.#cached.set(key, opened);
    this.#characters += opened.characters;
  }
}

/** The secrets of an app or a sandbox by name, and their version; null if there are none. */
export async function readSecrets(
  db: Db,
  secrets: Secrets,
  scope: Scope,
): Promise<{ values: Record<string, string>; version: string | null }> {
  const found = await findSecrets(db, scope);
  const open = (value: string) => secrets.unwrap(Buffer.from(value, 'base64')).plain.toString('utf8');
  const opened = Object.entries(found.secrets ?? {}).map(([name, value]) => [name, open(value)] as const);
  return { values: Object.fromEntries(opened), version: found.version };
}
