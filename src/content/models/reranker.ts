import { Slots } from '../../fairness/slots.ts';
import { trace } from '../../tracing/trace.ts';
import type { Resolver } from '../fetch/resolver.ts';
import { isRecord, openServiceAgent, parseServiceJson, postToService } from './service.ts';

/** Scores passages against a query with a model that reads both together. */
export type Reranker = {
  /**
   * Returns the relevance of each text, in order, or the reason why there is none. Takes no longer than the
   * configured deadline.
   */
  rerank(lane: string, query: string, texts: string[]): Promise<number[] | { unavailable: string }>;
};

type RerankSettings = {
  rerankUrl: string | undefined;
  rerankKey: string | undefined;
  rerankModel: string | undefined;
  rerankMs: number;
};

const callsMax = 4;
const queryCharactersMax = 2_000;
const textCharactersMax = 8_000;
const responseBytesMax = 1024 * 1024;

/** The configured reranker, shared by all apps; undefined without one. */
export function openReranker(settings: RerankSettings, resolve?: Resolver): Reranker | undefined {
  const { rerankUrl, rerankKey, rerankModel, rerankMs } = settings;
  if (rerankUrl === undefined) return undefined;
  const agent = openServiceAgent(resolve);
  const tooMany = () => new RerankError('Too many searches of this app wait for the reranker.');
  const slots = new Slots({ slots: 2 * callsMax, tooMany });
  const attributes = {
    'gen_ai.operation.name': 'rerank',
    ...(rerankModel === undefined ? {} : { 'gen_ai.request.model': rerankModel }),
  };
  return {
    async rerank(lane, query, texts) {
      if (texts.length === 0) return [];
      const signal = AbortSignal.timeout(rerankMs);
      const asked = cut(query, queryCharactersMax);
      const passages = texts.map((text) => cut(text, textCharactersMax));
      const post = () =>
        postToService({
          url: rerankUrl,
          dispatcher: agent(),
          name: 'reranking service',
          apiKey: rerankKey,
          // Text Embeddings Inference serves one model and calls passages `texts`; Cohere, Jina and vLLM call them
          // `documents`.
          body:
            rerankModel === undefined
              ? { query: asked, texts: passages, truncate: true }
              : { model: rerankModel, query: asked, documents: passages, top_n: passages.length },
          responseBytesMax,
          signal,
        });
      try {
        const name = rerankModel === undefined ? 'rerank' : `rerank ${rerankModel}`;
        const body = await trace(name, { kind: 'client', attributes }, () => slots.run(lane, post, signal));
        if (typeof body !== 'string') return { unavailable: body.reason };
        return (
          readScores(body, texts.length) ?? { unavailable: 'The reranking service did not return a score per text.' }
        );
      } catch (error) {
        if (error instanceof RerankError) return { unavailable: error.message };
        if (signal.aborted) return { unavailable: `The results were not reranked within ${rerankMs} ms.` };
        return { unavailable: 'The reranking service cannot be reached.' };
      }
    },
  };
}

class RerankError extends Error {}

/** `[{index, score}]`, or `{results: [{index, relevance_score}]}`. */
function readScores(body: string, count: number): number[] | undefined {
  const data = parseServiceJson(body);
  const rows = isRecord(data) && !Array.isArray(data) ? data.results : data;
  if (!Array.isArray(rows) || rows.length !== count) return undefined;
  const scores = new Array<number | undefined>(count).fill(undefined);
  for (const row of rows) {
    if (!isRecord(row)) return undefined;
    const score = row.relevance_score ?? row.score;
    const { index } = row;
    if (typeof index !== 'number' || !(index in scores) || typeof score !== 'number' || !Number.isFinite(score))
      return undefined;
    scores[index] = score;
  }
  const complete = scores.filter((score) => score !== undefined);
  return complete.length === count ? complete : undefined;
}

function cut(text: string, charactersMax: number): string {
  return text.slice(0, charactersMax).toWellFormed();
}
