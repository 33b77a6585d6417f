import { hash } from 'node:crypto';
import { readBundle, readPositions, type TermPostings } from '../../content/postings.ts';
import { withContext } from '../../content/prepare.ts';
import { readTokens } from '../../content/terms.ts';
import type { Database, Db } from '../../db/database.ts';
import { formatId } from '../../lib/ids.ts';
import { growModel, measureVersion, readModelSize } from '../learning/store.ts';
import * as store from './check-store.ts';
import { lockIndex, type SourceKey } from './store.ts';

/** One problem of a source's index. */
export type IndexFinding = {
  kind:
    | 'wrong_counters'
    | 'missing_text'
    | 'changed_text'
    | 'missing_chunks'
    | 'missing_vectors'
    | 'wrong_words'
    | 'wrong_model_bytes';
  source: string;
  document?: string;
  detail: string;
  /**
   * `reread`: a job reads the source's texts again. `corrected`: the count was corrected. A lost text needs a backup.
   */
  repair: 'reread' | 'corrected' | 'left' | undefined;
};

type IndexReport = { sources: number; documents: number; chunks: number; findings: number; unrepaired: number };

const sourcesPerPage = 100;
const postingsPerPage = 1_000;
/** Digests are below this, so that their sums stay exact in a number. */
const digestRange = 2 ** 48;

/**
 * Compares the index of every source with the texts of its documents: counters, texts by their digests, chunks,
 * vectors, and the words of each chunk with their positions. Reads each source in one snapshot, so it is safe while a
 * server runs.
 */
export async function checkIndexes(
  db: Database,
  repair: boolean,
  report: (finding: IndexFinding) => void,
): Promise<IndexReport> {
  const totals = { sources: 0, documents: 0, chunks: 0, findings: 0, unrepaired: 0 };
  for (let after: SourceKey | undefined; ; ) {
    const keys = await store.pageIndexes(db, after, sourcesPerPage);
    for (const key of keys) {
      totals.sources += 1;
      const found: Omit<IndexFinding, 'source' | 'repair'>[] = [];
      const counted = await db.begin(async (tx) => {
        await tx`set transaction isolation level repeatable read, read only`;
        return checkSource(tx, key, (finding) => found.push(finding));
      });
      totals.documents += counted.documents;
      totals.chunks += counted.chunks;
      const canRead = found.every(({ kind }) => kind !== 'missing_text' && kind !== 'changed_text');
      if (repair && canRead && found.length > 0) await store.markForReading(db, key);
      for (const finding of found) {
        const done = repair ? (canRead ? 'reread' : 'left') : undefined;
        totals.findings += 1;
        if (done !== 'reread') totals.unrepaired += 1;
        report({ ...finding, source: formatId('source', key.sourceId), repair: done });
      }
      const model = await checkModel(db, key, repair);
      if (!model) continue;
      totals.findings += 1;
      if (!repair) totals.unrepaired += 1;
      report({ ...model, source: formatId('source', key.sourceId), repair: repair ? 'corrected' : undefined });
    }
    after = keys.at(-1);
    if (keys.length < sourcesPerPage) return totals;
  }
}

/** Compares the counted bytes of a source's learned model with its rows. Removes a model that is over the quota. */
function checkModel(db: Database, key: SourceKey, repair: boolean) {
  return db.begin(async (tx) => {
    await lockIndex(tx, key);
    const model = await readModelSize(tx, key);
    if (!model) return undefined;
    const actual = await measureVersion(tx, key, model.version);
    if (actual === model.bytes) return undefined;
    if (repair) await growModel(tx, key, actual - model.bytes);
    const detail = `counted bytes of the learned model are ${model.bytes}, actual bytes are ${actual}`;
    return { kind: 'wrong_model_bytes' as const, detail };
  });
}

type Report = (finding: Omit<IndexFinding, 'source' | 'repair'>) => void;

