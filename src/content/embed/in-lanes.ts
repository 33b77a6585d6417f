import { Slots } from '../../fairness/slots.ts';
import { type Embedder, EmbeddingError } from './embedder.ts';

/** An embedder that apps share. Each call names the app of its texts. */
export type SharedEmbedder = Omit<Embedder, 'embed'> & {
  embed(lane: string, ...call: Parameters<Embedder['embed']>): Promise<Float32Array[]>;
};

/** Gives each app a lane, so that an app that embeds a library does not keep another app's search waiting. */
export function inLanes(embedder: Embedder, callsMax = 4): SharedEmbedder {
  const { embed: _embed, ...facts } = embedder;
  if (embedder.local) return { ...facts, embed: (_lane, ...call) => embedder.embed(...call) };
  const tooMany = () => new EmbeddingError('Too many texts of this app are waiting to be embedded.');
  const slots = new Slots({ slots: 2 * callsMax, tooMany });
  return { ...facts, embed: (lane, ...call) => slots.run(lane, () => embedder.embed(...call), call[2]) };
}
