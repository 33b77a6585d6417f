import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Identity } from '../tenancy/caller.ts';

/**
 * How changes by a route are kept. `durable`: entered before they begin, so none is without an entry. `batched`: with
 * others, soon after the response. `data`: the same, where the settings ask for changes of data too.
 */
export type AuditMode = 'durable' | 'batched' | 'data';

/** What routes need of the audit log, which is written in `audit/log.ts`. */
export type Auditor = {
  /** Whether changes of this mode are kept at all. */
  keeps(mode: AuditMode): boolean;
  /** Runs a change and keeps how it ended. A durable one that cannot be entered does not begin. */
  audited<T>(mode: AuditMode, request: FastifyRequest, reply: FastifyReply, change: () => T): Promise<Awaited<T>>;
  /** Counts one request of a credential that has its response. */
  count(identity: Identity, authorization: string | undefined, status: number): void;
};
