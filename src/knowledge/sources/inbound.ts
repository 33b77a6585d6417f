import type { Database, Transaction } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { newUuid } from '../../lib/ids.ts';
import type { Scope } from '../../tenancy/caller.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { insertIndex } from '../index/store.ts';
import type { IngestService } from '../ingestion/service.ts';
import { serverKinds } from '../kinds/index.ts';
import { createInboundAddresses, newInbound } from './inbound-addresses.ts';
import { createInboundPosts } from './inbound-posts.ts';
import { insertSource } from './store.ts';

type InboundDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  baseUrl: () => string;
  ingestions: IngestService;
  /** Largest body that an inbound URL accepts, in bytes. */
  bodyBytesMax: number;
};

/** Sources that other systems and users fill: inbound URLs and messages of threads. */
export function createInboundService(deps: InboundDeps) {
  const { secrets } = deps;

  return {
    ...createInboundAddresses(deps),
    ...createInboundPosts(deps),

    /** Creates the source of a new installation, for the kinds that have one. */
    async install(
      tx: Transaction,
      installation: Scope & { id: string; kind: string },
      agent: { id: string; orgId: string | null },
    ): Promise<void> {
      const type = serverKinds.find((kind) => kind === installation.kind);
      if (!type) return;
      const id = newUuid();
      await insertSource(tx, installation, {
        id,
        type,
        state: 'active',
        payload: null,
        metadata: null,
        orgId: agent.orgId,
        teamId: null,
        userId: null,
        agentId: agent.id,
        threadId: null,
        installationId: installation.id,
        parentSourceId: null,
        nextPullAt: null,
        ...(type === 'webhook/inbound' ? { inbound: newInbound(secrets, installation.appId) } : {}),
      });
      await insertIndex(tx, { appId: installation.appId, sourceId: id });
    },
  };
}
