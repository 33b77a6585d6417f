import { canonicalJson } from '../lib/canonical-json.ts';
import { encodeFields } from './encoding.ts';
import { keyId, type SigningKey, TrustedKeys } from './keys.ts';

/** A statement, signed with the key of the audit log. */
export type Signed<T> = { statement: T; key_id: string; public_key: string; signature: string };

/** What a statement is about. It is signed too, so that no statement passes for one of another kind. */
export type StatementKind = 'quarry:citations:1' | 'quarry:erasure:1' | 'quarry:erasure-order:1';

function bytesOf(kind: StatementKind, statement: unknown): Buffer {
  return encodeFields([kind, canonicalJson(statement)]);
}

export function signStatement<T>(key: SigningKey, kind: StatementKind, statement: T): Signed<T> {
  return {
    statement,
    key_id: key.id,
    public_key: key.publicKey.toString('hex'),
    signature: key.sign(bytesOf(kind, statement)).toString('hex'),
  };
}

/** The key that signed a statement; undefined if the signature does not match. */
export function findSigner(kind: StatementKind, signed: Signed<unknown>): Buffer | undefined {
  const publicKey = Buffer.from(String(signed.public_key), 'hex');
  if (publicKey.length !== 32 || keyId(publicKey) !== signed.key_id) return undefined;
  const signature = Buffer.from(String(signed.signature), 'hex');
  const isSigned = new TrustedKeys([publicKey], []).verify(signed.key_id, bytesOf(kind, signed.statement), signature);
  return isSigned ? publicKey : undefined;
}
