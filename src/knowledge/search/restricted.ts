import type { StemLanguage } from '../../content/terms.ts';
import type { Transaction } from '../../db/database.ts';
import { type Caller, canSeeWholeApp } from '../../tenancy/caller.ts';
import type { Cache } from '../index/cache.ts';
import { liveBit } from './rank.ts';
import { type Packed, readGrants, readPrincipals, readRestrictedPlaces, type ScopeSource } from './store.ts';

/**
 * The restricted documents of one source, by ordinal from the first. Entries of deleted chunks stay, because a search
 * ignores them anyway. Another search may bring the table to a newer state than the snapshot of this one, which then
 * sees grants that were committed meanwhile. Memberships of the caller are read in each search, in its snapshot.
 */
type RestrictedTable = {
  version: number;
  firstOrdinal: number;
  /** The number of the list of grants of each chunk; 0 if every reader of the source sees it. */
  acls: Int32Array;
  /** The words of a document, at its first chunk. */
  words: Int32Array;
  /** The number of the language of each chunk. */
  languages: Uint8Array;
  languageNames: StemLanguage[];
  lists: GrantLists;
};

/** The lists of grants of a source's documents. A list never changes, so what was read once stays true. */
type GrantLists = {
  numberOfAcl: Map<string, number>;
  /** The numbers of the principals of each kind, by id. */
  numbersOfKind: Map<string, Map<string, number>>;
  principalCount: number;
  /** Pairs: the number of a list, and that of a principal in it. */
  grants: Int32Array;
  grantCount: number;
};

export type RestrictedCache = Cache<RestrictedTable>;

/** The tables of those sources of a search that have restricted documents, with what the caller sees of each. */
export type Restrictions = ReadonlyMap<string, { table: RestrictedTable; isSeen: Uint8Array }>;

/** What the caller sees of a source: its counts without hidden chunks, and the languages of its texts. */
type SeenPart = { chunkCount: number; wordCount: number; languages: StemLanguage[] };

/** Undefined if no source of the search has a restricted document, which is known without a query. */
export async function openRestrictions(
  tx: Transaction,
  caller: Caller,
  sources: readonly ScopeSource[],
  cache: RestrictedCache,
): Promise<Restrictions | undefined> {
  const restricted = sources.filter((source) => source.restrictedChunks > 0);
  if (restricted.length === 0) return undefined;
  const principals = canSeeWholeApp(caller) ? undefined : await readPrincipals(tx, caller);
  const opened = new Map<string, { table: RestrictedTable; isSeen: Uint8Array }>();
  for (const source of restricted) {
    const table = await loadTable(tx, caller.appId, source, cache);
    opened.set(source.sourceId, { table, isSeen: seenLists(table.lists, principals) });
  }
  return opened;
}

/** For each list of grants, by its number, whether it names one of these principals. */
function seenLists({ numberOfAcl, numbersOfKind, principalCount, grants, grantCount }: GrantLists, own?: Packed[]) {
  const isSeen = new Uint8Array(numberOfAcl.size + 1);
  if (own === undefined) return isSeen.fill(1);
  const isOwn = new Uint8Array(principalCount);
  for (const { kind, ids } of own) {
    const numbers = numbersOfKind.get(kind);
    for (let at = 0; numbers !== undefined && at < ids.length; at += idBytes) {
      const number = numbers.get(ids.toString('latin1', at, at + idBytes));
      if (number !== undefined) isOwn[number] = 1;
    }
  }
  for (let at = 0; at < grantCount * 2; at += 2)
    if (isOwn[grants[at + 1] as number] === 1) isSeen[grants[at] as number] = 1;
  return isSeen;
}

/**
 * Marks the rows of hidden chunks as not live, as if they were deleted, so that nothing counts them. `base` is the row of
 * the source's ordinal 0, and `rows` already lacks its deleted chunks.
 */
export function hideRestricted(
  restrictions: Restrictions,
  source: ScopeSource,
  base: number,
  rows: Uint8Array,
): SeenPart {
  let { chunkCount, wordCount } = source;
  const opened = restrictions.get(source.sourceId);
  if (opened === undefined) return { chunkCount, wordCount, languages: source.languages };
  const { table, isSeen } = opened;
  const { acls, words, languages, firstOrdinal } = table;
  const hasLanguage = new Uint8Array(table.languageNames.length);
  const end = Math.min(source.nextOrdinal, firstOrdinal + acls.length);
  for (let ordinal = source.firstOrdinal; ordinal < end; ordinal++) {
    const at = ordinal - firstOrdinal;
    const acl = acls[at] as number;
    if (acl === 0 || ((rows[base + ordinal] as number) & liveBit) === 0) continue;
    if (isSeen[acl] === 1) hasLanguage[languages[at] as number] = 1;
    else {
      rows[base + ordinal] = 0;
      chunkCount -= 1;
      wordCount -= words[at] as number;
    }
  }
  const seen = table.languageNames.filter((_name, i) => hasLanguage[i] === 1);
  return { chunkCount, wordCount, languages: [...new Set([...source.languages, ...seen])] };
}

