import type { Database, Db } from '../db/database.ts';
import { formatId } from '../lib/ids.ts';
import type { Scope } from '../tenancy/caller.ts';
import { decodeItems, digestFields, encodeHeader, formatMicros, type Item, origin, sha256 } from './encoding.ts';
import { noCounts, type Position, type ProblemKind, type Verified } from './findings.ts';
import { checkRuns } from './journals.ts';
import type { TrustedKeys } from './keys.ts';
import { Removals } from './removals.ts';
import * as store from './store.ts';

/*
 * Compares a ledger with itself, with exported heads and with the records that it covers. It is read in pages, so
 * memory does not grow with the ledger.
 */

/** A head as it was exported. */
export type KnownHead = { number: number; digest: Buffer };

type VerifyInput = Scope & { trusted: TrustedKeys; heads: readonly KnownHead[] };

const pageSegmentsMax = 10;
const pageRecordsMax = 1_000;
const pageRunsMax = 100;

export const start: Position = { phase: 'segments', after: 0 };

/** Verifies one page. Call it in one transaction, so that it sees a segment and its records in the same state. */
export async function verifyPage(db: Db, input: VerifyInput, position: Position): Promise<Verified> {
  const found: Verified = { problems: [], counts: noCounts(), next: undefined };
  if (position.phase === 'segments') await checkSegments(db, input, position.after, found);
  else if (position.phase === 'records') await findInserted(db, input, position.kind, position.after, found);
  else found.next = next('runs', await checkRuns(db, input, position.after, pageRunsMax, found));
  return found;
}

/** Verifies a ledger page by page, each page in a separate snapshot. */
export async function* verifyLedger(db: Database, input: VerifyInput): AsyncGenerator<Verified> {
  for (let position: Position | undefined = start; position !== undefined; ) {
    const at: Position = position;
    const page: Verified = await db.begin('isolation level repeatable read read only', (tx) =>
      verifyPage(tx, input, at),
    );
    yield page;
    position = page.next;
  }
}

function next(phase: 'runs', after: string | undefined): Position | undefined {
  return after === undefined ? undefined : { phase, after };
}

function ledgerName({ appId, sandboxId }: Scope): string {
  return `ledger ${formatId('app', appId)} ${formatId('sandbox', sandboxId)}`;
}

async function checkSegments(db: Db, input: VerifyInput, after: number, found: Verified): Promise<void> {
  const { heads, trusted } = input;
  const chain = ledgerName(input);
  const report = (kind: ProblemKind, segment: number, message: string) =>
    found.problems.push({ kind, chain, segment, message });
  const segments = await store.listSegments(db, input, after, pageSegmentsMax);
  const removals = new Removals(db, input, trusted);
  let number = after;
  let previous: Buffer = origin;
  if (after > 0) {
    const [before] = await store.listSegments(db, input, after - 1, 1);
    if (before?.number === after) previous = sha256(encodeHeader(before));
  }
  for (const segment of segments) {
    found.counts.segments += 1;
    for (let gone = number + 1; gone < segment.number && gone < number + pageRecordsMax; gone += 1)
      report('segment_removed', gone, 'This segment of the ledger is missing.');
    const bytes = encodeHeader(segment);
    if (!trusted.has(segment.keyId))
      report('signature', segment.number, `The segment is signed with ${segment.keyId}, which is not a trusted key.`);
    else if (!trusted.verify(segment.keyId, bytes, segment.signature))
      report('segment_changed', segment.number, 'The segment does not match its signature.');
    else if (segment.number === number + 1 && !segment.previous.equals(previous))
      report('segment_changed', segment.number, 'The segment does not follow the one before it.');
    const digest = sha256(bytes);
    for (const head of heads)
      if (head.number === segment.number && !head.digest.equals(digest))
        report('head', segment.number, 'The segment differs from the exported head.');
    await checkList(db, input, segment, removals, found);
    number = segment.number;
    previous = digest;
  }
  if (segments.length === pageSegmentsMax) found.next = { phase: 'segments', after: number };
  else {
    const [end] = await db<{ number: number; digest: Buffer }[]>`
      select number, digest from ledgers where app_id = ${input.appId} and sandbox_id = ${input.sandboxId}`;
    if ((end?.number ?? 0) !== number || (end !== undefined && number > 0 && !end.digest.equals(previous)))
      report(
        'truncated',
        end?.number ?? 0,
        `The ledger ends with segment ${number}, but should end with ${end?.number ?? 0}.`,
      );
    for (const head of heads)
      if (head.number > number)
        report('truncated', head.number, `The ledger ends with segment ${number}, before the exported head.`);
    found.next = { phase: 'records', kind: 'audit', after: nil };
  }
}

