import {
  findInBundle,
  type PostingColumns,
  readBundle,
  readPositions,
  unpackPostings,
} from '../../content/postings.ts';
import { parseQuery, type StemLanguage } from '../../content/terms.ts';
import type { Db } from '../../db/database.ts';
import { type Cache, copyBytes } from '../index/cache.ts';
import { joinColumns, liveBit } from './rank.ts';
import { languagesOf, type SearchedChunks } from './scope.ts';
import { listBundles, listPostings, listTermsByPrefix } from './store.ts';
import { termsIn, type WantedTerm } from './wanted.ts';

/** A cached value: unpacked postings (null: the segment lacks the term) or a bundle. */
export type IndexCache = Cache<PostingColumns | Buffer | null>;

/** A prefix matches at most this many words. */
const prefixTermsMax = 200;

export type IndexReader = Awaited<ReturnType<typeof openReader>>;
type PlacedSource = SearchedChunks['sources'][number];

/** Reads postings of the scope's sources, through the cache. */
export async function openReader(db: Db, appId: string, scope: SearchedChunks, cache: IndexCache) {
  const languages = languagesOf(scope);
  const bundles = await loadBundles(db, appId, scope, cache);

  /** Segments are numbered by each database, and a process may serve apps of several. */
  const cacheKey = (key: string) => `${appId}/${key}`;

  /** Loads the postings of these terms that are not cached, with one query. */
  async function load(wanted: { segment: number; term: string }[]) {
    const found = new Map<string, PostingColumns | null>();
    const missing: typeof wanted = [];
    for (const one of wanted) {
      const key = postingsKey(one.segment, one.term);
      const known = cache.get(cacheKey(key));
      if (known === undefined || Buffer.isBuffer(known)) missing.push(one);
      else found.set(key, known);
    }
    for (const row of await listPostings(db, appId, missing, false)) {
      const columns = unpackPostings(row.postings);
      found.set(postingsKey(row.segment, row.term), columns);
    }
    for (const one of missing) {
      const key = postingsKey(one.segment, one.term);
      const columns = found.get(key) ?? null;
      cache.set(cacheKey(key), columns, ...(columns ? [columns.ordinals, columns.tallies, columns.lengths] : []));
    }
    return found;
  }

  /** The terms of bundles with this prefix. */
  function termsOfBundles(sources: readonly PlacedSource[], prefix: string): string[] {
    const terms = new Set<string>();
    for (const source of sources)
      for (const first of source.bundles) {
        const bundle = bundles.get(bundleKey(source.sourceId, first));
        for (const entry of bundle ? readBundle(bundle) : []) if (entry.term.startsWith(prefix)) terms.add(entry.term);
      }
    return [...terms].sort(byCodePoint);
  }

  /** The first terms with this prefix that a live chunk contains, at most `prefixTermsMax`, by code point. */
  async function liveTerms(sources: readonly PlacedSource[], prefix: string): Promise<string[]> {
    const segments = sources.flatMap((source) => source.segments);
    const bundled = termsOfBundles(sources, prefix);
    const found: string[] = [];
    for (let after: string | undefined; found.length < prefixTermsMax; ) {
      const stored = await listTermsByPrefix(db, appId, segments, prefix, after, prefixTermsMax);
      const last = stored.length < prefixTermsMax ? undefined : stored.at(-1);
      // Later terms of bundles may follow terms of segments that are not read yet.
      const among = bundled.filter(
        (term) =>
          (after === undefined || byCodePoint(term, after) > 0) && (last === undefined || byCodePoint(term, last) <= 0),
      );
      const terms = [...new Set([...stored, ...among])].sort(byCodePoint);
      found.push(...(scope.statistics.hasDead ? await filterLive(sources, terms) : terms));
      if (last === undefined) break;
      after = last;
    }
    return found.slice(0, prefixTermsMax);
  }

  async function filterLive(sources: readonly PlacedSource[], terms: string[]): Promise<string[]> {
    const wanted = sources.flatMap(({ segments }) =>
      segments.flatMap((segment) => terms.map((term) => ({ segment, term }))),
    );
    const postings = await load(wanted);
    const isLive = ({ base }: PlacedSource, columns: PostingColumns | undefined) =>
      columns?.ordinals.some((ordinal) => ((scope.rows[base + ordinal] ?? 0) & liveBit) !== 0) ?? false;
    return terms.filter((term) =>
      sources.some(
        (source) =>
          source.segments.some((segment) => isLive(source, postings.get(postingsKey(segment, term)) ?? undefined)) ||
          source.bundles.some((first) =>
            isLive(source, bundleColumns(bundles.get(bundleKey(source.sourceId, first)), term)),
          ),
      ),
    );
  }

  return {
    scope,
    languages,

    /** The postings of each query item in every source. */
    async columns(wanted: readonly Pick<WantedTerm, 'byLanguage'>[]) {
      const needed = new Map<string, { segment: number; term: string }>();
      for (const item of wanted)
        for (const source of scope.sources)
          for (const term of termsIn(source.languages, item))
            for (const segment of source.segments) needed.set(postingsKey(segment, term), { segment, term });
      const found = await load([...needed.values()]);
      return wanted.map((item) =>
        scope.sources.flatMap((source) => {
          const byTerm = termsIn(source.languages, item).map((term) => {
            const parts = [
              ...source.segments.map((segment) => found.get(postingsKey(segment, term)) ?? undefined),
              ...source.bundles.map((first) => bundleColumns(bundles.get(bundleKey(source.sourceId, first)), term)),
            ];
            return parts.filter((part) => part !== undefined);
          });
          const occurring = byTerm.filter((lists) => lists.length > 0);
          // A term has one posting for each chunk; a chunk may contain several words of a prefix.
          const joined = occurring.length > 1 ? [joinColumns(occurring.flat())] : occurring.flat();
          return joined.map((columns) => ({ base: source.base, columns }));
        }),
      );
    },

    /** Index terms with this prefix in live chunks, the first ones by code point. */
    async termsByPrefix(language: StemLanguage, prefix: string): Promise<string[]> {
      const sources = scope.sources.filter((source) => source.languages.includes(language));
      const terms = new Set(await liveTerms(sources, prefix));
      // The index contains stems: `retrieval*` must find `retriev` too.
      for (const { label } of parseQuery(prefix, [language]).terms) terms.add(label);
      return [...terms].sort(byCodePoint).slice(0, prefixTermsMax);
    },

    /** The positions of each word in each chunk of a source. */
    async positions(source: PlacedSource, words: string[]): Promise<Map<string, Map<number, number[]>>> {
      const found = new Map(words.map((word) => [word, new Map<number, number[]>()]));
      const wanted = source.segments.flatMap((segment) => words.map((term) => ({ segment, term })));
      const take = (term: string, postings: Uint8Array, positions: Uint8Array) => {
        const list = found.get(term);
        if (list) readPositions(postings, positions, (ordinal, at) => list.set(ordinal, at));
      };
      for (const row of await listPostings(db, appId, wanted, true))
        take(row.term, row.postings, row.positions ?? Buffer.alloc(0));
      for (const first of source.bundles)
        for (const word of words) {
          const bundle = bundles.get(bundleKey(source.sourceId, first));
          const entry = bundle && findInBundle(bundle, word);
          if (entry) take(word, entry.postings, entry.positions);
        }
      return found;
    },
  };
}

