import { readFileSync } from 'node:fs';
import { readStatement, type SignedStatement } from '../../answers/statement.ts';
import { keyId } from '../../ledger/keys.ts';
import { countOf } from '../count.ts';
import { UsageError } from '../errors.ts';

/**
 * Verifies statements about quotes, without a database. Returns exit code 1 if one was changed or is signed with a key
 * that is not trusted.
 */
export function verifyStatements(files: readonly string[], trusted: readonly Uint8Array[], json: boolean): number {
  const trustedIds = new Set(trusted.map(keyId));
  let problems = 0;
  for (const file of files) {
    const signed = readFile(file);
    const message = problemOf(signed, trustedIds);
    if (message !== undefined) problems += 1;
    const counts = countStatuses(signed);
    if (json)
      process.stdout.write(`${JSON.stringify({ file, ...(message ? { problem: message } : { quotes: counts }) })}\n`);
    else process.stdout.write(`${file}: ${message ?? describe(signed, counts)}\n`);
  }
  return problems === 0 ? 0 : 1;
}

function readFile(file: string): SignedStatement {
  try {
    const value = JSON.parse(readFileSync(file, 'utf8')) as SignedStatement;
    if (typeof value?.statement !== 'object' || value.statement === null) throw new Error('It has no statement.');
    return value;
  } catch (error) {
    throw new UsageError(
      `${file} cannot be read as a statement about quotes: ${error instanceof Error ? error.message : error}`,
    );
  }
}

function problemOf(signed: SignedStatement, trusted: ReadonlySet<string>): string | undefined {
  const read = readStatement(signed);
  if (read === undefined) return 'The statement does not match its signature.';
  if (trusted.has(keyId(read.publicKey))) return undefined;
  return `The statement is signed with ${signed.key_id}, which is not a trusted key. Name the key with --trust.`;
}

function countStatuses({ statement }: SignedStatement): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of statement.quotes ?? []) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function describe({ statement, key_id }: SignedStatement, counts: Record<string, number>): string {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const list = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
  return `unchanged, signed with ${key_id} at ${statement.verified_at}: ${countOf(total, 'quote')}${list.length === 0 ? '' : ` (${list.join(', ')})`}`;
}
