import type { Db } from '../db/database.ts';
import { isInUse } from '../db/fences.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { SegmentHeader } from './encoding.ts';
import type { PublicKeyRow } from './keys.ts';

/** SQL for the ledgers of apps and sandboxes, and for the records that they cover. */

export type SegmentRow = SegmentHeader & { list: Buffer | null; signature: Buffer };

/** A record with its canonical fields. `segment` is null until it is sealed. */
type RecordRow = {
  id: string;
  sequence: number;
  atMicros: number;
  fields: (string | null)[];
  segment: number | null;
  /** The segment that states the removal of a run, as its anchor says. */
  removedIn: number | null;
};

export type RecordKind = 'audit' | 'runs';

const tables = { audit: 'audit_entries', runs: 'run_anchors' } as const;

/** How long an entry may wait for its outcome, or for more attempts of its kind, before it is sealed as it is. */
const settleMs = { outcome: 60 * 60_000, attempts: 5 * 60_000 };

function recordColumns(db: Db, kind: RecordKind) {
  return kind === 'audit'
    ? db`id, 0 as sequence, (extract(epoch from at) * 1000000)::bigint as at_micros, segment, null as removed_in,
      array['quarry:audit:1', app_id::text, sandbox_id::text, id::text, ledger_time(at), actor_kind, actor_id::text,
        credential, action, method, route, resource, status::text, request_id, address, attempts::text] as fields`
    : db`run_id as id, sequence, (extract(epoch from at) * 1000000)::bigint as at_micros, segment, removed_in,
      array['quarry:run:1', app_id::text, sandbox_id::text, run_id::text, sequence::text, automation_id::text,
        encode(link, 'hex'), ledger_time(at)] as fields`;
}

function idColumn(db: Db, kind: RecordKind) {
  return kind === 'audit' ? db`id` : db`run_id`;
}

/** SQL condition: the record no longer changes. */
function isSettled(db: Db, kind: RecordKind, now: Date) {
  if (kind === 'runs') return db`true`;
  const before = (ms: number) => new Date(now.getTime() - ms);
  return db`case when attempts is not null then at < ${before(settleMs.attempts)}
    else status is not null or at < ${before(settleMs.outcome)} end`;
}

/** Up to `countMax` apps and sandboxes after this one that have records to seal, in order. */
export async function listUnsealedScopes(
  db: Db,
  kind: RecordKind,
  now: Date,
  after: Scope | undefined,
  countMax: number,
): Promise<Scope[]> {
  const start = after ?? { appId: nil, sandboxId: nil };
  return db<Scope[]>`
    select distinct app_id, sandbox_id from ${db(tables[kind])} record
    where segment is null and ${isInUse(db, 'record.app_id')} and ${isSettled(db, kind, now)}
      and (app_id, sandbox_id) ${after === undefined ? db`>=` : db`>`} (${start.appId}, ${start.sandboxId})
    order by app_id, sandbox_id limit ${countMax}`;
}

const nil = '00000000-0000-0000-0000-000000000000';

/** The oldest unsealed records, locked until the transaction ends. */
export async function takeUnsealed(
  db: Db,
  kind: RecordKind,
  { appId, sandboxId }: Scope,
  now: Date,
  countMax: number,
): Promise<RecordRow[]> {
  return db<RecordRow[]>`
    select ${recordColumns(db, kind)} from ${db(tables[kind])}
    where app_id = ${appId} and sandbox_id = ${sandboxId} and segment is null and ${isSettled(db, kind, now)}
    order by at, ${idColumn(db, kind)}, sequence limit ${countMax} for update`;
}

export async function setSegment(
  db: Db,
  kind: RecordKind,
  { appId }: Scope,
  records: readonly RecordRow[],
  segment: number,
): Promise<void> {
  const ids = records.map(({ id }) => id);
  if (kind === 'audit')
    await db`update audit_entries set segment = ${segment} where app_id = ${appId} and id = any(${ids}::uuid[])`;
  else
    await db`update run_anchors a set segment = ${segment}
      from unnest(${ids}::uuid[], ${records.map(({ sequence }) => sequence)}::integer[]) as given (run_id, sequence)
      where a.app_id = ${appId} and a.run_id = given.run_id and a.sequence = given.sequence`;
}

/** Has the anchors of these runs name the segment that states their removal. */
export async function setRemovedIn(db: Db, { appId }: Scope, runs: readonly string[], segment: number): Promise<void> {
  await db`
    update run_anchors set removed_in = ${segment} where app_id = ${appId} and run_id = any(${[...runs]}::uuid[])`;
}

