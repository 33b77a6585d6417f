import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Scope } from '../../tenancy/caller.ts';
import type { Identified } from '../../tenancy/credential.ts';

/**
 * How a route's changes are recorded. `durable`: before the change begins, so every change has an entry. `batched`:
 * together with others, soon after the response. `data`: like `batched`, but only if the settings include data
 * changes. `failures`: only failed attempts are counted.
 */
export type AuditMode = 'durable' | 'batched' | 'data' | 'failures';

export type ActorKind = 'user' | 'secret_key' | 'publishable_key' | 'developer' | 'inbound_url';

/** Who acts, and with which credential, if no header shows it. A developer acts in each of their apps. */
export type AuditActor = { scopes: readonly Scope[]; kind: ActorKind; id: string; credential: string };

/** What a handler reports to the audit log about its request, as soon as it is known. */
export type AuditNote = {
  actor?: AuditActor;
  /** The request attempted something that was forbidden or not found, whatever its status. */
  failed?: boolean;
  /** The id of the changed resource, if neither path nor response shows it. */
  resource?: string;
};

/** What routes need of the audit log, which is written in `audit/log.ts`. */
export type Auditor = {
  /** Whether changes of this mode are recorded at all. */
  isRecorded(mode: AuditMode): boolean;
  /** Runs a change and records its outcome. A durable change that cannot be recorded does not begin. */
  audited<T>(mode: AuditMode, request: FastifyRequest, reply: FastifyReply, change: () => T): Promise<Awaited<T>>;
  /** Counts one completed request of a credential. */
  count(shown: Identified, status: number): void;
};
