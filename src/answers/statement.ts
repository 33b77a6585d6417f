import type { Static } from 'typebox';
import { encodeFields } from '../ledger/encoding.ts';
import { keyId, type SigningKey, TrustedKeys } from '../ledger/keys.ts';
import { canonicalJson } from '../lib/canonical-json.ts';
import type { signedStatementSchema } from './schema.ts';

export type SignedStatement = Static<typeof signedStatementSchema>;

function bytesOf(statement: unknown): Buffer {
  return encodeFields(['quarry:citations:1', canonicalJson(statement)]);
}

export function signStatement(key: SigningKey, statement: SignedStatement['statement']): SignedStatement {
  return {
    statement,
    key_id: key.id,
    public_key: key.publicKey.toString('hex'),
    signature: key.sign(bytesOf(statement)).toString('hex'),
  };
}

/** The key that signed a statement; undefined if the signature does not match. */
export function readStatement(signed: SignedStatement): { publicKey: Buffer } | undefined {
  const publicKey = Buffer.from(String(signed.public_key), 'hex');
  if (publicKey.length !== 32 || keyId(publicKey) !== signed.key_id) return undefined;
  const signature = Buffer.from(String(signed.signature), 'hex');
  const isSigned = new TrustedKeys([publicKey], []).verify(signed.key_id, bytesOf(signed.statement), signature);
  return isSigned ? { publicKey } : undefined;
}
