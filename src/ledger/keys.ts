import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { Secrets } from '../tenancy/secrets.ts';
import { encodeFields, sha256 } from './encoding.ts';

/**
 * The ledger's Ed25519 keys. The private keys are derived from the root secret, so nothing in the database can sign.
 */
export type SigningKey = { id: string; publicKey: Buffer; sign(bytes: Uint8Array): Buffer };

/** A stored public key. The key that replaced it vouches for it. */
export type PublicKeyRow = {
  id: string;
  publicKey: Buffer;
  endorsedBy: string | null;
  endorsement: Buffer | null;
};

/** The bytes before a 32-byte key in PKCS #8 and in SPKI (RFC 8410). */
const privatePrefix = Buffer.from('302e020100300506032b657004220420', 'hex');
const publicPrefix = Buffer.from('302a300506032b6570032100', 'hex');

/** The key of the current root secret, then the key of the previous one. */
export function signingKeys(secrets: Secrets): SigningKey[] {
  return secrets.keys('ledger').map((seed) => {
    const key = createPrivateKey({ key: Buffer.concat([privatePrefix, seed]), format: 'der', type: 'pkcs8' });
    const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(publicPrefix.length);
    return { id: keyId(publicKey), publicKey, sign: (bytes) => sign(null, bytes, key) };
  });
}

export function keyId(publicKey: Uint8Array): string {
  return sha256(publicKey).toString('hex').slice(0, 16);
}

/** The text that the next key signs to vouch for this key. */
export function endorsementText(publicKey: Uint8Array): Buffer {
  return encodeFields(['quarry:key:1', Buffer.from(publicKey).toString('hex')]);
}

/** The trusted public keys: the given ones, and those that a trusted key vouches for. */
export class TrustedKeys {
  readonly #keys = new Map<string, KeyObject>();

  constructor(trusted: readonly Uint8Array[], stored: readonly PublicKeyRow[]) {
    for (const key of trusted) this.#add(key);
    for (let before = -1; before < this.#keys.size; ) {
      before = this.#keys.size;
      for (const { publicKey, endorsedBy, endorsement } of stored)
        if (endorsedBy !== null && endorsement !== null && !this.#keys.has(keyId(publicKey)))
          if (this.verify(endorsedBy, endorsementText(publicKey), endorsement)) this.#add(publicKey);
    }
  }

  has(id: string): boolean {
    return this.#keys.has(id);
  }

  /** Whether a trusted key with this id signed the bytes. */
  verify(id: string, bytes: Uint8Array, signature: Uint8Array): boolean {
    const key = this.#keys.get(id);
    return key !== undefined && verify(null, bytes, key, signature);
  }

  #add(publicKey: Uint8Array): void {
    const key = createPublicKey({ key: Buffer.concat([publicPrefix, publicKey]), format: 'der', type: 'spki' });
    this.#keys.set(keyId(publicKey), key);
  }
}
