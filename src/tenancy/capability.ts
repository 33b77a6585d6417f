import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Database } from '../db/database.ts';
import { formatUuidBytes, uuidBytes } from '../lib/ids.ts';
import { readBase64url } from './base64url.ts';
import type { Secrets } from './secrets.ts';

/** The use that a capability token allows; it allows no other. */
export type CapabilityRole = 'avatar' | 'org_logo' | 'share';

/** The claim of a token: the app whose key signed it. */
type CapabilityClaim = { appId: string; mac: Buffer; wellFormed: boolean };

const appBytes = 16;
const macBytes = 32;

/**
 * Capability tokens: base64url of the app's id and an HMAC-SHA-256 over role, app and file, with a random key per app
 * that the root secret wraps. They never expire; whether they work depends on the current state of the file.
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
    if (!key) throw new Error('The app does not exist.');
    return Buffer.concat([uuidBytes(appId), mac(key, appId, fileId, role)]).toString('base64url');
  }

  /** The unverified claim of a token. Malformed text yields a claim that never verifies, so both take the same path. */
  read(token: unknown): CapabilityClaim {
    const bytes = Buffer.from(typeof token === 'string' ? token : '', 'base64url');
    // Only the canonical encoding is a token: no padding, no other characters.
    const wellFormed = bytes.length === appBytes + macBytes && bytes.toString('base64url') === token;
    const whole = wellFormed ? bytes : Buffer.alloc(appBytes + macBytes);
    return { appId: formatUuidBytes(whole.subarray(0, appBytes)), mac: whole.subarray(appBytes), wellFormed };
  }

  /**
   * Whether the claim is signed with this app's key for this file and role. `wrappedKey` is the app's stored key. A
   * missing app takes as long as a wrong token.
   */
  verifies(claim: CapabilityClaim, wrappedKey: Buffer | undefined, fileId: string, role: CapabilityRole): boolean {
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

/** Lifetime of a signed download link. */
export const signedLinkSeconds = 3600;

/** Signs short-lived download links. The signature covers the app's id. */
export class SignedLinks {
  readonly #secrets: Secrets;

  constructor(secrets: Secrets) {
    this.#secrets = secrets;
  }

  /** `purpose` prevents the use of one kind of link as another. */
  signature(purpose: string, appId: string, fileId: string, expires: number): string {
    const signed = this.#secrets.sign('signed-url', message(purpose, appId, fileId, expires));
    return Buffer.concat([uuidBytes(appId), signed]).toString('base64url');
  }

  /** The app in the signature, or undefined when it is invalid. The caller checks expiry. */
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
