import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hash,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

/** The purpose of a derived key. It is an input to HKDF, so that each purpose has a separate key. */
type KeyPurpose = 'access-token' | 'signed-url' | 'wrap' | 'cursor' | 'session' | 'ledger' | 'mcp-token';

const keyBytes = 32;
const ivBytes = 12;
const tagBytes = 16;

/** Keys derived from the root secret by HKDF-SHA-256 (RFC 5869). Keys of the previous secret are accepted for checks. */
export class Secrets {
  readonly #roots: Buffer[];
  readonly #keys = new Map<string, Buffer>();

  constructor(root: string, previous?: string) {
    this.#roots = [root, ...(previous === undefined ? [] : [previous])].map((secret) => Buffer.from(secret, 'utf8'));
  }

  /** The keys for a purpose, the current one first. */
  keys(purpose: KeyPurpose): Buffer[] {
    return this.#roots.map((root, index) => {
      const name = `${purpose}/${index}`;
      let key = this.#keys.get(name);
      if (!key) {
        key = Buffer.from(hkdfSync('sha256', root, Buffer.alloc(0), `quarry/${purpose}/v1`, keyBytes));
        this.#keys.set(name, key);
      }
      return key;
    });
  }

  /** HMAC-SHA-256 with the current key. */
  sign(purpose: KeyPurpose, message: string | Uint8Array): Buffer {
    const [key] = this.keys(purpose);
    if (!key) throw new Error('No root secret is set.');
    return createHmac('sha256', key).update(message).digest();
  }

  /** Whether the signature is valid with the current or the previous key. Constant time for each. */
  verify(purpose: KeyPurpose, message: string | Uint8Array, signature: Uint8Array): boolean {
    let valid = false;
    for (const key of this.keys(purpose)) {
      const expected = createHmac('sha256', key).update(message).digest();
      if (expected.length === signature.length && timingSafeEqual(expected, signature)) valid = true;
    }
    return valid;
  }

  /** Encrypts a key for storage with AES-256-GCM. Returns iv, tag and ciphertext. */
  wrap(plain: Uint8Array): Buffer {
    const [key] = this.keys('wrap');
    if (!key) throw new Error('No root secret is set.');
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv('aes-256-gcm', key, iv);
    const body = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), body]);
  }

  /** Decrypts the result of `wrap`. `stale` means that the previous secret wrapped it. Throws when no secret fits. */
  unwrap(wrapped: Uint8Array): { plain: Buffer; stale: boolean } {
    const bytes = Buffer.from(wrapped);
    for (const [index, key] of this.keys('wrap').entries()) {
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes));
        decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
        const body = bytes.subarray(ivBytes + tagBytes);
        return { plain: Buffer.concat([decipher.update(body), decipher.final()]), stale: index > 0 };
      } catch {
        // Try the next root secret.
      }
    }
    throw new Error('Cannot unwrap a stored key: QUARRY_SECRET is not the secret that this database was created with.');
  }
}

/** The form in which keys and opaque tokens are stored. */
export function digest(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** Whether this is the secret that is stored as its digest. Constant time. */
export function isDigestOf(secret: string, stored: Buffer): boolean {
  return timingSafeEqual(digest(secret), stored);
}

/** A new opaque credential such as `sk_…`: 256 random bits in base64url. */
export function generateCredential(prefix: 'pk' | 'sk' | 'dvt' | 'rt' | 'sat' | 'whs'): string {
  return `${prefix}_${randomBytes(32).toString('base64url')}`;
}
