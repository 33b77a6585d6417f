import type { Db } from '../../db/database.ts';
import { sweepRows } from '../../db/delete-batch.ts';
import { sandboxIsThere } from '../../tenancy/visible.ts';
import type { SourceRow } from './store.ts';

/** A signed message that an inbound URL has accepted. */
type InboundMessage = {
  appId: string;
  sourceId: string;
  digest: Buffer;
  ingestionId: string;
  sentAt: Date;
  receivedAt: Date;
};

export async function setInbound(db: Db, appId: string, id: string, inbound: { digest: Buffer; token: Buffer }) {
  await db`update knowledge_sources set inbound_digest = ${inbound.digest}, inbound_token = ${inbound.token}
    where app_id = ${appId} and id = ${id}`;
}

export async function findInboundSource(db: Db, appId: string, digest: Buffer): Promise<SourceRow | undefined> {
  return db<SourceRow[]>`
    select s.* from knowledge_sources s
    where s.app_id = ${appId} and s.inbound_digest = ${digest} and ${sandboxIsThere(db, 's.app_id', 's.sandbox_id')}`.first();
}

/** Keeps the current secret as the previous one until this time. */
export async function replaceInboundSecret(
  db: Db,
  source: { appId: string; id: string },
  next: { secret: Buffer; previousUntil: Date; now: Date },
): Promise<SourceRow | undefined> {
  const overlaps = next.previousUntil > next.now;
  return db<SourceRow[]>`
    update knowledge_sources set inbound_secret = ${next.secret},
      inbound_previous_secret = case when ${overlaps} then inbound_secret end,
      inbound_previous_secret_until =
        case when ${overlaps} and inbound_secret is not null then ${next.previousUntil}::timestamptz end
    where app_id = ${source.appId} and id = ${source.id} returning *`.first();
}

export async function removeInboundSecret(db: Db, source: { appId: string; id: string }): Promise<void> {
  await db`
    update knowledge_sources
    set inbound_secret = null, inbound_previous_secret = null, inbound_previous_secret_until = null
    where app_id = ${source.appId} and id = ${source.id}`;
}

/** Inserts an accepted message. Returns false if one with this digest has already been accepted. */
export async function insertInboundMessage(db: Db, message: InboundMessage): Promise<boolean> {
  const { appId, sourceId, digest, ingestionId, sentAt, receivedAt } = message;
  return db`
    insert into inbound_messages (app_id, source_id, digest, ingestion_id, sent_at, received_at)
    values (${appId}, ${sourceId}, ${digest}, ${ingestionId}, ${sentAt}, ${receivedAt})
    on conflict do nothing`.any();
}

/** Records that a message was sent again at a later time. Returns undefined if it was not. */
export async function noteResent(
  db: Db,
  { appId, sourceId, digest, sentAt }: Omit<InboundMessage, 'ingestionId' | 'receivedAt'>,
): Promise<{ ingestionId: string } | undefined> {
  return db<{ ingestionId: string }[]>`
    update inbound_messages set sent_at = ${sentAt}
    where app_id = ${appId} and source_id = ${sourceId} and digest = ${digest} and sent_at < ${sentAt}
    returning ingestion_id`.first();
}

/** Deletes messages that were last sent before this time. */
export async function deleteInboundMessages(db: Db, before: Date): Promise<void> {
  const where = db`t.received_at < ${before} and t.sent_at < ${before}`;
  await sweepRows(db, { table: 'inbound_messages', order: 'received_at', where });
}

export async function findTokenOfInstallation(
  db: Db,
  appId: string,
  installationId: string,
): Promise<Buffer | undefined> {
  const [row] = await db<{ inboundToken: Buffer }[]>`
    select inbound_token from knowledge_sources
    where app_id = ${appId} and installation_id = ${installationId} and inbound_token is not null`;
  return row?.inboundToken;
}
