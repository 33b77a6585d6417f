import { setTimeout as wait } from 'node:timers/promises';
import type { Agent, Dispatcher } from 'undici';
import { lazyPackage } from '../../lib/lazy-package.ts';
import type { AllowList } from '../fetch/allow-list.ts';
import { guardedConnector } from '../fetch/connector.ts';
import { createSystemResolver, lookupWith, type Resolver } from '../fetch/resolver.ts';

const undici = lazyPackage<typeof import('undici')>('undici');

export type ServiceFailure = {
  /** After this time, another attempt may succeed. Undefined: it will not. */
  retryMs: number | undefined;
  reason: string;
  cause: unknown;
  /** The status of the response, if there was one. */
  status?: number;
};

type FailureFacts = { cause?: unknown; mayPass?: boolean; wasCharged?: boolean; status?: number | undefined };

/** A model that returns no text has failed. */
export class ModelFailure extends Error {
  /** Whether another server of the model may succeed. */
  readonly mayPass: boolean;
  /** Whether the service has computed something. */
  readonly wasCharged: boolean;
  /** The status of the response, if that is why it failed. */
  readonly status: number | undefined;

  constructor(message: string, { cause, mayPass = false, wasCharged = false, status }: FailureFacts = {}) {
    super(message, { cause });
    this.name = 'ModelFailure';
    this.mayPass = mayPass;
    this.wasCharged = wasCharged;
    this.status = status;
  }
}

type ServiceRequest = {
  url: string;
  dispatcher: Dispatcher;
  /** The name of the service in messages. */
  name: string;
  apiKey: string | undefined;
  body: unknown;
  responseBytesMax: number;
  signal: AbortSignal;
};

type SentRequest = Pick<ServiceRequest, 'url' | 'dispatcher' | 'signal'> & {
  method: 'POST' | 'PUT';
  headers: Record<string, string>;
  body: string | Buffer;
};

const retryAfterMsMax = 30_000;

/**
 * Opens connections to the configured services as needed. Names are resolved like those of fetches, so name servers
 * that hang hold no thread.
 * @param silenceMsMax a service that sends nothing for this long counts as dead; 0: signals carry the deadlines
 */
export function openServiceAgent(resolve: Resolver = createSystemResolver(), silenceMsMax = 0): () => Agent {
  let agent: Agent | undefined;
  return () => {
    agent ??= new (undici().Agent)({
      headersTimeout: silenceMsMax,
      bodyTimeout: silenceMsMax,
      connect: { lookup: lookupWith(resolve) },
    });
    return agent;
  };
}

const connectTimeoutMs = 10_000;

/** Opens connections to services that apps name, which must be on the public internet unless the operator allows them. */
export function openGuardedAgent(guard: { resolve: Resolver; allow: AllowList }, silenceMsMax = 300_000): () => Agent {
  let agent: Agent | undefined;
  return () => {
    agent ??= new (undici().Agent)({
      headersTimeout: silenceMsMax,
      bodyTimeout: silenceMsMax,
      allowH2: false,
      connect: guardedConnector({ ...guard, connectTimeoutMs }),
    });
    return agent;
  };
}

/**
 * Waits between two attempts. An aborted wait throws the signal's reason, like an aborted request: it says why, such as
 * a deadline.
 */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await wait(ms, undefined, signal === undefined ? {} : { signal }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw error;
  });
}

/** Sends a request to a configured service. Redirects are not followed. */
export function sendToService({ url, headers, ...request }: SentRequest): Promise<Dispatcher.ResponseData> {
  return undici().request(url, { ...request, headers: { ...headers, 'accept-encoding': 'identity' } });
}

/** Sends JSON to a configured model service. Returns the body of a 200 response, or why there is none. */
export async function postToService(request: ServiceRequest): Promise<string | ServiceFailure> {
  const { url, name, apiKey, dispatcher, signal } = request;
  const response = await sendToService({
    url,
    dispatcher,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify(request.body),
    signal,
  });
  const body = await readBounded(response, name, request.responseBytesMax);
  return typeof body === 'string' && response.statusCode !== 200 ? refusal(response, name, body) : body;
}

/** Reads the body without decompressing it: nothing that another server compressed is decompressed in this process. */
export async function readBounded(
  { headers, body }: Dispatcher.ResponseData,
  name: string,
  bytesMax: number,
): Promise<string | ServiceFailure> {
  const unusable = (reason: string): ServiceFailure => {
    body.on('error', () => {}).destroy();
    return { retryMs: undefined, reason, cause: undefined };
  };
  const encoding = String(headers['content-encoding'] ?? 'identity').trim();
  if (!/^(identity)?$/i.test(encoding))
    return unusable(`The ${name} compressed its response, although it was asked not to.`);
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.byteLength;
    if (size > bytesMax) return unusable(`The ${name} returned more than ${bytesMax} bytes.`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function refusal({ statusCode: status, headers }: Dispatcher.ResponseData, name: string, body: string): ServiceFailure {
  const mayPass = status === 429 || status === 408 || status >= 500;
  const seconds = Number(headers['retry-after']);
  const retryMs = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1000, retryAfterMsMax) : 1_000;
  return {
    status,
    retryMs: mayPass ? retryMs : undefined,
    reason: `The ${name} returned status ${status}.`,
    cause: new Error(body.slice(0, 500)),
  };
}

export function parseServiceJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