const nil = '00000000-0000-0000-0000-000000000000';

/** Compares a segment's list with its signed digest, and its records with the list. */
async function checkList(
  db: Db,
  scope: Scope,
  { kind, number, list, listDigest, lastAt, records }: store.SegmentRow,
  removals: Removals,
  { problems, counts }: Verified,
): Promise<void> {
  const chain = ledgerName(scope);
  if (list === null) {
    if (kind === 'audit' && lastAt !== null && (await removals.coversEntry(lastAt))) counts.removed += records;
    else problems.push({ kind: 'segment_changed', chain, segment: number, message: 'The list of records is missing.' });
    return;
  }
  const items = decodeItems(list);
  if (!sha256(list).equals(listDigest) || items.length !== records)
    problems.push({ kind: 'segment_changed', chain, segment: number, message: 'The list of records was changed.' });
  if (kind === 'retention') {
    const back = await store.findExistingRuns(
      db,
      scope,
      items.map(({ id }) => id),
    );
    for (const id of back) {
      const record = formatId('automationRun', id);
      problems.push({ kind: 'inserted', chain, record, segment: number, message: 'The run was removed, but exists.' });
    }
  }
  if (kind !== 'audit' && kind !== 'runs') return;
  const rows = new Map(
    (await store.findRecords(db, kind, scope, items)).map((row) => [`${row.id}/${row.sequence}`, row] as const),
  );
  const ids = items.map(({ id }) => id);
  const runs = kind === 'runs' ? await store.findExistingRuns(db, scope, ids) : new Set(ids);
  const gone = [...rows.values()].filter(({ id }) => !runs.has(id));
  const deleted = await removals.findDeleted([...new Set(gone.map(automationOf))]);
  for (const item of items) {
    counts.records += 1;
    const row = rows.get(`${item.id}/${item.sequence}`);
    const report = (problem: ProblemKind, message: string) =>
      problems.push({ kind: problem, chain, record: nameRecord(kind, item), segment: number, message });
    if (row === undefined) {
      if (kind === 'audit' && (await removals.coversEntry(formatMicros(item.atMicros)))) counts.removed += 1;
      else
        report(
          'removed',
          kind === 'audit' ? 'The entry was removed.' : `The anchor of entry ${item.sequence} was removed.`,
        );
      continue;
    }
    if (!digestFields(row.fields).equals(item.digest))
      report(
        'changed',
        kind === 'audit' ? 'The entry was changed.' : `The anchor of entry ${item.sequence} was changed.`,
      );
    else if (row.segment !== number) report('moved', `The record claims to be in segment ${row.segment}.`);
    else if (!runs.has(item.id)) {
      if (deleted.has(automationOf(row)) || (await removals.coversRun(row.removedIn, item.id))) counts.removed += 1;
      else report('removed', 'The run and its journal were removed.');
    }
  }
}

/** The automation in the anchor of a run. */
function automationOf({ fields }: { fields: (string | null)[] }): string {
  return fields[5] ?? '';
}

function nameRecord(kind: store.RecordKind, { id }: Pick<Item, 'id'>): string {
  return formatId(kind === 'audit' ? 'auditEntry' : 'automationRun', id);
}

/** Finds records that claim to be in a segment whose list does not have them. */
async function findInserted(
  db: Db,
  scope: VerifyInput,
  kind: store.RecordKind,
  after: string,
  found: Verified,
): Promise<void> {
  const rows = await store.listClaims(db, kind, scope, after, pageRecordsMax);
  const numbers = [...new Set(rows.flatMap(({ segment }) => (segment === null ? [] : [segment])))];
  const listed = new Map<number, Set<string> | undefined>();
  for (const number of numbers) {
    const [segment] = await store.listSegments(db, scope, number - 1, 1);
    const items = segment?.number === number ? (segment.list === null ? undefined : decodeItems(segment.list)) : [];
    listed.set(number, items && new Set(items.map(({ id, sequence }) => `${id}/${sequence}`)));
  }
  for (const row of rows) {
    if (row.segment === null) found.counts.unsealed += 1;
    else if (listed.get(row.segment)?.has(`${row.id}/${row.sequence}`) === false)
      found.problems.push({
        kind: 'inserted',
        chain: ledgerName(scope),
        record: nameRecord(kind, row),
        segment: row.segment,
        message: 'The record is not in the segment that it names.',
      });
  }
  const last = rows.at(-1);
  if (rows.length >= pageRecordsMax && last) found.next = { phase: 'records', kind, after: last.id };
  else found.next = kind === 'audit' ? { phase: 'records', kind: 'runs', after: nil } : { phase: 'runs', after: nil };
}
