import { EmbeddingError } from '../content/embed/embedder.ts';
import type { SharedEmbedder } from '../content/embed/in-lanes.ts';
import { sentText } from '../content/embed/openai.ts';
import { type Reranker, requestScores, rerankWithin, sentPassages } from '../content/models/reranker.ts';
import { ModelFailure } from '../content/models/service.ts';
import type { Db } from '../db/database.ts';
import { AppError } from '../lib/errors.ts';
import type { Scope } from '../tenancy/caller.ts';
import { type AccountedCall, type CallUse, createAccount } from './account.ts';
import type { CompleteDeps } from './complete.ts';
import type { ModelSlots } from './model-slots.ts';
import { batchTextsDefault } from './operator-models.ts';
import type { CallOrigin } from './origin.ts';
import { type Chosen, type Model, type Prices, type Registry, vectorSpace } from './registry.ts';

/** For whom vectors are computed. `onUsed` is told what each request has used, in the transaction that charges it. */
type EmbedContext = { origin: CallOrigin; onUsed?(tx: Db, use: CallUse): Promise<void> };

type Accounting = { registry: Registry; slots: ModelSlots; account: ReturnType<typeof createAccount> };

/** An embedder that a source names. `model` is the space of its vectors. */
type NamedEmbedder = SharedEmbedder & { prices: Prices | undefined };

export type NamedModels = {
  /**
   * The embedder that the name stands for. Throws 422 on `embedder` if there is none that can be used. Its model is
   * looked up again for each request, because its key may be removed meanwhile.
   */
  openEmbedder(scope: Scope, name: string, of: EmbedContext): Promise<NamedEmbedder>;
  /** The reranker that the name stands for. Throws 422 on `rerank_model` if there is none that can be used. */
  openReranker(scope: Scope, name: string, origin: CallOrigin): Promise<Reranker>;
  /** Scores one passage. Throws ModelFailure. */
  tryReranker(scope: Scope, name: string, origin: CallOrigin, signal: AbortSignal): Promise<void>;
};

/** Opens models for embeddings and for reranking, whose calls have records, budgets and spans like those of other models. */
export function createNamedModels(deps: CompleteDeps & { slots: ModelSlots; rerankMs: number }): NamedModels {
  const { registry, slots } = deps;
  const accounting: Accounting = { registry, slots, account: createAccount(deps) };

  return {
    async openEmbedder(scope, name, of) {
      const { models } = await registry.chooseEmbedder(scope, name, 'embedder');
      const [first] = models;
      if (first === undefined) throw new Error('A choice has a model.');
      const space = vectorSpace(first) ?? '';
      return {
        model: space,
        dimensions: first.dimensions ?? 0,
        local: false,
        fusionWeight: first.fusionWeight ?? 1,
        similarityFloor: 0.2,
        batchTexts: Math.min(...models.map(({ batchTexts }) => batchTexts ?? batchTextsDefault)),
        prices: first.prices,
        async embed(lane, texts, purpose, signal) {
          const chosen = await registry.chooseEmbedder(scope, name, 'embedder').catch((error: unknown) => {
            throw error instanceof AppError ? new EmbeddingError(error.message, { cause: error }) : error;
          });
          if (chosen.models.some((model) => vectorSpace(model) !== space))
            throw new EmbeddingError(`${name} has become another embedder.`);
          return embed(accounting, chosen, lane, texts, purpose, of, signal);
        },
      };
    },

    async openReranker(scope, name, origin) {
      const chosen = await registry.choose(scope, name, { kind: 'rerank', field: 'rerank_model' });
      return {
        rerank: (lane, query, texts) =>
          rerankWithin(deps.rerankMs, texts, (signal) =>
            rerank(accounting, chosen, lane, query, texts, origin, signal),
          ),
      };
    },

    async tryReranker(scope, name, origin, signal) {
      const chosen = await registry.choose(scope, name, { kind: 'rerank' });
      await rerank(accounting, chosen, origin.appId, 'A question?', ['A short sentence.'], origin, signal);
    },
  };
}

/** Requests for vectors, with a record. Throws EmbeddingError, including when a budget refuses. */
async function embed(
  deps: Accounting,
  chosen: Chosen,
  lane: string,
  texts: string[],
  purpose: 'passage' | 'query',
  of: EmbedContext,
  signal?: AbortSignal,
) {
  if (texts.length === 0) return [];
  const { registry, slots, account } = deps;
  const isQuery = purpose === 'query';
  // Models of one space may differ in what they expect before a question.
  const sentTo = ({ queryPrefix, passagePrefix }: Model) =>
    texts.map((text) => sentText(`${(isQuery ? queryPrefix : passagePrefix) ?? ''}${text}`));
  const call: AccountedCall<Float32Array[]> = {
    operation: 'embeddings',
    texts: sentTo,
    attributes: { 'gen_ai.embeddings.dimension.count': chosen.models[0]?.dimensions ?? 0 },
    async send(model, isLast) {
      const inputType = isQuery ? model.queryInputType : model.passageInputType;
      const of = { inputType, signal, ...(isLast ? {} : { tries: 1 }) };
      const { vectors, tokens } = await registry.embeddings(model)(sentTo(model), of);
      return { value: vectors, tokens };
    },
  };
  try {
    return await slots.run(lane, chosen, () => account(chosen, call, of, signal), signal);
  } catch (error) {
    if (error instanceof AppError) throw new EmbeddingError(error.message, { cause: error });
    throw error;
  }
}

/** Scores passages, with a record. Throws ModelFailure, including when a budget refuses. */
async function rerank(
  deps: Accounting,
  chosen: Chosen,
  lane: string,
  query: string,
  texts: readonly string[],
  origin: CallOrigin,
  signal: AbortSignal,
): Promise<number[]> {
  const { registry, slots, account } = deps;
  const passages = sentPassages(query, texts);
  const call: AccountedCall<number[]> = {
    operation: 'rerank',
    // The model reads the query with each text.
    texts: () => passages.texts.map((text) => `${passages.query}\n${text}`),
    async send(model) {
      const dispatcher = registry.agent(model)();
      const url = `${model.url.replace(/\/+$/, '')}/rerank`;
      const service = { url, apiKey: model.key, model: model.model, dispatcher };
      const { scores, tokens } = await requestScores(service, passages, signal);
      return { value: scores, tokens };
    },
  };
  try {
    return await slots.run(lane, chosen, () => account(chosen, call, { origin }, signal), signal);
  } catch (error) {
    if (error instanceof AppError) throw new ModelFailure(error.message, { cause: error });
    throw error;
  }
}