async function loadBundles(
  db: Db,
  appId: string,
  scope: SearchedChunks,
  cache: IndexCache,
): Promise<Map<string, Buffer>> {
  const bundles = new Map<string, Buffer>();
  const missing: { sourceId: string; firstOrdinal: number }[] = [];
  for (const source of scope.sources)
    for (const firstOrdinal of source.bundles) {
      const key = bundleKey(source.sourceId, firstOrdinal);
      const known = cache.get(key);
      if (Buffer.isBuffer(known)) bundles.set(key, known);
      else missing.push({ sourceId: source.sourceId, firstOrdinal });
    }
  for (const row of await listBundles(db, appId, missing)) {
    const key = bundleKey(row.sourceId, row.firstOrdinal);
    bundles.set(key, row.content);
    const content = copyBytes(row.content);
    cache.set(key, content, content);
  }
  return bundles;
}

function bundleColumns(bundle: Buffer | undefined, term: string): PostingColumns | undefined {
  const entry = bundle && findInBundle(bundle, term);
  return entry && unpackPostings(entry.postings);
}

/** The order in which the database sorts terms. */
function byCodePoint(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

function postingsKey(segment: number, term: string): string {
  return `${segment}/${term}`;
}

function bundleKey(sourceId: string, firstOrdinal: number): string {
  return `${sourceId}/${firstOrdinal}`;
}
