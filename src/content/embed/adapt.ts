import { hash } from 'node:crypto';
import { type Embedder, normalize } from './embedder.ts';

type Adaptation = {
  /** The text that the model expects before a question or a passage; '' for none. */
  queryPrefix: string;
  documentPrefix: string;
  /**
   * How many leading numbers of each vector are kept: models trained for this (Matryoshka) put the most important
   * ones first.
   */
  dimensions: number;
};

/** Adapts an embedder to what its model expects. The result has a different model name if its vectors differ. */
export function adaptEmbedder(embedder: Embedder, { queryPrefix, documentPrefix, dimensions }: Adaptation): Embedder {
  const cut = dimensions < embedder.dimensions ? `:first-${dimensions}` : '';
  const prefixed = documentPrefix === '' ? '' : `:prefix-${hash('sha256', documentPrefix).slice(0, 8)}`;
  return {
    ...embedder,
    model: `${embedder.model}${cut}${prefixed}`,
    dimensions: Math.min(dimensions, embedder.dimensions),
    async embed(texts, purpose, signal) {
      const prefix = purpose === 'query' ? queryPrefix : documentPrefix;
      const vectors = await embedder.embed(
        prefix === '' ? texts : texts.map((text) => `${prefix} ${text}`),
        purpose,
        signal,
      );
      return cut === '' ? vectors : vectors.map((vector) => normalize(vector.slice(0, dimensions)));
    },
  };
}
