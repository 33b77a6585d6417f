import type { Static } from 'typebox';
import type { Database, Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { found } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { checkLookupKey, refuseDuplicateKey } from '../../tenancy/lookup-keys.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import type { EmbeddingService } from '../embedding/service.ts';
import { findCreatableKind } from '../kinds/index.ts';
import type { UrlCheck } from '../kinds/payload.ts';
import type { sourceUpdateSchema } from '../schema.ts';
import { checkConfiguration, dueAt } from './configuration.ts';
import { keepsCredentials, nextCredentials } from './credentials.ts';
import { getForChange } from './find.ts';
import * as store from './store.ts';

export type SourceDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  checkUrl: UrlCheck;
  embedding: Pick<EmbeddingService, 'require' | 'requireOperator' | 'nameFirst' | 'rename'>;
};

export type SourceChanges = {
  update(caller: Caller, id: string, change: Static<typeof sourceUpdateSchema>): Promise<store.SourceView>;
};

export function createSourceChanges({ db, clock, secrets, checkUrl, embedding }: SourceDeps): SourceChanges {
  /** The space of the vectors of an embedder that a source may name; null for the installation's. */
  async function requireEmbedder(caller: Caller, name: string | null): Promise<string | null> {
    if (name !== null) return (await embedding.require(caller, name)).model;
    embedding.requireOperator(caller);
    return null;
  }

  return {
    async update(caller, id, change) {
      const source = await getForChange(db, caller, id, 'update');
      checkLookupKey(caller, change.lookup_key);
      const { payload, metadata, lookup_key: lookupKey } = change;
      if (payload) await checkConfiguration(db, caller, { type: source.type, payload }, checkUrl);
      const state = change.state ?? source.state;
      const unchanged = payload === undefined && state === source.state;
      const nextPayload = payload ?? source.payload;
      const nextPullAt = unchanged ? source.nextPullAt : dueAt(source.type, state, nextPayload, clock.now());
      const kind = findCreatableKind(source.type);
      const kept = keepsCredentials(caller, source.payload, nextPayload) ? source : undefined;
      const credentials = nextCredentials(secrets, kind, nextPayload, change.credentials, kept);
      const { embedder, version_retention_days: versionRetentionDays } = change;
      const next = {
        ...{ payload, metadata, lookupKey, nextPullAt, versionRetentionDays, ...credentials },
        state: change.state,
      };
      const write = (db: Db) =>
        refuseDuplicateKey('knowledge_sources_lookup_key', 'source', () =>
          store.updateSource(db, caller, source.id, next),
        );
      if (embedder === undefined) return found(await write(db));
      const space = await requireEmbedder(caller, embedder);
      return db.begin(async (tx) => {
        await embedding.rename(tx, { appId: source.appId, sourceId: source.id }, embedder, space);
        return found(await write(tx));
      });
    },
  };
}
