import { Connection } from '../../src/db/connection.ts';
import type { Compiled } from '../../src/db/sql.ts';
import { isInUnit } from '../../src/db/unit.ts';

/*
 * Follows the statements of every transaction of this process and finds those that lock rows of a source in another
 * order than `lockIndex` defines: its index first. Import this module before the first statement.
 */

/** What a transaction has locked so far. */
export type Locks = {
  hasIndex: boolean /** Statements that have changed or locked rows behind an index. */;
  behind: string[];
};

const index = /\bupdate knowledge_indexes\b|\bfrom knowledge_indexes\b[^;]*\bfor update\b/;
const behindIndex = [
  'knowledge_ingestions',
  'knowledge_documents',
  'knowledge_sync_items',
  'knowledge_pull_removals',
] as const;
const changed = new RegExp(
  `\\b(?:update|delete from|insert into (?=knowledge_pull_removals)) ?(?:${behindIndex.join('|')})\\b`,
);
const locked = new RegExp(`\\bfrom (?:${behindIndex.join('|')})\\b[^;]*\\bfor update\\b(?! (?:of \\w+ )?skip locked)`);

/** What a statement locks; remembered, because the same texts come again and again. */
const known = new Map<string, 'index' | 'behind' | undefined>();

function readLock(text: string): 'index' | 'behind' | undefined {
  if (!known.has(text)) {
    const flat = text.replaceAll(/\s+/g, ' ');
    known.set(text, index.test(flat) ? 'index' : changed.test(flat) || locked.test(flat) ? 'behind' : undefined);
  }
  return known.get(text);
}

/** Adds a statement to the locks of its transaction. Returns what is wrong with it, if anything. */
export function addStatement(locks: Locks, text: string): string | undefined {
  const lock = readLock(text);
  if (lock === undefined || locks.hasIndex) return undefined;
  if (lock === 'behind') locks.behind.push(text);
  else locks.hasIndex = true;
  const [first] = locks.behind;
  if (first === undefined || (lock === 'behind' && locks.behind.length === 1)) return undefined;
  return lock === 'index'
    ? `This statement locks the index of a source:\n${text}\nafter this one, which comes behind it:\n${first}`
    : `This statement:\n${text}\nlocks more rows behind the index of a source, which is not locked, than:\n${first}`;
}

/** Statements that PostgreSQL has aborted because of a deadlock. */
export const deadlocks: string[] = [];

const open = new WeakMap<Connection, Locks>();
const { execute, runScript } = Connection.prototype;

Connection.prototype.runScript = function (this: Connection, text: string): Promise<string> {
  if (text.startsWith('begin')) open.set(this, { hasIndex: false, behind: [] });
  else if (text === 'commit' || text === 'rollback') open.delete(this);
  return runScript.call(this, text);
};

Connection.prototype.execute = function (this: Connection, compiled: Compiled) {
  const locks = open.get(this);
  // The requests of a unit share a transaction, and lock the sources that they name in the order of the requests.
  const wrong = locks === undefined || isInUnit() ? undefined : addStatement(locks, compiled.text);
  if (wrong !== undefined) return Promise.reject(new Error(wrong));
  const result = execute.call(this, compiled);
  result.catch((error: unknown) => {
    if ((error as { code?: string }).code === '40P01') deadlocks.push(compiled.text);
  });
  return result;
};
