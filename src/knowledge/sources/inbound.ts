import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import type { Database, Transaction } from '../../db/database.ts';
import { isMediaType } from '../../files/media-types.ts';
import { readBody } from '../../http/body/body.ts';
import { iso } from '../../http/route/present.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, found, invalidField, notFound } from '../../lib/errors.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import { readBase64url } from '../../tenancy/base64url.ts';
import type { Caller, Scope } from '../../tenancy/caller.ts';
import { digest, type Secrets } from '../../tenancy/secrets.ts';
import { generateWebhookSecret, isWebhookSecret } from '../../tenancy/signed-messages.ts';
import type { Owned } from '../../tenancy/visible.ts';
import { insertIndex } from '../index/store.ts';
import type { IngestService } from '../ingestion/service.ts';
import type { NewItem } from '../ingestion/store.ts';
import { findCreatableKind, serverKinds } from '../kinds/index.ts';
import { inboundOverlapSecondsDefault, type inboundSecretInputSchema, type inboundUrlSchema } from '../schema.ts';
import { readSignatureHeaders, storeSigned } from './inbound-signing.ts';
import * as inboundStore from './inbound-store.ts';
import { checkMetadata, type SourceService } from './service.ts';
import * as store from './store.ts';

type InboundDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  baseUrl: () => string;
  sources: SourceService;
  ingestions: IngestService;
  /** Largest body that an inbound URL accepts, in bytes. */
  bodyBytesMax: number;
};

type InboundUrl = Static<typeof inboundUrlSchema>;
type ThreadMessage = { content: string; metadata: Record<string, unknown> };

/** Sources that other systems and users fill: inbound URLs and messages of threads. */
export function createInboundService(deps: InboundDeps) {
  const { db, clock, secrets, baseUrl, sources, ingestions } = deps;

  const urlOf = (token: string) => `${baseUrl()}/api/v1/inbound/${token}`;

  function describe({ inboundSecret, inboundPreviousSecretUntil: until }: store.SourceRow, token: string): InboundUrl {
    const previous = until !== null && until > clock.now() ? { previous_secret_until: iso(until) } : {};
    return { url: urlOf(token), signed: inboundSecret !== null, ...previous };
  }

  async function getInbound(caller: Caller, id: string) {
    const source = await sources.getForChange(db, caller, id, 'update');
    if (source.type !== 'webhook/inbound') throw notFound();
    return source;
  }

  /** A source with an inbound URL: posts become documents of it, or start a pull of a pulled one. */
  async function getWithUrl(caller: Caller, id: string) {
    const source = await sources.getForChange(db, caller, id, 'update');
    if (source.type !== 'webhook/inbound' && !findCreatableKind(source.type)?.pull) throw notFound();
    return source;
  }

  async function findByToken(token: string) {
    const appId = appOfToken(token);
    return found(appId ? await inboundStore.findInboundSource(db, appId, digest(token)) : undefined);
  }

  return {
    /** Creates the source of a new installation, for the kinds that have one. */
    async install(
      tx: Transaction,
      installation: Scope & { id: string; kind: string },
      agent: { id: string; orgId: string | null },
    ): Promise<void> {
      const type = serverKinds.find((kind) => kind === installation.kind);
      if (!type) return;
      const id = newUuid();
      await store.insertSource(tx, installation, {
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

    /** The secret URL of an installation's source; undefined if it has none. */
    async urlOfInstallation(appId: string, installationId: string): Promise<string | undefined> {
      const [row] = await db<{ inboundToken: Buffer }[]>`
        select inbound_token from knowledge_sources
        where app_id = ${appId} and installation_id = ${installationId} and inbound_token is not null`;
      return row && urlOf(secrets.unwrap(row.inboundToken).plain.toString());
    },

    async getUrl(caller: Caller, id: string): Promise<InboundUrl> {
      const source = await getWithUrl(caller, id);
      if (!source.inboundToken) throw notFound();
      return describe(source, secrets.unwrap(source.inboundToken).plain.toString());
    },

    async rotate(caller: Caller, id: string): Promise<InboundUrl> {
      const source = await getWithUrl(caller, id);
      const inbound = newInbound(secrets, source.appId);
      await inboundStore.setInbound(db, source.appId, source.id, inbound);
      return describe(source, inbound.plain);
    },

    /** Requires signatures from now on. Returns the secret, which is shown only here. */
    async setSecret(caller: Caller, id: string, input: Static<typeof inboundSecretInputSchema>) {
      const { secret = generateWebhookSecret(), overlap_seconds: overlap = inboundOverlapSecondsDefault } = input;
      if (!isWebhookSecret(secret)) throw invalidField('secret', 'must be `whsec_` and 24 to 64 bytes in base64');
      const source = await getInbound(caller, id);
      const now = clock.now();
      const next = {
        secret: secrets.wrap(Buffer.from(secret)),
        previousUntil: new Date(now.getTime() + overlap * 1_000),
        now,
      };
      const { inboundPreviousSecretUntil: until } = found(await inboundStore.replaceInboundSecret(db, source, next));
      return { secret, ...(until === null ? {} : { previous_secret_until: iso(until) }) };
    },

    /** Accepts unsigned posts from now on. */
    async removeSecret(caller: Caller, id: string): Promise<void> {
      await inboundStore.removeInboundSecret(db, await getInbound(caller, id));
    },

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
      checkMetadata(message.metadata);
      const { agentId, title } = thread;
      const targets =
        agentId === null ? [] : await store.listInstalledSources(db, caller.appId, agentId, 'thread/messages');
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

const emptyItem: NewItem = {
  documentId: null,
  fileId: null,
  content: null,
  isText: false,
  contentType: null,
  filename: null,
  title: null,
  metadata: null,
  dedupe: false,
};

const prefix = 'whs_';
const uuidBytes = 16;

/** Generates a secret that contains the app, so that lookups never use the secret alone. */
function newInbound(secrets: Secrets, appId: string): { digest: Buffer; token: Buffer; plain: string } {
  const app = Buffer.from(appId.replaceAll('-', ''), 'hex');
  const plain = `${prefix}${Buffer.concat([app, randomBytes(32)]).toString('base64url')}`;
  return { digest: digest(plain), token: secrets.wrap(Buffer.from(plain)), plain };
}

function appOfToken(token: string): string | undefined {
  if (!token.startsWith(prefix)) return undefined;
  const bytes = readBase64url(token.slice(prefix.length));
  if (bytes?.length !== uuidBytes + 32) return undefined;
  const hex = bytes.subarray(0, uuidBytes).toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
