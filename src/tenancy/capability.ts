import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Database } from '../db/database.ts';
import { formatUuidBytes, uuidBytes } from '../ids.ts';
import { readBase64url } from './base64url.ts';
import type { Secrets } from './secrets.ts';

/** What a capability token opens; the token of one role opens no other. */
export type CapabilityRole = 'avatar' | 'org_logo' | 'share';

/** What a token says: which app's key it was made with. */
export type CapabilityClaim = { appId: string; mac: Buffer; wellFormed: boolean };

const appBytes = 16;
const macBytes = 32;

/**
 * Capability tokens: base64url of the app's id and an HMAC-SHA-256 over role, app and file, with a random key per app
 * that the root secret wraps. They never expire; what they open decides whether they still do.
 */
export class Capabilities {
  readonly #db: Database;
  readonly #secrets: Secrets;
  readonly #keys = new Map<string, Buffer>();
  readonly #decoy: Buffer;

  constructor(deps: { db: Database; secrets: Secrets }) {
    this.#db = deps.db;
    this.#secrets = deps.secrets;
    this.#decoy = deps.secrets.wrap(Buffer.alloc(macBytes));
  }

  async token(appId: string, fileId: string, role: CapabilityRole): Promise<string> {
    const key = await this.#key(appId);
    if (!key) throw new Error('There is no such app.');
    return Buffer.concat([uuidBytes(appId), mac(key, appId, fileId, role)]).toString('base64url');
  }

  /** What a token says, unproved. Anything that is no token reads as one that opens nothing, so both go one way. */
  read(token: unknown): CapabilityClaim {
    const bytes = Buffer.from(typeof token === 'string' ? token : '', 'base64url');
    // Only the one spelling that we made is a token: no padding, no stray characters.
    const wellFormed = bytes.length === appBytes + macBytes && bytes.toString('base64url') === token;
    const whole = wellFormed ? bytes : Buffer.alloc(appBytes + macBytes);
    return { appId: formatUuidBytes(whole.subarray(0, appBytes)), mac: whole.subarray(appBytes), wellFormed };
  }

  /**
   * Whether the claim was made with this app's key, for this file and role. `wrappedKey` is the app's as it is stored;
   * an app that does not exist costs the same as a wrong token.
   */
  proves(claim: CapabilityClaim, wrappedKey: Buffer | undefined, fileId: string, role: CapabilityRole): boolean {
    const { plain } = this.#secrets.unwrap(wrappedKey ?? this.#decoy);
    const equal = timingSafeEqual(mac(plain, claim.appId, fileId, role), claim.mac);
    return equal && claim.wellFormed && wrappedKey !== undefined;
  }

  async #key(appId: string): Promise<Buffer | undefined> {
    const kept = this.#keys.get(appId);
    if (kept) return kept;
    const [row] = await this.#db<{ capabilityKey: Buffer }[]>`
      select capability_key from apps where id = ${appId}`;
    if (!row) return undefined;
    const { plain, stale } = this.#secrets.unwrap(row.capabilityKey);
    if (stale) await this.#db`update apps set capability_key = ${this.#secrets.wrap(plain)} where id = ${appId}`;
    if (this.#keys.size >= keysMax) this.#keys.clear();
    this.#keys.set(appId, plain);
    return plain;
  }
}

const keysMax = 10_000;

function mac(key: Buffer, appId: string, fileId: string, role: CapabilityRole): Buffer {
  return createHmac('sha256', key)
    .update(role)
    .update('\0')
    .update(uuidBytes(appId))
    .update(uuidBytes(fileId))
    .digest();
}

/** Signs short-lived download links; the app's id is inside what is authenticated. */
export class SignedLinks {
  readonly #secrets: Secrets;

  constructor(secrets: Secrets) {
    this.#secrets = secrets;
  }

  /** `purpose` keeps links of one kind from opening another kind's door. */
  signature(purpose: string, appId: string, fileId: string, expires: number): string {
    const signed = this.#secrets.sign('signed-url', message(purpose, appId, fileId, expires));
    return Buffer.concat([uuidBytes(appId), signed]).toString('base64url');
  }

  /** The app that the signature was made for, or undefined. Expiry is for the caller to check. */
  verify(purpose: string, signature: string, fileId: string, expires: number): string | undefined {
    const bytes = readBase64url(signature);
    if (bytes?.length !== appBytes + macBytes) return undefined;
    const appId = formatUuidBytes(bytes.subarray(0, appBytes));
    const valid = this.#secrets.verify(
      'signed-url',
      message(purpose, appId, fileId, expires),
      bytes.subarray(appBytes),
    );
    return valid ? appId : undefined;
  }
}

function message(purpose: string, appId: string, fileId: string, expires: number): string {
  return `${purpose}\0${appId}\0${fileId}\0${expires}`;
}
