import { readFileSync } from 'node:fs';
import type { SignedStatement } from '../../answers/statement.ts';
import type { Certificate } from '../../erasures/store.ts';
import { keyId } from '../../ledger/keys.ts';
import { findSigner, type Signed, type StatementKind } from '../../ledger/statement.ts';
import { countOf } from '../count.ts';
import { UsageError } from '../errors.ts';

/** How statements of one kind are verified and described. */
type Kind<T> = {
  kind: StatementKind;
  /** What the file is read as, for errors. */
  words: string;
  /** What is printed as JSON about one that is unchanged. */
  facts: (statement: T) => object;
  describe: (statement: T) => string;
};

/**
 * Verifies statements about quotes, without a database. Returns exit code 1 if one was changed or is signed with a key
 * that is not trusted.
 */
export function verifyStatements(files: readonly string[], trusted: readonly Uint8Array[], json: boolean): number {
  return verifyFiles<SignedStatement['statement']>(files, trusted, json, {
    kind: 'quarry:citations:1',
    words: 'a statement about quotes',
    facts: (statement) => ({ quotes: countStatuses(statement) }),
    describe(statement) {
      const counts = countStatuses(statement);
      const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
      const list = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
      return ` at ${statement.verified_at}: ${countOf(total, 'quote')}${list.length === 0 ? '' : ` (${list.join(', ')})`}`;
    },
  });
}

/** Verifies certificates of erasures, without a database. Returns 1 like `verifyStatements`. */
export function verifyCertificates(files: readonly string[], trusted: readonly Uint8Array[], json: boolean): number {
  return verifyFiles<Certificate['statement']>(files, trusted, json, {
    kind: 'quarry:erasure:1',
    words: 'a certificate of an erasure',
    facts: ({ erasure, removed }) => ({ erasure, removed }),
    describe(statement) {
      const subject = statement.user ?? statement.document ?? statement.source;
      const list = Object.entries(statement.removed).map(([name, count]) => `${count} ${name.replaceAll('_', ' ')}`);
      return ` at ${statement.completed_at}: ${subject} was erased (${list.join(', ')})`;
    },
  });
}

function verifyFiles<T>(
  files: readonly string[],
  trusted: readonly Uint8Array[],
  json: boolean,
  { kind, words, facts, describe }: Kind<T>,
): number {
  const trustedIds = new Set(trusted.map(keyId));
  let problems = 0;
  for (const file of files) {
    const signed = readFile<T>(file, words);
    const message = problemOf(kind, signed, trustedIds);
    if (message !== undefined) problems += 1;
    if (json)
      process.stdout.write(
        `${JSON.stringify({ file, ...(message ? { problem: message } : facts(signed.statement)) })}\n`,
      );
    else
      process.stdout.write(
        `${file}: ${message ?? `unchanged, signed with ${signed.key_id}${describe(signed.statement)}`}\n`,
      );
  }
  return problems === 0 ? 0 : 1;
}

function readFile<T>(file: string, words: string): Signed<T> {
  try {
    const value = JSON.parse(readFileSync(file, 'utf8')) as Signed<T>;
    if (typeof value?.statement !== 'object' || value.statement === null) throw new Error('It has no statement.');
    return value;
  } catch (error) {
    throw new UsageError(`${file} cannot be read as ${words}: ${error instanceof Error ? error.message : error}`);
  }
}

function problemOf(kind: StatementKind, signed: Signed<unknown>, trusted: ReadonlySet<string>): string | undefined {
  const signer = findSigner(kind, signed);
  if (signer === undefined) return 'The statement does not match its signature.';
  if (trusted.has(keyId(signer))) return undefined;
  return `The statement is signed with ${signed.key_id}, which is not a trusted key. Name the key with --trust.`;
}

function countStatuses(statement: SignedStatement['statement']): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of statement.quotes ?? []) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
