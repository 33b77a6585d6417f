import type { Hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { invalidField } from '../../lib/errors.ts';
import type { Scope } from '../../tenancy/caller.ts';
import { oneHeader } from '../headers.ts';

/**
 * How a POST treats the header Idempotency-Key. `kept`: its first response is stored and returned again.
 * `credential`: its response carries a credential and is never stored, so the header is 422. `forwarded`: the key
 * applies to the requests that the route sends to the API itself. `repeated`: the operation only reads, so it runs again
 * with the rights that the caller has then, and nothing is stored.
 */
export type IdempotencyMode = 'kept' | 'credential' | 'forwarded' | 'repeated';

/** Who sends a request, if no credential header shows it. */
export type IdempotencyCaller = Scope & { name: string; isWholeApp: boolean };

/** What routes need from the records of requests, which are kept in `idempotency/`. */
export type Idempotency = {
  /**
   * Runs the change once for all requests with this key, and returns its response to each of them. `wrap` surrounds
   * the change outside of its transaction.
   */
  run(one: {
    key: string;
    /** By default, the caller of the request. */
    caller?: IdempotencyCaller;
    request: FastifyRequest;
    reply: FastifyReply;
    change: () => Promise<unknown>;
    wrap: (change: () => Promise<unknown>) => Promise<unknown>;
  }): Promise<FastifyReply>;
};

declare module 'fastify' {
  interface FastifyContextConfig {
    idempotency?: IdempotencyMode;
  }
  interface FastifyRequest {
    /** Hashes a body that the handler itself reads as it arrives. */
    bodyHash: Hash | undefined;
    /** The digest of the parts of a form, instead: `incomplete` until the whole form has arrived. */
    formDigest: string | undefined;
  }
}

export const idempotencyHeader = 'idempotency-key';
const keyPattern = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;

/** The key of a request, or undefined without one. 422 unless it has 1 to 255 visible ASCII characters. */
export function readIdempotencyKey(request: FastifyRequest): string | undefined {
  const key = oneHeader(request, idempotencyHeader);
  if (key !== undefined && !keyPattern.test(key))
    throw invalidField('idempotency-key', 'must have 1 to 255 printable ASCII characters');
  return key;
}

/** The key, if this request's response may be stored under it. 422 if the response carries a credential. */
export function usableKey(request: FastifyRequest, mode: IdempotencyMode): string | undefined {
  const key = readIdempotencyKey(request);
  if (key === undefined || mode === 'forwarded' || mode === 'repeated') return undefined;
  if (mode === 'credential')
    throw invalidField(
      'idempotency-key',
      'is not supported here: the response carries a credential, which is not stored',
    );
  const { idempotency_key: inBody } = (request.body ?? {}) as { idempotency_key?: unknown };
  if (inBody !== undefined && inBody !== key)
    throw invalidField('idempotency_key', 'must equal the header Idempotency-Key when both are sent');
  return key;
}
