import { readBundle } from '../../content/postings.ts';
import { parseQuery, type StemLanguage } from '../../content/terms.ts';
import type { Db } from '../../db/database.ts';
import { openColumns, type PackedColumns, visitOrdinals } from '../computing/columns.ts';
import { type Bundles, bundleColumns, bundleKey, type LoadedPostings, termKey } from './postings.ts';
import { liveBit } from './rank.ts';
import type { PlacedSource, SearchedChunks } from './scope.ts';
import { listTermsByPrefix } from './store.ts';

/** A prefix matches at most this many words. */
const prefixTermsMax = 200;

type PrefixDeps = {
  db: Db;
  appId: string;
  scope: SearchedChunks;
  bundles: Bundles;
  load: (wanted: { source: PlacedSource; term: string }[]) => Promise<LoadedPostings>;
};

/** Finds the terms of a scope that begin in the same way. */
export function createPrefixes({ db, appId, scope, bundles, load }: PrefixDeps) {
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
    const postings = await load(sources.flatMap((source) => terms.map((term) => ({ source, term }))));
    const isLive = ({ base }: PlacedSource, packed: PackedColumns[] | undefined) =>
      packed?.some((list) =>
        visitOrdinals(openColumns(list), (ordinal) => ((scope.rows[base + ordinal] ?? 0) & liveBit) !== 0),
      ) ?? false;
    return terms.filter((term) =>
      sources.some(
        (source) =>
          isLive(source, postings.get(termKey(source, term))) ||
          source.bundles.some((first) =>
            isLive(source, bundleColumns(bundles.get(bundleKey(source.sourceId, first)), term)),
          ),
      ),
    );
  }

  /** Index terms with this prefix in live chunks, the first ones by code point. */
  return async function termsByPrefix(language: StemLanguage, prefix: string): Promise<string[]> {
    const sources = scope.sources.filter((source) => source.languages.includes(language));
    const terms = new Set(await liveTerms(sources, prefix));
    // The index contains stems: `retrieval*` must find `retriev` too.
    for (const { label } of parseQuery(prefix, [language]).terms) terms.add(label);
    return [...terms].sort(byCodePoint).slice(0, prefixTermsMax);
  };
}

/** The order in which the database sorts terms. */
function byCodePoint(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
