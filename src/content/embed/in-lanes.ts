import { Lanes } from '../../lanes.ts';
import { type Embedder, EmbeddingError } from './embedder.ts';

/** Calls of one app that a service elsewhere is asked at the same time; as many more for other apps. */
const callsMax = 4;
const waitingMax = 10_000;

/** An embedder that apps share: each call says which app's texts it carries. */
export type SharedEmbedder = Omit<Embedder, 'embed'> & {
  embed(lane: string, ...call: Parameters<Embedder['embed']>): Promise<Float32Array[]>;
};

/** Gives each app a lane of its own, so that one which embeds a library keeps no other's search waiting. */
export function inLanes(embedder: Embedder): SharedEmbedder {
  const { embed: _embed, ...facts } = embedder;
  if (embedder.local) return { ...facts, embed: (_lane, ...call) => embedder.embed(...call) };
  const lanes = new Lanes<() => void>({ slots: 2 * callsMax, waitingMax });
  const next = () => {
    for (let turn = lanes.take(); turn; turn = lanes.take()) turn.item();
  };
  return {
    ...facts,
    async embed(lane, ...call) {
      const [, , signal] = call;
      signal?.throwIfAborted();
      await new Promise<void>((resolve, reject) => {
        const begin = (): void => {
          signal?.removeEventListener('abort', leave);
          resolve();
        };
        const leave = (): void => {
          if (lanes.remove(lane, begin)) reject(signal?.reason);
        };
        if (!lanes.add(lane, begin))
          return reject(new EmbeddingError('Too many texts of this app wait for their vectors.'));
        signal?.addEventListener('abort', leave, { once: true });
        next();
      });
      const startedMs = performance.now();
      try {
        return await embedder.embed(...call);
      } finally {
        lanes.release(lane, performance.now() - startedMs);
        next();
      }
    },
  };
}
