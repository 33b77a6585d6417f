import type { Dispatcher } from 'undici';
import { trace } from '../../tracing/trace.ts';
import type { Resolver } from '../fetch/resolver.ts';
import { isCount } from '../models/llm/messages.ts';
import {
  isRecord,
  openServiceAgent,
  parseServiceJson,
  pause,
  postToService,
  type ServiceFailure,
} from '../models/service.ts';
import { type Embedder, EmbeddingError, normalize } from './embedder.ts';

type OpenAiOptions = {
  /** Up to and including `/v1`; the client appends `/embeddings`. */
  baseUrl: string;
  apiKey?: string;
  model: string;
  dimensions: number;
  wire?: Wire;
  requestsPerMinuteMax?: number;
  /** The maximum number of texts in one request. */
  batchTexts?: number;
  similarityFloor?: number;
  timeoutMs?: number;
  /** Waits between attempts. Replaced in tests. */
  sleep?: Sleep;
  resolve?: Resolver;
  /** The connections to use instead of own ones. */
  agent?: () => Dispatcher;
};

/** Vectors of unit length in the order of the texts, and the tokens that the service counted, if it said so. */
type Embedded = { vectors: Float32Array[]; tokens: number | undefined };

type Sleep = (ms: number, signal: AbortSignal | undefined) => Promise<unknown>;

const triesMax = 4;
/** The bytes that a response may have for each number of a vector, and for everything else. */
const numberBytesMax = 64;
const otherBytesMax = 1024 * 1024;
const textCharactersMax = 24_000;

/**
 * A client for any service with OpenAI's `POST /v1/embeddings`: Ollama, vLLM, Text Embeddings Inference, OpenAI
 * itself.
 */
export function openAiEmbedder(options: OpenAiOptions): Embedder {
  const request = openAiEmbeddings(options);
  const attributes = {
    ...{ 'gen_ai.operation.name': 'embeddings', 'gen_ai.provider.name': 'openai' },
    ...{ 'gen_ai.request.model': options.model, 'gen_ai.embeddings.dimension.count': options.dimensions },
  };

  return {
    model: `openai:${options.model}:${options.dimensions}`,
    dimensions: options.dimensions,
    local: false,
    fusionWeight: 1,
    similarityFloor: options.similarityFloor ?? 0.2,
    batchTexts: options.batchTexts ?? 64,
    embed: (texts, _purpose, signal) =>
      texts.length === 0
        ? Promise.resolve([])
        : trace(`embeddings ${options.model}`, { kind: 'client', attributes }, async () => {
            const { vectors } = await request(texts.map(sentText), { signal });
            return vectors;
          }),
  };
}

/** What is sent of a text: services refuse an empty one, and truncate or refuse one that is too long for the model. */
export function sentText(text: string): string {
  return text.slice(0, textCharactersMax).toWellFormed() || ' ';
}

/** `inputType`: what the service is told that the texts are, such as `query`. */
type RequestOptions = { inputType?: string | undefined; signal?: AbortSignal | undefined; tries?: number };
export type EmbeddingRequest = (texts: string[], of?: RequestOptions) => Promise<Embedded>;

/** How a service takes texts and returns vectors. */
type Wire = {
  path: string;
  body(model: string, texts: string[], inputType: string | undefined): object;
  /** The vectors of a response, each with the index of its text or in their order. */
  rows(data: unknown): unknown;
  tokens(data: unknown): number | undefined;
};

const openAiWire: Wire = {
  path: 'embeddings',
  // Without `encoding_format`, all services return numbers. Voyage refuses `float`.
  body: (model, input, inputType) => ({ model, input, ...(inputType === undefined ? {} : { input_type: inputType }) }),
  rows: (data) => (isRecord(data) ? data.data : undefined),
  tokens: readTokens,
};

/** Cohere's own API (version 2), which requires the type of the texts. */
export const cohereWire: Wire = {
  path: 'embed',
  body: (model, texts, inputType) => ({ model, texts, input_type: inputType, embedding_types: ['float'] }),
  rows(data) {
    const vectors = isRecord(data) && isRecord(data.embeddings) ? data.embeddings.float : undefined;
    return Array.isArray(vectors) ? vectors.map((embedding: unknown) => ({ embedding })) : undefined;
  },
  tokens(data) {
    const units = isRecord(data) && isRecord(data.meta) ? data.meta.billed_units : undefined;
    return isRecord(units) ? countOf(units.input_tokens) : undefined;
  },
};

