import { installPackages } from './install.ts';
import type { SearchPeer } from './row.ts';

type Orama = {
  create(options: object): object;
  insertMultiple(db: object, documents: object[]): Promise<unknown>;
  search(db: object, query: object): Promise<{ hits: { document: { id: string } }[] }>;
};

/** As it comes, and with the stemmer, the stop words and a boost as its documentation describes them. */
export async function startOrama(): Promise<SearchPeer> {
  const names = ['@orama/orama', '@orama/stemmers', '@orama/stopwords'];
  const packages = installPackages(
    'orama',
    names.map((name) => `${name}@3.1.18`),
  );
  const { create, insertMultiple, search } = await packages.load<Orama>('@orama/orama');
  const { stemmer } = await packages.load<{ stemmer: object }>('@orama/stemmers/english');
  const { stopwords } = await packages.load<{ stopwords: string[] }>('@orama/stopwords/english');
  const tokenizer = { language: 'english', stemming: true, stemmer, stopWords: stopwords };
  const schema = { id: 'string', title: 'string', text: 'string' };
  const indexes = {
    Orama: { index: create({ schema }), boost: {} },
    'Orama with stems, stop words and a boost of titles': {
      index: create({ schema, components: { tokenizer } }),
      boost: { title: 2 },
    },
  };
  return {
    async add(texts) {
      for (const { index } of Object.values(indexes)) await insertMultiple(index, [...texts]);
    },
    searches: Object.entries(indexes).map(([program, { index, boost }]) => ({
      program,
      version: packages.version('@orama/orama'),
      guarantees: 'in the memory of one process, not durable; no tenants; called in process',
      async search(term) {
        const { hits } = await search(index, { term, properties: ['title', 'text'], boost, limit: 10 });
        return hits.map(({ document }) => document.id);
      },
    })),
    close: async () => {},
  };
}
