import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Scope } from '../tenancy/caller.ts';
import type { Identified } from '../tenancy/credential.ts';

/**
 * How changes by a route are kept. `durable`: entered before they begin, so none is without an entry. `batched`: with
 * others, soon after the response. `data`: the same, where the settings ask for changes of data too. `failures`: not at
 * all, only failed attempts are counted.
 */
export type AuditMode = 'durable' | 'batched' | 'data' | 'failures';

export type ActorKind = 'user' | 'secret_key' | 'publishable_key' | 'developer' | 'inbound_url';

/** Who acts, and by what, where no credential in a header says it. A developer acts in each of their apps. */
export type AuditActor = { scopes: readonly Scope[]; kind: ActorKind; id: string; credential: string };

/** What a handler tells the audit log of its request, as soon as it knows. */
export type AuditNote = {
  actor?: AuditActor;
  /** The request was an attempt at something that it was not allowed or did not find, whatever its status. */
  failed?: boolean;
  /** What it changed, where neither path nor response says so. */
  resource?: string;
};

/** What routes need of the audit log, which is written in `audit/log.ts`. */
export type Auditor = {
  /** Whether changes of this mode are kept at all. */
  keeps(mode: AuditMode): boolean;
  /** Runs a change and keeps how it ended. A durable one that cannot be entered does not begin. */
  audited<T>(mode: AuditMode, request: FastifyRequest, reply: FastifyReply, change: () => T): Promise<Awaited<T>>;
  /** Counts one request of a credential that has its response. */
  count(shown: Identified, status: number): void;
};
