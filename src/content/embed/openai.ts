import { setTimeout as wait } from 'node:timers/promises';
import type { Agent, Dispatcher } from 'undici';
import { lazyPackage } from '../../lazy-package.ts';
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
  sleep?: Sleep;
};

const undici = lazyPackage<typeof import('undici')>('undici');

type Sleep = (ms: number, signal: AbortSignal | undefined) => Promise<unknown>;

const triesMax = 4;
const retryAfterMsMax = 30_000;
/** A response may have this many bytes for each number of a vector, and for everything else. */
const numberBytesMax = 64;
const otherBytesMax = 1024 * 1024;
const textCharactersMax = 24_000;

/** Any service that speaks OpenAI's `POST /v1/embeddings`: Ollama, vLLM, Text Embeddings Inference, OpenAI itself. */
export function openAiEmbedder(options: OpenAiOptions): Embedder {
  const sleep: Sleep = options.sleep ?? ((ms, signal) => wait(ms, undefined, signal === undefined ? {} : { signal }));
  const pace = pacer(options.requestsPerMinuteMax ?? 3_000, sleep);
  let agent: Agent | undefined;

  async function request(texts: string[], signal: AbortSignal | undefined): Promise<Float32Array[]> {
    for (let tries = 1; ; tries++) {
      await pace(signal);
      agent ??= new (undici().Agent)({ headersTimeout: 0, bodyTimeout: 0 });
      const outcome = await post(options, agent, texts, signal).catch((error: unknown) => ({
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

async function post(
  options: OpenAiOptions,
  dispatcher: Dispatcher,
  texts: string[],
  signal: AbortSignal | undefined,
): Promise<Float32Array[] | Failure> {
  const timeout = AbortSignal.timeout(options.timeoutMs ?? 30_000);
  const response = await undici().request(`${options.baseUrl.replace(/\/+$/, '')}/embeddings`, {
    method: 'POST',
    dispatcher,
    headers: {
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      ...(options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` }),
    },
    body: JSON.stringify({ model: options.model, input: texts, encoding_format: 'float' }),
    signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
  });
  const body = await readBounded(response, otherBytesMax + texts.length * options.dimensions * numberBytesMax);
  if (typeof body !== 'string') return body;
  if (response.statusCode !== 200) return refusal(response, body);
  return readVectors(body, texts.length, options.dimensions);
}

/** The body as it came: nothing that a service elsewhere has compressed is decompressed in this process. */
async function readBounded({ headers, body }: Dispatcher.ResponseData, bytesMax: number): Promise<string | Failure> {
  const unusable = (reason: string): Failure => {
    body.on('error', () => {}).destroy();
    return { retryMs: undefined, reason, cause: undefined };
  };
  const encoding = String(headers['content-encoding'] ?? 'identity').trim();
  if (!/^(identity)?$/i.test(encoding))
    return unusable('The embedding service compressed its response, although it was asked not to.');
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.byteLength;
    if (size > bytesMax) return unusable(`The embedding service returned more than ${bytesMax} bytes.`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function refusal({ statusCode: status, headers }: Dispatcher.ResponseData, body: string): Failure {
  const mayPass = status === 429 || status === 408 || status >= 500;
  const seconds = Number(headers['retry-after']);
  const retryMs = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1000, retryAfterMsMax) : 1_000;
  return {
    retryMs: mayPass ? retryMs : undefined,
    reason: `The embedding service returned status ${status}.`,
    cause: new Error(body.slice(0, 500)),
  };
}

function readVectors(body: string, count: number, dimensions: number): Float32Array[] | Failure {
  const wrong = (reason: string): Failure => ({ retryMs: undefined, reason, cause: new Error(body.slice(0, 200)) });
  let data: unknown;
  try {
    data = JSON.parse(body);
  } catch {
    return wrong('The embedding service did not return JSON.');
  }
  const rows = isRecord(data) ? data.data : undefined;
  if (!Array.isArray(rows) || rows.length !== count)
    return wrong('The embedding service returned another number of vectors than texts.');
  const vectors = new Array<Float32Array | undefined>(count).fill(undefined);
  for (const [i, row] of rows.entries()) {
    const values = isRecord(row) ? row.embedding : undefined;
    const index = isRecord(row) && typeof row.index === 'number' ? row.index : i;
    if (!Array.isArray(values) || !values.every((value) => typeof value === 'number' && Number.isFinite(value)))
      return wrong('The embedding service returned something else than vectors of numbers.');
    if (values.length !== dimensions)
      return wrong(`The embedding service returned vectors of ${values.length} dimensions, not ${dimensions}.`);
    vectors[index] = normalize(Float32Array.from(values));
  }
  const complete = vectors.filter((vector) => vector !== undefined);
  return complete.length === count ? complete : wrong('The embedding service returned a vector twice.');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Lets requests begin no closer together than the rate allows. */
function pacer(perMinute: number, sleep: Sleep): (signal: AbortSignal | undefined) => Promise<void> {
  const gapMs = 60_000 / perMinute;
  let next = 0;
  return async (signal) => {
    const now = performance.now();
    // A minute's worth may be saved up as a burst of one tenth.
    next = Math.max(next + gapMs, now - 6_000);
    if (next > now) await sleep(next - now, signal);
  };
}
