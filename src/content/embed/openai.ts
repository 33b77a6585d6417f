import { setTimeout as wait } from 'node:timers/promises';
import { type Embedder, EmbeddingError, normalize } from './embedder.ts';

type OpenAiOptions = {
  /** Up to and including `/v1`; `/embeddings` is added. */
  baseUrl: string;
  apiKey?: string;
  model: string;
  dimensions: number;
  requestsPerMinuteMax?: number;
  fusionWeight?: number;
  similarityFloor?: number;
  timeoutMs?: number;
  /** What waits between tries; tests put another in its place. */
  sleep?: (ms: number) => Promise<unknown>;
};

const triesMax = 4;
const retryAfterMsMax = 30_000;
const answerBytesMax = 64 * 1024 * 1024;
const textCharactersMax = 24_000;

/** Any service that speaks OpenAI's `POST /v1/embeddings`: Ollama, vLLM, Text Embeddings Inference, OpenAI itself. */
export function openAiEmbedder(options: OpenAiOptions): Embedder {
  const sleep = options.sleep ?? ((ms: number) => wait(ms));
  const pace = pacer(options.requestsPerMinuteMax ?? 3_000, sleep);

  async function request(texts: string[], signal: AbortSignal | undefined): Promise<Float32Array[]> {
    for (let tries = 1; ; tries++) {
      await pace();
      const outcome = await post(options, texts, signal).catch((error: unknown) => ({
        retryMs: 500 * 2 ** tries,
        reason: 'The embedding service cannot be reached.',
        cause: error,
      }));
      if (Array.isArray(outcome)) return outcome;
      if (tries === triesMax || outcome.retryMs === undefined || signal?.aborted)
        throw new EmbeddingError(outcome.reason, { cause: outcome.cause });
      await sleep(outcome.retryMs);
    }
  }

  return {
    model: `openai:${options.model}:${options.dimensions}`,
    dimensions: options.dimensions,
    local: false,
    fusionWeight: options.fusionWeight ?? 1,
    similarityFloor: options.similarityFloor ?? 0.2,
    batchTexts: 64,
    embed: (texts, _purpose, signal) =>
      texts.length === 0
        ? Promise.resolve([])
        : request(
            // Services refuse the empty text and cut or refuse one that is too long for the model.
            texts.map((text) => text.slice(0, textCharactersMax).toWellFormed() || ' '),
            signal,
          ),
  };
}

type Failure = { retryMs: number | undefined; reason: string; cause: unknown };

async function post(options: OpenAiOptions, texts: string[], signal: AbortSignal | undefined) {
  const timeout = AbortSignal.timeout(options.timeoutMs ?? 30_000);
  const response = await fetch(`${options.baseUrl.replace(/\/+$/, '')}/embeddings`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      ...(options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` }),
    },
    body: JSON.stringify({ model: options.model, input: texts, encoding_format: 'float' }),
    signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
    redirect: 'error',
  });
  const body = await readBounded(response);
  if (!response.ok) return refusal(response, body);
  return readVectors(body, texts.length, options.dimensions);
}

async function readBounded(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.byteLength;
    if (size > answerBytesMax) throw new EmbeddingError('The embedding service answers too much.');
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function refusal(response: Response, body: string): Failure {
  const mayPass = response.status === 429 || response.status === 408 || response.status >= 500;
  const seconds = Number(response.headers.get('retry-after'));
  const retryMs = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1000, retryAfterMsMax) : 1_000;
  return {
    retryMs: mayPass ? retryMs : undefined,
    reason: `The embedding service answers ${response.status}.`,
    cause: new Error(body.slice(0, 500)),
  };
}

function readVectors(body: string, count: number, dimensions: number): Float32Array[] | Failure {
  const wrong = (reason: string): Failure => ({ retryMs: undefined, reason, cause: new Error(body.slice(0, 200)) });
  let data: unknown;
  try {
    data = JSON.parse(body);
  } catch {
    return wrong('The embedding service answers no JSON.');
  }
  const rows = isRecord(data) ? data.data : undefined;
  if (!Array.isArray(rows) || rows.length !== count)
    return wrong('The embedding service answers another number of vectors than texts.');
  const vectors = new Array<Float32Array | undefined>(count).fill(undefined);
  for (const [i, row] of rows.entries()) {
    const values = isRecord(row) ? row.embedding : undefined;
    const index = isRecord(row) && typeof row.index === 'number' ? row.index : i;
    if (!Array.isArray(values) || !values.every((value) => typeof value === 'number' && Number.isFinite(value)))
      return wrong('The embedding service answers something else than vectors of numbers.');
    if (values.length !== dimensions)
      return wrong(`The embedding service answers vectors of ${values.length} dimensions, not ${dimensions}.`);
    vectors[index] = normalize(Float32Array.from(values));
  }
  const complete = vectors.filter((vector) => vector !== undefined);
  return complete.length === count ? complete : wrong('The embedding service answers a vector twice.');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Lets requests begin no closer together than the rate allows. */
function pacer(perMinute: number, sleep: (ms: number) => Promise<unknown>): () => Promise<void> {
  const gapMs = 60_000 / perMinute;
  let next = 0;
  return async () => {
    const now = performance.now();
    // A minute's worth may be saved up as a burst of one tenth.
    next = Math.max(next + gapMs, now - 6_000);
    if (next > now) await sleep(next - now);
  };
}
