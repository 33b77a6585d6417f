import type { Static } from 'typebox';
import type { SigningKey } from '../ledger/keys.ts';
import { signStatement as sign } from '../ledger/statement.ts';
import type { signedStatementSchema } from './schema.ts';

export type SignedStatement = Static<typeof signedStatementSchema>;

export function signStatement(key: SigningKey, statement: SignedStatement['statement']): SignedStatement {
  return sign(key, 'quarry:citations:1', statement);
}
