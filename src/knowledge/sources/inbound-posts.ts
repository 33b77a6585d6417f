import type { FastifyRequest } from 'fastify';
import type { Database } from '../../db/database.ts';
import { isMediaType } from '../../files/media-types.ts';
import { readBody } from '../../http/body/body.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, found, invalidField } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import type { Caller, Scope } from '../../tenancy/caller.ts';
import { digest, type Secrets } from '../../tenancy/secrets.ts';
import type { Owned } from '../../tenancy/visible.ts';
import { emptyItem } from '../ingestion/content.ts';
import type { IngestService } from '../ingestion/service.ts';
import { appOfToken } from './inbound-addresses.ts';
import { readSignatureHeaders, storeSigned } from './inbound-signing.ts';
import { findInboundSource } from './inbound-store.ts';
import { listInstalledSources } from './store.ts';

type PostDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  ingestions: IngestService;
  /** Largest body that an inbound URL accepts, in bytes. */
  bodyBytesMax: number;
};

type ThreadMessage = { content: string; metadata: Record<string, unknown> };

/** What others post to inbound URLs and to threads. */
export function createInboundPosts(deps: PostDeps) {
  const { db, clock, ingestions } = deps;

  async function findByToken(token: string) {
    const appId = appOfToken(token);
    return found(appId ? await findInboundSource(db, appId, digest(token)) : undefined);
  }

  return {
    /** Finds the source of a token, which owns the idempotency keys of its requests. */
    async findCaller(token: string): Promise<Scope & { name: string; isWholeApp: boolean }> {
      const { appId, sandboxId, id, inboundSecret } = await findByToken(token);
      if (inboundSecret !== null)
        throw invalidField('idempotency-key', 'is not accepted with signed messages: webhook-id identifies them');
      return { appId, sandboxId, name: `source/${id}`, isWholeApp: false };
    },

    /** Stores the posted bytes as a document. A wrong token is 404, like a missing source. */
    async receive(token: string, request: FastifyRequest): Promise<{ ingestion: string }> {
      const source = await findByToken(token);
      const { appId, sandboxId, id } = source;
      request.auditNote = {
        actor: { scopes: [{ appId, sandboxId }], kind: 'inbound_url', id, credential: 'inbound_url' },
      };
      if (source.state === 'paused') throw new AppError('conflict', 'This source is paused.');
      const signature = source.inboundSecret === null ? undefined : readSignatureHeaders(request.headers, clock.now());
      const content = await readBody(request, deps.bodyBytesMax, source.appId);
      const contentType = request.headers['content-type'] ?? null;
      if (contentType !== null && !isMediaType(contentType)) throw invalidField('content-type', 'is not a media type');
      // What a system that pushes changes posts only says that there is something to pull.
      if (source.type !== 'webhook/inbound')
        return { ingestion: formatId('ingestion', (await ingestions.pullDue(db, source)).id) };
      const item = { ...emptyItem, content, contentType };
      const ingestionId = signature
        ? (await storeSigned(deps, source, signature, item)).ingestionId
        : (await ingestions.ingestInternal(source, item)).id;
      return { ingestion: formatId('ingestion', ingestionId) };
    },

    /** Stores a thread's message in every active thread/messages source of its agent. 409 if all are paused. */
    async takeMessage(caller: Caller, thread: Owned & { title: string | null }, message: ThreadMessage): Promise<void> {
      const { agentId, title } = thread;
      const targets = agentId === null ? [] : await listInstalledSources(db, caller.appId, agentId, 'thread/messages');
      if (targets.length === 0)
        throw invalidField('thread', 'its agent has no installation of kind thread/messages that accepts messages');
      const active = targets.filter(({ state }) => state === 'active');
      if (active.length === 0)
        throw new AppError('conflict', 'Every thread/messages source of the agent of this thread is paused.');
      const content = Buffer.from(message.content);
      const item = { ...emptyItem, content, isText: true, title, metadata: message.metadata };
      await ingestions.ingestIntoAll(active, item);
    },
  };
}
