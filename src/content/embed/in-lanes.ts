import { LaneSlots } from '../../lane-slots.ts';
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
  const slots = new LaneSlots({ slotsOfLane: callsMax, waitingMax });
  const refuse = () => new EmbeddingError('Too many texts of this app wait for their vectors.');
  return {
    ...facts,
    embed: (lane, ...call) => slots.run(lane, call[2], () => embedder.embed(...call), refuse),
  };
}