async function checkSource(db: Db, key: SourceKey, report: Report): Promise<{ documents: number; chunks: number }> {
  const index = await store.compareCounters(db, key);
  if (index === undefined) return { documents: 0, chunks: 0 };
  if (JSON.stringify(index.counted) !== JSON.stringify(index.actual))
    report({
      kind: 'wrong_counters',
      detail: `counters are ${JSON.stringify(index.counted)}, actual values are ${JSON.stringify(index.actual)}`,
    });
  /** By ordinal: the sum of the text minus the sum of the index, and the document. */
  const balances = new Map<number, { sum: number; document: string }>();
  let documents = 0;
  for (let after: store.DocumentPlace | undefined; ; ) {
    const document = await store.findNextDocument(db, key, after);
    if (document === undefined) break;
    after = document;
    documents += 1;
    await checkDocument(db, key, document, report, balances);
  }
  // Words that another version of the analysis has read may differ; a job reads them again.
  if (!index.isCurrent) return { documents, chunks: balances.size };
  const subtract = (entry: TermPostings) =>
    readPositions(entry.postings, entry.positions, (ordinal, positions) => {
      const balance = balances.get(ordinal);
      if (balance) balance.sum = (balance.sum + digestRange - digestOf(entry.term, positions)) % digestRange;
    });
  for (const { content } of await store.listBundles(db, key)) for (const entry of readBundle(content)) subtract(entry);
  for (const { segment } of await store.listSegments(db, key))
    for (let after: string | undefined; ; ) {
      const entries = await store.pagePostings(db, key.appId, segment, after, postingsPerPage);
      for (const entry of entries) subtract(entry);
      after = entries.at(-1)?.term;
      if (entries.length < postingsPerPage) break;
    }
  const wrong = new Map<string, number>();
  for (const { sum, document } of balances.values()) if (sum !== 0) wrong.set(document, (wrong.get(document) ?? 0) + 1);
  for (const [document, count] of wrong)
    report({
      kind: 'wrong_words',
      document,
      detail: `${count} chunks have other words in the index than in their text`,
    });
  return { documents, chunks: balances.size };
}

async function checkDocument(
  db: Db,
  key: SourceKey,
  document: store.CheckedDocument,
  report: Report,
  balances: Map<number, { sum: number; document: string }>,
): Promise<void> {
  const id = formatId('document', document.id);
  const { content, language } = document;
  if (content === null) return report({ kind: 'missing_text', document: id, detail: 'the document has no text' });
  if (!document.isWhole)
    return report({ kind: 'changed_text', document: id, detail: 'the text differs from its SHA-256' });
  const chunks = await store.listCheckedChunks(db, key, document);
  if (chunks.length !== document.chunkCount)
    report({
      kind: 'missing_chunks',
      document: id,
      detail: `${document.chunkCount - chunks.length} chunks are missing`,
    });
  if (document.vectorsMissing !== 0)
    report({ kind: 'missing_vectors', document: id, detail: `${document.vectorsMissing} vectors are missing` });
  for (const { ordinal, startByte, endByte, headingPath, hash: embedded } of chunks) {
    const passage = content.subarray(startByte, endByte).toString('utf8');
    const context = withContext(passage, document.title ?? undefined, headingPath);
    // A title that changed without the text is not in the index.
    if (!hash('sha256', context, 'buffer').equals(embedded)) continue;
    const terms = new Map<string, number[]>();
    for (const { term, position } of readTokens(context, language)) {
      const positions = terms.get(term);
      if (positions) positions.push(position);
      else terms.set(term, [position]);
    }
    let sum = 0;
    for (const [term, positions] of terms) sum = (sum + digestOf(term, positions)) % digestRange;
    balances.set(ordinal, { sum, document: id });
  }
}

function digestOf(term: string, positions: readonly number[]): number {
  return hash('sha1', `${term}\0${positions.join()}`, 'buffer').readUIntBE(0, 6);
}
