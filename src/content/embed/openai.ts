import type { Dispatcher } from 'undici';
import { trace } from '../../tracing/trace.ts';
import type { Resolver } from '../fetch/resolver.ts';
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
  requestsPerMinuteMax?: number;
  /** The maximum number of texts in one request. */
  batchTexts?: number;
  fusionWeight?: number;
  similarityFloor?: number;
  timeoutMs?: number;
  /** Waits between attempts. Replaced in tests. */
  sleep?: Sleep;
  resolve?: Resolver;
};

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
  const sleep: Sleep = options.sleep ?? pause;
  const agent = openServiceAgent(options.resolve);
  const pace = pacer(options.requestsPerMinuteMax ?? 3_000, sleep);

  async function request(texts: string[], signal: AbortSignal | undefined): Promise<Float32Array[]> {
    for (let tries = 1; ; tries++) {
      await pace(signal);
      const outcome = await post(options, agent(), texts, signal).catch((error: unknown) => ({
        retryMs: 500 * 2 ** tries,
        reason: 'The embedding service cannot be reached.',
        cause: error,
      }));
      if (Array.isArray(outcome)) return outcome;
      signal?.throwIfAborted();
      if (tries === triesMax || outcome.retryMs === undefined)
        throw new EmbeddingError(outcome.reason, { cause: outcome.cause });
      await sleep(outcome.retryMs, signal);
    }
  }

  const attributes = {
    ...{ 'gen_ai.operation.name': 'embeddings', 'gen_ai.provider.name': 'openai' },
    ...{ 'gen_ai.request.model': options.model, 'gen_ai.embeddings.dimension.count': options.dimensions },
  };

  return {
    model: `openai:${options.model}:${options.dimensions}`,
    dimensions: options.dimensions,
    local: false,
    fusionWeight: options.fusionWeight ?? 1,
    similarityFloor: options.similarityFloor ?? 0.2,
    batchTexts: options.batchTexts ?? 64,
    embed: (texts, _purpose, signal) =>
      texts.length === 0
        ? Promise.resolve([])
        : trace(`embeddings ${options.model}`, { kind: 'client', attributes }, () =>
            request(
              // Services refuse an empty text, and truncate or refuse one that is too long for the model.
              texts.map((text) => text.slice(0, textCharactersMax).toWellFormed() || ' '),
              signal,
            ),
          ),
  };
}

async function post(
  options: OpenAiOptions,
  dispatcher: Dispatcher,
  texts: string[],
  signal: AbortSignal | undefined,
): Promise<Float32Array[] | ServiceFailure> {
  const timeout = AbortSignal.timeout(options.timeoutMs ?? 30_000);
  const body = await postToService({
    url: `${options.baseUrl.replace(/\/+$/, '')}/embeddings`,
    dispatcher,
    name: 'embedding service',
    apiKey: options.apiKey,
    body: { model: options.model, input: texts, encoding_format: 'float' },
    responseBytesMax: otherBytesMax + texts.length * options.dimensions * numberBytesMax,
    signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
  });
  return typeof body === 'string' ? readVectors(body, texts.length, options.dimensions) : body;
}

function readVectors(body: string, count: number, dimensions: number): Float32Array[] | ServiceFailure {
  const wrong = (reason: string): ServiceFailure => ({
    retryMs: undefined,
    reason,
    cause: new Error(body.slice(0, 200)),
  });
  const data = parseServiceJson(body);
  if (data === undefined) return wrong('The embedding service did not return JSON.');
  const rows = isRecord(data) ? data.data : undefined;
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
  return complete.length === count ? complete : wrong('The embedding service returned a vector twice.');
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
