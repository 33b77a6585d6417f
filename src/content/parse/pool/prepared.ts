import type { PreparedText } from '../../prepare.ts';

/** A prepared text as it crosses from a parser process: bytes are kept out of the JSON. */
export type SentText = {
  value: Pick<PreparedText, 'lines' | 'language' | 'chunks'> & { hashes: string[]; bundleChunks: number[] };
  blobs: Buffer[];
};

export function packPrepared({ bundles, vectors, ...value }: PreparedText): SentText {
  const hashes = vectors.map(([hash]) => hash);
  const bundleChunks = bundles.map(({ chunkCount }) => chunkCount);
  return {
    value: { ...value, hashes, bundleChunks },
    blobs: [
      ...bundles.map(({ content }) => content),
      Buffer.concat(vectors.map(([, { vector }]) => vector)),
      Buffer.concat(vectors.map(([, { code }]) => code)),
    ],
  };
}

/** Throws if the parts are not as many as the value names. */
export function unpackPrepared({ value: { hashes, bundleChunks, ...value }, blobs }: SentText): PreparedText {
  const [vectors, codes] = blobs.slice(bundleChunks.length);
  if (vectors === undefined || codes === undefined || blobs.length !== bundleChunks.length + 2)
    throw new Error('The parser process returned a different number of parts than it names.');
  const part = (all: Buffer, i: number) =>
    all.subarray((all.length / hashes.length) * i, (all.length / hashes.length) * (i + 1));
  return {
    ...value,
    bundles: bundleChunks.flatMap((chunkCount, i) => {
      const content = blobs[i];
      return content ? [{ chunkCount, content }] : [];
    }),
    vectors: hashes.map((hash, i) => [hash, { vector: part(vectors, i), code: part(codes, i) }]),
  };
}
