import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

/** What each derived key is for; the name goes into HKDF, so one key never opens another's door. */
export type KeyPurpose = 'access-token' | 'signed-url' | 'wrap' | 'cursor' | 'session';

const keyBytes = 32;
const ivBytes = 12;
const tagBytes = 16;

/** Keys derived by HKDF-SHA-256 (RFC 5869) from the root secret; the previous one is still accepted for checking. */
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
    if (!key) throw new Error('There is no root secret.');
    return createHmac('sha256', key).update(message).digest();
  }

  /** True when the signature was made with the current or the previous key. Constant time for each. */
  verify(purpose: KeyPurpose, message: string | Uint8Array, signature: Uint8Array): boolean {
    let valid = false;
    for (const key of this.keys(purpose)) {
      const expected = createHmac('sha256', key).update(message).digest();
      if (expected.length === signature.length && timingSafeEqual(expected, signature)) valid = true;
    }
    return valid;
  }

  /** Encrypts a key of ours with AES-256-GCM: iv, tag, ciphertext. */
  wrap(plain: Uint8Array): Buffer {
    const [key] = this.keys('wrap');
    if (!key) throw new Error('There is no root secret.');
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv('aes-256-gcm', key, iv);
    const body = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), body]);
  }

  /** Decrypts what `wrap` made; `stale` says that the previous secret did it. Throws when no secret fits. */
  unwrap(wrapped: Uint8Array): { plain: Buffer; stale: boolean } {
    const bytes = Buffer.from(wrapped);
    for (const [index, key] of this.keys('wrap').entries()) {
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes));
        decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
        const body = bytes.subarray(ivBytes + tagBytes);
        return { plain: Buffer.concat([decipher.update(body), decipher.final()]), stale: index > 0 };
      } catch {
        // The next root secret may fit.
      }
    }
    throw new Error(
      'A stored key cannot be unwrapped: QUARRY_SECRET is not the secret that this database was made with.',
    );
  }
}

/** How keys and opaque tokens are stored. */
export function digest(secret: string): Buffer {
  return createHash('sha256').update(secret, 'utf8').digest();
}

/** A new opaque credential such as `sk_…`: 256 random bits in base64url. */
export function newCredential(prefix: 'pk' | 'sk' | 'dvt' | 'rt' | 'sat' | 'whs'): string {
  return `${prefix}_${randomBytes(32).toString('base64url')}`;
}
