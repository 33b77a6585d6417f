import { createHash } from 'node:crypto';
import { type Embedder, normalize } from './embedder.ts';

type Adaptation = {
  /** What the model expects before a question and before a passage; empty for nothing. */
  queryPrefix: string;
  documentPrefix: string;
  /** The first numbers of each vector that are kept: models trained so (Matryoshka) put what matters most first. */
  dimensions: number;
};

/** An embedder as its model expects to be used. Its model has another name where its vectors differ. */
export function adaptEmbedder(embedder: Embedder, { queryPrefix, documentPrefix, dimensions }: Adaptation): Embedder {
  const cut = dimensions < embedder.dimensions ? `:first-${dimensions}` : '';
  const prefixed =
    documentPrefix === '' ? '' : `:prefix-${createHash('sha256').update(documentPrefix).digest('hex').slice(0, 8)}`;
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