/** Requests to such a service, repeated while that may help. Throws EmbeddingError, or the signal's reason. */
export function openAiEmbeddings(options: OpenAiOptions): EmbeddingRequest {
  const sleep: Sleep = options.sleep ?? pause;
  const agent = options.agent ?? openServiceAgent(options.resolve);
  const pace = pacer(options.requestsPerMinuteMax ?? 3_000, sleep);

  return async (texts, { inputType, signal, tries = triesMax } = {}) => {
    for (let done = 1; ; done++) {
      await pace(signal);
      const outcome = await post(options, agent(), { texts, inputType, signal }).catch((error: unknown) => ({
        retryMs: 500 * 2 ** done,
        reason: `The embedding service ${isTimeout(error) ? 'did not respond in time' : 'cannot be reached'}.`,
        cause: error,
      }));
      if ('vectors' in outcome) return outcome;
      signal?.throwIfAborted();
      // What waits for a service that was silent for so long tries again later: other work may use its place meanwhile.
      if (done === tries || outcome.retryMs === undefined || isTimeout(outcome.cause))
        throw new EmbeddingError(outcome.reason, {
          ...{ cause: outcome.cause, mayPass: outcome.retryMs !== undefined, wasCharged: 'wasRead' in outcome },
          ...('status' in outcome ? { status: outcome.status } : {}),
        });
      await sleep(outcome.retryMs, signal);
    }
  };
}

async function post(
  options: OpenAiOptions,
  dispatcher: Dispatcher,
  { texts, inputType, signal }: Pick<RequestOptions, 'inputType' | 'signal'> & { texts: string[] },
): Promise<Embedded | (ServiceFailure & { wasRead?: true })> {
  const { model, dimensions, wire = openAiWire } = options;
  const timeout = AbortSignal.timeout(options.timeoutMs ?? 30_000);
  const body = await postToService({
    url: `${options.baseUrl.replace(/\/+$/, '')}/${wire.path}`,
    dispatcher,
    name: 'embedding service',
    apiKey: options.apiKey,
    body: wire.body(model, texts, inputType),
    responseBytesMax: otherBytesMax + texts.length * dimensions * numberBytesMax,
    signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
  });
  if (typeof body !== 'string') return body;
  const read = readVectors(body, texts.length, dimensions, wire);
  return 'vectors' in read ? read : { ...read, wasRead: true };
}

function readVectors(body: string, count: number, dimensions: number, wire: Wire): Embedded | ServiceFailure {
  const wrong = (reason: string): ServiceFailure => ({
    retryMs: undefined,
    reason,
    cause: new Error(body.slice(0, 200)),
  });
  const data = parseServiceJson(body);
  if (data === undefined) return wrong('The embedding service did not return JSON.');
  const rows = wire.rows(data);
  if (!Array.isArray(rows) || rows.length !== count)
    return wrong('The embedding service returned a different number of vectors than texts.');
  const vectors = new Array<Float32Array | undefined>(count).fill(undefined);
  for (const [i, row] of rows.entries()) {
    const values = isRecord(row) ? row.embedding : undefined;
    const index = isRecord(row) && typeof row.index === 'number' ? row.index : i;
    if (!Array.isArray(values) || !values.every((value) => typeof value === 'number' && Number.isFinite(value)))
      return wrong('The embedding service did not return vectors of numbers.');
    if (values.length !== dimensions)
      return wrong(`The embedding service returned vectors of ${values.length} dimensions, not ${dimensions}.`);
    if (!(index in vectors)) return wrong('The embedding service returned a vector for a text that was not sent.');
    vectors[index] = normalize(Float32Array.from(values));
  }
  const complete = vectors.filter((vector) => vector !== undefined);
  if (complete.length < count) return wrong('The embedding service returned a vector twice.');
  return { vectors: complete, tokens: wire.tokens(data) };
}

/** The tokens that a service reports; undefined unless that is a count. */
export function readTokens(data: unknown): number | undefined {
  const usage = isRecord(data) && isRecord(data.usage) ? data.usage : {};
  return countOf(usage.prompt_tokens ?? usage.total_tokens);
}

function countOf(value: unknown): number | undefined {
  return isCount(value) ? value : undefined;
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}

/** Delays requests so that they start no closer together than the rate allows. */
function pacer(perMinute: number, sleep: Sleep): (signal: AbortSignal | undefined) => Promise<void> {
  const gapMs = 60_000 / perMinute;
  let next = 0;
  return async (signal) => {
    const now = performance.now();
    // Unused time allows a burst of at most a tenth of a minute's requests.
    next = Math.max(next + gapMs, now - 6_000);
    if (next > now) await sleep(next - now, signal);
  };
}