/** Locks and returns the last segment of a ledger until the transaction ends. Undefined if the ledger has none. */
export async function lockLedger(
  db: Db,
  { appId, sandboxId }: Scope,
): Promise<{ number: number; digest: Buffer } | undefined> {
  await db`
    insert into ledgers (app_id, sandbox_id, number, digest) values (${appId}, ${sandboxId}, 0, '')
    on conflict do nothing`;
  const [row] = await db<{ number: number; digest: Buffer }[]>`
    select number, digest from ledgers where app_id = ${appId} and sandbox_id = ${sandboxId} for update`;
  return row === undefined || row.number === 0 ? undefined : row;
}

export async function insertSegment(db: Db, segment: SegmentRow, digest: Buffer): Promise<void> {
  const { appId, sandboxId, number } = segment;
  await db`
    insert into ledger_segments (app_id, sandbox_id, number, kind, sealed_at, records, last_at, list, list_digest, detail,
      previous, key_id, signature)
    values (${appId}, ${sandboxId}, ${number}, ${segment.kind}, ${segment.sealedAt}, ${segment.records}, ${segment.lastAt},
      ${segment.list}, ${segment.listDigest}, ${segment.detail}, ${segment.previous}, ${segment.keyId}, ${segment.signature})`;
  await db`
    update ledgers set number = ${number}, digest = ${digest} where app_id = ${appId} and sandbox_id = ${sandboxId}`;
}

function segmentColumns(db: Db) {
  return db`app_id, sandbox_id, number, kind, ledger_time(sealed_at) as sealed_at, records, ledger_time(last_at) as last_at,
    list, list_digest, detail, previous, key_id, signature`;
}

/** Segments after this number, in order. */
export async function listSegments(
  db: Db,
  { appId, sandboxId }: Scope,
  after: number,
  countMax: number,
): Promise<SegmentRow[]> {
  return db<SegmentRow[]>`
    select ${segmentColumns(db)} from ledger_segments
    where app_id = ${appId} and sandbox_id = ${sandboxId} and number > ${after} order by number limit ${countMax}`;
}

/** Statements that retention removed entries, starting with the one that removed most. */
export async function listRetentions(
  db: Db,
  { appId, sandboxId }: Scope,
  skip: number,
  countMax: number,
): Promise<SegmentRow[]> {
  return db<SegmentRow[]>`
    select ${segmentColumns(db)} from ledger_segments
    where app_id = ${appId} and sandbox_id = ${sandboxId} and kind = 'retention'
      and ledger_removed_before(detail) collate "C" > ''
    order by ledger_removed_before(detail) collate "C" desc offset ${skip} limit ${countMax}`;
}

/** Statements that one of these automations was deleted, or all automations of its sandbox. */
export async function listDeletions(
  db: Db,
  { appId, sandboxId }: Scope,
  automations: readonly string[],
): Promise<SegmentRow[]> {
  return db<SegmentRow[]>`
    select ${segmentColumns(db)} from ledger_segments
    where app_id = ${appId} and sandbox_id = ${sandboxId} and kind = 'deletion'
      and ledger_removed(detail) && ${[...automations, sandboxId]}::text[]
    limit ${deletionsMax}`;
}

/** Each automation is deleted once, so more statements than this would be forged. */
const deletionsMax = 1_000;

export async function findLastSegment(db: Db, { appId, sandboxId }: Scope): Promise<SegmentRow | undefined> {
  const [last] = await db<{ number: number }[]>`
    select max(number) as number from ledger_segments where app_id = ${appId} and sandbox_id = ${sandboxId}`;
  const [row] = await listSegments(db, { appId, sandboxId }, (last?.number ?? 0) - 1, 1);
  return row;
}

/** Apps and sandboxes with a ledger, in order. */
export async function listLedgers(db: Db, after: Scope | undefined, countMax: number): Promise<Scope[]> {
  return db<Scope[]>`
    select app_id, sandbox_id from ledgers
    ${after === undefined ? db`` : db`where (app_id, sandbox_id) > (${after.appId}, ${after.sandboxId})`}
    order by app_id, sandbox_id limit ${countMax}`;
}

/** Apps and sandboxes with audit entries from before this time. */
export async function listScopesWithOldEntries(db: Db, before: Date): Promise<Scope[]> {
  return db<Scope[]>`
    select distinct app_id, sandbox_id from audit_entries e where at < ${before} and ${isInUse(db, 'e.app_id')}`;
}

/** Deletes the lists of segments whose entries are all from before this time. */
export async function deleteOldLists(db: Db, { appId, sandboxId }: Scope, before: Date): Promise<void> {
  await db`
    update ledger_segments set list = null
    where app_id = ${appId} and sandbox_id = ${sandboxId} and kind = 'audit' and last_at < ${before} and list is not null`;
}

