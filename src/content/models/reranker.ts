import type { Dispatcher } from 'undici';
import { Slots } from '../../fairness/slots.ts';
import { trace } from '../../tracing/trace.ts';
import { readTokens } from '../embed/openai.ts';
import type { Resolver } from '../fetch/resolver.ts';
import { isRecord, ModelFailure, openServiceAgent, parseServiceJson, postToService } from './service.ts';

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
  const tooMany = () => new ModelFailure('Too many searches of this app wait for the reranker.');
  const slots = new Slots({ slots: 2 * callsMax, tooMany });
  const attributes = {
    'gen_ai.operation.name': 'rerank',
    ...(rerankModel === undefined ? {} : { 'gen_ai.request.model': rerankModel }),
  };
  const service = { url: rerankUrl, apiKey: rerankKey, model: rerankModel };
  return {
    rerank: (lane, query, texts) =>
      rerankWithin(rerankMs, texts, async (signal) => {
        const passages = sentPassages(query, texts);
        const post = () => requestScores({ ...service, dispatcher: agent() }, passages, signal);
        const name = rerankModel === undefined ? 'rerank' : `rerank ${rerankModel}`;
        const { scores } = await trace(name, { kind: 'client', attributes }, () => slots.run(lane, post, signal));
        return scores;
      }),
  };
}

/** Runs a request for scores within its deadline. A failure becomes the reason why there are none. */
export async function rerankWithin(
  ms: number,
  texts: readonly string[],
  request: (signal: AbortSignal) => Promise<number[]>,
): Promise<number[] | { unavailable: string }> {
  if (texts.length === 0) return [];
  const signal = AbortSignal.timeout(ms);
  try {
    return await request(signal);
  } catch (error) {
    if (signal.aborted) return { unavailable: `The results were not reranked within ${ms} ms.` };
    return { unavailable: error instanceof ModelFailure ? error.message : 'The results could not be reranked.' };
  }
}

type Passages = { query: string; texts: string[] };

/** What is sent of a query and of texts. */
export function sentPassages(query: string, texts: readonly string[]): Passages {
  return { query: cut(query, queryCharactersMax), texts: texts.map((text) => cut(text, textCharactersMax)) };
}

type RerankService = { url: string; apiKey: string | undefined; model: string | undefined; dispatcher: Dispatcher };

/** The relevance of each text, in order, and the tokens that the service counted. Throws ModelFailure. */
export async function requestScores(
  { model, ...service }: RerankService,
  { query, texts }: Passages,
  signal: AbortSignal,
): Promise<{ scores: number[]; tokens: number | undefined }> {
  const body = await postToService({
    ...service,
    name: 'reranking service',
    // Text Embeddings Inference serves one model and calls passages `texts`; Cohere, Jina and vLLM call them
    // `documents`.
    body:
      model === undefined ? { query, texts, truncate: true } : { model, query, documents: texts, top_n: texts.length },
    responseBytesMax,
    signal,
  }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw new ModelFailure('The reranking service cannot be reached.', { cause: error, mayPass: true });
  });
  if (typeof body !== 'string') throw new ModelFailure(body.reason, { ...body, mayPass: body.retryMs !== undefined });
  const data = parseServiceJson(body);
  const scores = readScores(data, texts.length);
  if (scores === undefined)
    throw new ModelFailure('The reranking service did not return a score per text.', { wasCharged: true });
  return { scores, tokens: readTokens(data) };
}

/** `[{index, score}]`, or `{results: [{index, relevance_score}]}`. */
function readScores(data: unknown, count: number): number[] | undefined {
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
