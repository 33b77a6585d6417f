import type { StemLanguage } from '../../content/terms.ts';
import type { Transaction } from '../../db/database.ts';
import { type Caller, canSeeWholeApp } from '../../tenancy/caller.ts';
import type { Cache } from '../index/cache.ts';
import { liveBit } from './rank.ts';
import { readAdmittingAcls, readRestrictedPlaces, type ScopeSource } from './store.ts';

/**
 * The restricted documents of one source, by ordinal from the first. Entries of deleted chunks stay, because a search
 * ignores them anyway. A search may read a newer state than its snapshot, which can only hide more: a list of grants
 * that the snapshot lacks admits nobody.
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
  numberOfAcl: Map<string, number>;
  languageNames: StemLanguage[];
};

export type RestrictedCache = Cache<RestrictedTable>;

/** The tables of those sources of a search that have restricted documents, and the lists that admit the caller. */
export type Restrictions = {
  tables: ReadonlyMap<string, RestrictedTable>;
  /** Undefined for callers who see the whole app. */
  admitting: ReadonlySet<string> | undefined;
};

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
  const admitting = canSeeWholeApp(caller) ? undefined : namesOf(await readAdmittingAcls(tx, caller));
  const tables = new Map<string, RestrictedTable>();
  for (const source of restricted) tables.set(source.sourceId, await loadTable(tx, caller.appId, source, cache));
  return { tables, admitting };
}

/**
 * Marks the rows of hidden chunks as not live, as if they were deleted, so that nothing counts them. `base` is the row of
 * the source's ordinal 0, and `rows` already lacks its deleted chunks.
 */
export function hideRestricted(
  { tables, admitting }: Restrictions,
  source: ScopeSource,
  base: number,
  rows: Uint8Array,
): SeenPart {
  let { chunkCount, wordCount } = source;
  const table = tables.get(source.sourceId);
  if (table === undefined) return { chunkCount, wordCount, languages: source.languages };
  const { acls, words, languages, firstOrdinal } = table;
  const isSeen = new Uint8Array(table.numberOfAcl.size + 1);
  for (const [name, number] of table.numberOfAcl) isSeen[number] = admitting?.has(name) === false ? 0 : 1;
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
  const newer = await readRestrictedPlaces(tx, appId, source.sourceId, table.version);
  // Another search may have read a newer state into the same table meanwhile.
  if (table.version >= source.aclVersion) return table;
  for (const { language, places } of newer) {
    const number = numberOfLanguage(table, language);
    for (let at = 0; at < places.length; at += placeBytes) addPlace(table, number, places, at);
  }
  table.version = Math.max(table.version, source.aclVersion);
  cache.set(source.sourceId, table, table.acls, table.words, table.languages);
  return table;
}

function addPlace(table: RestrictedTable, language: number, places: Buffer, at: number): void {
  const first = places.readInt32BE(at) - table.firstOrdinal;
  const end = first + places.readInt32BE(at + 4);
  // A document behind the table is newer than this snapshot and will be read again.
  if (first < 0 || end > table.acls.length) return;
  const name = places.toString('latin1', at + 12, at + placeBytes);
  let acl = 0;
  if (name !== nil) {
    acl = table.numberOfAcl.get(name) ?? table.numberOfAcl.size + 1;
    table.numberOfAcl.set(name, acl);
  }
  table.acls.fill(acl, first, end);
  table.languages.fill(language, first, end);
  if (first < end) table.words[first] = places.readInt32BE(at + 8);
}

const nil = '\0'.repeat(idBytes);

/** The ids of packed lists of grants, as the table names them. */
function namesOf(ids: Buffer): Set<string> {
  const names = new Set<string>();
  for (let at = 0; at < ids.length; at += idBytes) names.add(ids.toString('latin1', at, at + idBytes));
  return names;
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
    numberOfAcl: new Map(),
    languageNames: [],
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