/** Entries may begin this far before the first live chunk, plus the number of live ones. */
const staleEntriesMax = 10_000;
const idBytes = 16;
const placeBytes = 12 + idBytes;

/** The table as of this snapshot or later: the cached one plus newer entries from the database. */
async function loadTable(
  tx: Transaction,
  appId: string,
  source: ScopeSource,
  cache: RestrictedCache,
): Promise<RestrictedTable> {
  const cached = cache.get(source.sourceId);
  const usable =
    cached !== undefined && source.firstOrdinal - cached.firstOrdinal <= source.chunkCount + staleEntriesMax;
  let table = usable ? cached : emptyTable(source);
  if (usable && table.version >= source.aclVersion && endOf(table) >= source.nextOrdinal) return table;
  if (endOf(table) < source.nextOrdinal) table = grown(table, source.nextOrdinal);
  const [newer, grants] = await Promise.all([
    readRestrictedPlaces(tx, appId, source.sourceId, table.version),
    readGrants(tx, appId, source.sourceId, table.version),
  ]);
  // Another search may have read a newer state into the same table meanwhile.
  if (table.version >= source.aclVersion) return table;
  addGrants(table.lists, grants);
  for (const { language, places } of newer) {
    const number = numberOfLanguage(table, language);
    for (let at = 0; at < places.length; at += placeBytes) addPlace(table, number, places, at);
  }
  table.version = Math.max(table.version, source.aclVersion);
  cache.set(source.sourceId, table, table.acls, table.words, table.languages, table.lists.grants);
  return table;
}

function addPlace(table: RestrictedTable, language: number, places: Buffer, at: number): void {
  const first = places.readInt32BE(at) - table.firstOrdinal;
  const end = first + places.readInt32BE(at + 4);
  // A document behind the table is newer than this snapshot and will be read again.
  if (first < 0 || end > table.acls.length) return;
  const name = places.toString('latin1', at + 12, at + placeBytes);
  let acl = 0;
  if (name !== nil) acl = numberOf(table.lists.numberOfAcl, name, table.lists.numberOfAcl.size + 1);
  table.acls.fill(acl, first, end);
  table.languages.fill(language, first, end);
  if (first < end) table.words[first] = places.readInt32BE(at + 8);
}

const nil = '\0'.repeat(idBytes);

/** Adds the grants of those lists that are not known. */
function addGrants(lists: GrantLists, packed: Packed[]): void {
  const known = lists.numberOfAcl.size;
  for (const { kind, ids } of packed) {
    const numbers = lists.numbersOfKind.get(kind) ?? new Map<string, number>();
    lists.numbersOfKind.set(kind, numbers);
    for (let at = 0; at < ids.length; at += 2 * idBytes) {
      const acl = numberOf(lists.numberOfAcl, ids.toString('latin1', at, at + idBytes), lists.numberOfAcl.size + 1);
      if (acl <= known) continue;
      const name = ids.toString('latin1', at + idBytes, at + 2 * idBytes);
      const principal = numberOf(numbers, name, lists.principalCount);
      lists.principalCount = Math.max(lists.principalCount, principal + 1);
      if (lists.grants.length === 2 * lists.grantCount) {
        const more = new Int32Array(Math.max(64, lists.grants.length * 2));
        more.set(lists.grants);
        lists.grants = more;
      }
      lists.grants.set([acl, principal], 2 * lists.grantCount);
      lists.grantCount += 1;
    }
  }
}

/** The number of a name, which is `next` if it has none yet. */
function numberOf(numbers: Map<string, number>, name: string, next: number): number {
  const number = numbers.get(name) ?? next;
  if (number === next) numbers.set(name, number);
  return number;
}

function numberOfLanguage(table: RestrictedTable, language: StemLanguage): number {
  const known = table.languageNames.indexOf(language);
  return known >= 0 ? known : table.languageNames.push(language) - 1;
}

function endOf(table: RestrictedTable): number {
  return table.firstOrdinal + table.acls.length;
}

function emptyTable(source: ScopeSource): RestrictedTable {
  return {
    version: 0,
    firstOrdinal: source.firstOrdinal,
    acls: new Int32Array(0),
    words: new Int32Array(0),
    languages: new Uint8Array(0),
    languageNames: [],
    lists: {
      numberOfAcl: new Map(),
      numbersOfKind: new Map(),
      principalCount: 0,
      grants: new Int32Array(0),
      grantCount: 0,
    },
  };
}

function grown(table: RestrictedTable, nextOrdinal: number): RestrictedTable {
  const size = Math.ceil((nextOrdinal - table.firstOrdinal) * 1.1) + 64;
  const acls = new Int32Array(size);
  const words = new Int32Array(size);
  const languages = new Uint8Array(size);
  acls.set(table.acls);
  words.set(table.words);
  languages.set(table.languages);
  return { ...table, acls, words, languages };
}
