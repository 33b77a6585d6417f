import { findInBundle, readPositions } from '../../content/postings.ts';
import type { Transaction } from '../../db/database.ts';
import { joinColumns } from '../computing/columns.ts';
import type { ComputingThreads } from '../computing/threads.ts';
import { bundleColumns, bundleKey, createPostingsLoader, type IndexCache, loadBundles, termKey } from './postings.ts';
import { createPrefixes } from './prefixes.ts';
import { languagesOf, type PlacedSource, type SearchedChunks } from './scope.ts';
import { listPostings } from './store.ts';
import { termsIn, type WantedTerm } from './wanted.ts';

export type IndexReader = Awaited<ReturnType<typeof openReader>>;

/** Reads postings of the scope's sources, through the cache. */
export async function openReader(
  tx: Transaction,
  appId: string,
  scope: SearchedChunks,
  cache: IndexCache,
  threads: ComputingThreads,
) {
  const languages = languagesOf(scope);
  const bundles = await loadBundles(tx, appId, scope, cache);
  const load = createPostingsLoader(tx, appId, scope, cache, threads);

  return {
    scope,
    languages,
    termsByPrefix: createPrefixes({ db: tx, appId, scope, bundles, load }),

    /** The postings of each query item in every source. */
    async columns(wanted: readonly Pick<WantedTerm, 'byLanguage'>[]) {
      const found = await load(
        scope.sources.flatMap((source) =>
          wanted.flatMap((item) => termsIn(source.languages, item).map((term) => ({ source, term }))),
        ),
      );
      return wanted.map((item) =>
        scope.sources.flatMap((source) => {
          const byTerm = termsIn(source.languages, item).map((term) => {
            const bundled = source.bundles.flatMap(
              (first) => bundleColumns(bundles.get(bundleKey(source.sourceId, first)), term) ?? [],
            );
            return [...(found.get(termKey(source, term)) ?? []), ...bundled];
          });
          const occurring = byTerm.filter((lists) => lists.length > 0);
          // A term has one posting for each chunk; a chunk may contain several words of a prefix.
          const joined = occurring.length > 1 ? joinColumns(occurring.flat()) : occurring.flat();
          return joined.map((columns) => ({ base: source.base, columns }));
        }),
      );
    },

    /** The positions of each word in each chunk of a source. */
    async positions(source: PlacedSource, words: string[]): Promise<Map<string, Map<number, number[]>>> {
      const found = new Map(words.map((word) => [word, new Map<number, number[]>()]));
      const wanted = source.segments.flatMap((segment) => words.map((term) => ({ segment, term })));
      const take = (term: string, postings: Uint8Array, positions: Uint8Array) => {
        const list = found.get(term);
        if (list) readPositions(postings, positions, (ordinal, at) => list.set(ordinal, at));
      };
      for (const row of await listPostings(tx, appId, wanted, true))
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
