import { EmbeddingError } from '../../content/embed/embedder.ts';
import type { SharedEmbedder } from '../../content/embed/in-lanes.ts';
import type { Db } from '../../db/database.ts';
import { AppError } from '../../lib/errors.ts';
import type { Caller, Scope } from '../../tenancy/caller.ts';
import type { SourceEmbedder } from './store.ts';

/** For whom vectors are computed. */
export type EmbeddingOrigin = Scope & { userId?: string | null; agentId?: string | null };

/** The caller of a search as an origin. */
export function originOf(caller: Caller): EmbeddingOrigin {
  const { appId, sandboxId } = caller;
  const userId = caller.kind === 'user' ? caller.userId : null;
  return { appId, sandboxId, userId, agentId: caller.kind === 'agent' ? caller.agentId : null };
}

type Use = { tokens: number; cost: number };

/** An embedder that is a model of the registry. `prices` are of a million tokens. */
export type NamedEmbedder = SharedEmbedder & { prices: { input: number } | undefined };

/** Opens a named model. Throws 422 on `embedder`. */
export type OpenEmbedder = (
  scope: Scope,
  name: string,
  of: { origin: EmbeddingOrigin; onUsed?(tx: Db, use: Use): Promise<void> },
) => Promise<NamedEmbedder>;

export type Embedders = {
  /** The installation's. */
  base: SharedEmbedder;
  open: OpenEmbedder;
};

type EmbeddedSource = EmbeddingOrigin & { embedder?: SourceEmbedder | null };

/** The embedder whose vectors searches of the source use. If there is none any more, the result refuses every text. */
export async function servingEmbedder(
  { base, open }: Embedders,
  { embedder, ...source }: EmbeddedSource,
): Promise<SharedEmbedder> {
  const { servingName: name = null, servingSpace: space = null } = embedder ?? {};
  if (name === null || space === null) return base;
  return openNamed(open, source, name, space);
}

/** The embedder with this name, if it still has this space. Otherwise, the result refuses every text. */
async function openNamed(
  open: OpenEmbedder,
  origin: EmbeddingOrigin,
  name: string,
  space: string,
): Promise<SharedEmbedder> {
  try {
    const found = await open(origin, name, { origin });
    return found.model === space ? found : missing(space, `${name} has become another embedder.`);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return missing(space, `${name} cannot be used: ${error.message}`);
  }
}

function missing(space: string, reason: string): SharedEmbedder {
  return {
    ...{ model: space, dimensions: 1, local: false, fusionWeight: 1, similarityFloor: 0, batchTexts: 1 },
    embed: () => Promise.reject(new EmbeddingError(reason)),
  };
}
