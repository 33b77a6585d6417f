import { unpackVector } from '../../src/content/embed/codes.ts';
import { lexicalEmbedder } from '../../src/content/embed/lexical.ts';
import type { Database } from '../../src/db/database.ts';

const { embed } = lexicalEmbedder();
/** Cosines of equal texts differ in their last digits. */
const tolerance = 1e-5;

/**
 * The share of each query's exact nearest chunks that a vector search finds. Reads every vector once and computes all
 * cosines. `search` returns the similarities of the hits, best first.
 */
export async function measureRecall(
  db: Database,
  queries: string[],
  count: number,
  search: (query: string) => Promise<number[]>,
): Promise<number> {
  const vectors = await embed(queries, 'query');
  // A query of a few words is zero in most dimensions.
  const sparse = vectors.map((vector) => {
    const places = [...vector.keys()].filter((place) => vector[place] !== 0);
    return { places, values: places.map((place) => vector[place] as number) };
  });
  const best = queries.map(() => new Float64Array(count).fill(-1));
  await db.begin(async (tx) => {
    const rows = tx<{ content: Buffer }[]>`select content from knowledge_vectors`;
    for await (const some of tx.cursor(rows, 2_000))
      for (const { content } of some) {
        const vector = unpackVector(content);
        for (const [i, { places, values }] of sparse.entries()) {
          let cosine = 0;
          for (let j = 0; j < places.length; j++)
            cosine += (values[j] as number) * (vector[places[j] as number] as number);
          keep(best[i] as Float64Array, cosine);
        }
      }
  });
  let found = 0;
  for (const [i, query] of queries.entries()) {
    const least = (best[i] as Float64Array)[count - 1] as number;
    const hits = (await search(query)).slice(0, count);
    found += hits.filter((similarity) => similarity >= least - tolerance).length;
  }
  return found / (queries.length * count);
}

/** Inserts a value into the descending list if it is greater than the last one. */
function keep(best: Float64Array, value: number): void {
  let at = best.length - 1;
  if (value <= (best[at] as number)) return;
  for (; at > 0 && (best[at - 1] as number) < value; at--) best[at] = best[at - 1] as number;
  best[at] = value;
}