export async function listKeys(db: Db): Promise<PublicKeyRow[]> {
  return db<PublicKeyRow[]>`
    select id, public_key, endorsed_by, endorsement from ledger_keys order by created_at, id`;
}

export async function saveKey(db: Db, key: PublicKeyRow): Promise<void> {
  await db`
    insert into ledger_keys (id, public_key, endorsed_by, endorsement)
    values (${key.id}, ${key.publicKey}, ${key.endorsedBy}, ${key.endorsement})
    on conflict (id) do update set endorsed_by = coalesce(excluded.endorsed_by, ledger_keys.endorsed_by),
      endorsement = coalesce(excluded.endorsement, ledger_keys.endorsement)`;
}

/** The automations that are deleted together with their owner. */
export async function listAutomationsOf(
  db: Db,
  { appId, sandboxId }: Scope,
  owner: { team: string } | { user: string },
): Promise<string[]> {
  const owned = 'team' in owner ? db`team_id = ${owner.team}` : db`user_id = ${owner.user}`;
  const rows = await db<{ id: string }[]>`
    select id from automations where app_id = ${appId} and sandbox_id = ${sandboxId} and ${owned} order by id`;
  return rows.map(({ id }) => id);
}

/**
 * Links the journals of up to `countMax` ended runs that are older than the upgrade, and anchors them. Returns false
 * when all are linked.
 */
export async function linkInheritedRuns(db: Db, now: Date, countMax: number): Promise<boolean> {
  const [place] = await db<
    { appId: string; runId: string }[]
  >`select app_id, run_id from ledger_inheritance for update`;
  if (place === undefined) return false;
  const [last] = await db<{ appId: string; id: string }[]>`
    with page as materialized (
      select app_id, id from automation_runs where (app_id, id) > (${place.appId}, ${place.runId})
      order by app_id, id limit ${countMax}),
    linked as (
      update automation_runs r set linked = r.sequence,
        link = link_run_entries(r.app_id, r.id, r.link, r.linked, r.sequence, '')
      from page where r.app_id = page.app_id and r.id = page.id and r.linked < r.sequence
        and r.status in ('completed', 'failed', 'cancelled')
      returning r.app_id, r.id, r.sequence, r.sandbox_id, r.automation_id, r.link),
    anchored as (
      insert into run_anchors (app_id, run_id, sequence, sandbox_id, automation_id, link, at)
      select app_id, id, sequence, sandbox_id, automation_id, link, ${now} from linked)
    select app_id, id from page order by app_id desc, id desc limit 1`;
  if (last === undefined) await db`delete from ledger_inheritance`;
  else await db`update ledger_inheritance set app_id = ${last.appId}, run_id = ${last.id}`;
  return last !== undefined;
}

/** The records of these items, whichever segment they are in now. */
export async function findRecords(
  db: Db,
  kind: RecordKind,
  { appId }: Scope,
  items: readonly { id: string; sequence: number }[],
): Promise<RecordRow[]> {
  const ids = items.map(({ id }) => id);
  if (kind === 'audit')
    return db<RecordRow[]>`
      select ${recordColumns(db, kind)} from audit_entries where app_id = ${appId} and id = any(${ids}::uuid[])`;
  return db<RecordRow[]>`
    select ${recordColumns(db, kind)} from run_anchors where app_id = ${appId}
      and (run_id, sequence) in (select * from unnest(${ids}::uuid[], ${items.map(({ sequence }) => sequence)}::integer[]))`;
}

export async function findExistingRuns(db: Db, { appId }: Scope, ids: readonly string[]): Promise<Set<string>> {
  const rows = await db<{ id: string }[]>`
    select id from automation_runs where app_id = ${appId} and id = any(${[...ids]}::uuid[])`;
  return new Set(rows.map(({ id }) => id));
}

/** The records of a ledger by id, with the segments that they claim to be in. All anchors of a run are in one page. */
export async function listClaims(
  db: Db,
  kind: RecordKind,
  { appId, sandboxId }: Scope,
  after: string,
  countMax: number,
): Promise<{ id: string; sequence: number; segment: number | null }[]> {
  const id = idColumn(db, kind);
  return db`
    select ${id} as id, ${kind === 'audit' ? db`0` : db`sequence`} as sequence, segment from ${db(tables[kind])}
    where app_id = ${appId} and sandbox_id = ${sandboxId} and ${id} > ${after}
    order by ${id} fetch first ${countMax} rows with ties`;
}
