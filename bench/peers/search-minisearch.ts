import { installPackages } from './install.ts';
import type { SearchPeer } from './row.ts';

type MiniSearch = { addAll(documents: object[]): void; search(query: string): { id: string }[] };

/** As it comes, and with `processTerm` as its documentation describes it for stems and stop words. */
export async function startMiniSearch(): Promise<SearchPeer> {
  const names = ['minisearch@7.2.0', '@orama/stemmers@3.1.18', '@orama/stopwords@3.1.18'];
  const packages = installPackages('minisearch', names);
  const { default: Index } = await packages.load<{ default: new (options: object) => MiniSearch }>('minisearch');
  const { stemmer } = await packages.load<{ stemmer(word: string): string }>('@orama/stemmers/english');
  const { stopwords } = await packages.load<{ stopwords: string[] }>('@orama/stopwords/english');
  const unwanted = new Set(stopwords);
  const processTerm = (term: string) => (unwanted.has(term.toLowerCase()) ? null : stemmer(term.toLowerCase()));
  const fields = ['title', 'text'];
  const indexes = {
    MiniSearch: new Index({ fields }),
    'MiniSearch with stems and stop words': new Index({ fields, processTerm }),
  };
  return {
    async add(texts) {
      for (const index of Object.values(indexes)) index.addAll([...texts]);
    },
    searches: Object.entries(indexes).map(([program, index]) => ({
      program,
      version: packages.version('minisearch'),
      guarantees: 'in the memory of one process, not durable; no tenants; called in process',
      async search(query) {
        const best = index.search(query).slice(0, 10);
        return best.map(({ id }) => id);
      },
    })),
    close: async () => {},
  };
}
