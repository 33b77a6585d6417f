import type { IncomingHttpHeaders } from 'node:http';
import type { Database } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError } from '../../lib/errors.ts';
import { digest, type Secrets } from '../../tenancy/secrets.ts';
import { isSignedBy } from '../../tenancy/signed-messages.ts';
import type { IngestService } from '../ingestion/service.ts';
import type { NewItem } from '../ingestion/store.ts';
import * as store from './inbound-store.ts';
import type { SourceRow } from './store.ts';

/** How far the clocks of sender and server may differ, as in the reference libraries. */
const toleranceMs = 5 * 60_000;
/** How long message ids are kept: senders retry for days. */
export const messageKeptMs = 7 * 24 * 3_600_000;
const idCharactersMax = 255;

type SignatureHeaders = { id: string; timestamp: string; signatures: string; sentAt: Date };

/** Reads the headers of Standard Webhooks. 401 if one is missing, or if the time is too far from now. */
export function readSignatureHeaders(headers: IncomingHttpHeaders, now: Date): SignatureHeaders {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => {
    const value = headers[name];
    if (typeof value === 'string' && value !== '') return value;
    throw new AppError('unauthenticated', `This URL accepts only signed messages: the header ${name} is missing.`);
  }) as [string, string, string];
  const sentAt = new Date(Number(timestamp) * 1_000);
  if (!/^\d{1,12}$/.test(timestamp) || id.length > idCharactersMax)
    throw new AppError('invalid_credentials', 'webhook-id or webhook-timestamp does not follow Standard Webhooks.');
  if (Math.abs(sentAt.getTime() - now.getTime()) > toleranceMs)
    throw new AppError(
      'invalid_credentials',
      'webhook-timestamp differs from the server time by more than five minutes.',
    );
  return { id, timestamp, signatures, sentAt };
}

type SigningDeps = { db: Database; clock: Clock; secrets: Secrets; ingestions: IngestService };

/**
 * Stores a signed message once. A retry by the sender, which signs a later time, gets the first ingestion. A copy of an
 * accepted request is refused.
 */
export async function storeSigned(
  { db, clock, secrets, ingestions }: SigningDeps,
  source: SourceRow,
  headers: SignatureHeaders,
  item: NewItem & { content: Buffer },
): Promise<{ ingestionId: string }> {
  if (!isSignedBy(headers, item.content, secretsOf(source, secrets, clock.now())))
    throw new AppError('invalid_credentials', 'No signature in webhook-signature matches the secret of this URL.');
  const message = { appId: source.appId, sourceId: source.id, digest: digest(headers.id), sentAt: headers.sentAt };
  try {
    const ingestion = await ingestions.ingestInternal(source, item, async (tx, { id: ingestionId }) => {
      if (!(await store.insertInboundMessage(tx, { ...message, ingestionId, receivedAt: clock.now() })))
        throw new AlreadyReceived();
    });
    return { ingestionId: ingestion.id };
  } catch (error) {
    if (!(error instanceof AlreadyReceived)) throw error;
  }
  const first = await store.noteResent(db, message);
  if (!first)
    throw new AppError('conflict', 'This message has already been received.', { details: { id: headers.id } });
  return first;
}

class AlreadyReceived extends Error {}

function secretsOf(source: SourceRow, secrets: Secrets, now: Date): string[] {
  const { inboundSecret: current, inboundPreviousSecret: previous, inboundPreviousSecretUntil: until } = source;
  const valid = [current, until !== null && until > now ? previous : null].filter((secret) => secret !== null);
  return valid.map((secret) => secrets.unwrap(secret).plain.toString());
}
