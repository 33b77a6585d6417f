import { AsyncLocalStorage } from 'node:async_hooks';
import { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../tenancy/caller.ts';

const callers = new AsyncLocalStorage<Caller>();

/** Sends requests of this process to its own API with the rights of a caller that has no credential: of a run. */
export function asCaller<T>(caller: Caller, send: () => Promise<T>): Promise<T> {
  return callers.run(caller, send);
}

/** The caller of a request that this process sends within `asCaller`. A request from the network has a socket. */
export function innerCaller(request: FastifyRequest): Caller | undefined {
  return request.raw.socket instanceof Socket ? undefined : callers.getStore();
}
