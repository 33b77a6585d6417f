import type { Connection } from './connection.ts';
import type { WebhookMessage } from './generated/schema.ts';
import { webhooks as operations } from './generated/webhooks.ts';

/** An event of a webhook: one of Quarry, or one of your own with any data. */
export type WebhookEvent =
  | WebhookMessage
  | { id: string; type: string & {}; timestamp: string; sequence: number; data: unknown };

/** The URLs that receive events, and their deliveries. */
export const webhooks = (c: Connection) => ({ ...operations(c), verify: verifyWebhook });

const toleranceSeconds = 300;

/**
 * Checks the signature of a message and returns its event. Pass the body as it arrived, before any parsing. Throws if
 * no signature fits the secret, or if the message is more than five minutes old.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string,
): Promise<WebhookEvent> {
  const header = (name: string) => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    if (typeof value !== 'string') throw new Error(`The message has no header ${name}.`);
    return value;
  };
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(header) as [
    string,
    string,
    string,
  ];
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) <= toleranceSeconds))
    throw new Error('The message was signed too long ago, or the clock is wrong.');
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = new Uint8Array(await new Blob([`${id}.${timestamp}.`, new Uint8Array(bytes)]).arrayBuffer());
  const keyBytes = bytesOf(secret.replace(/^whsec_/, ''));
  const key = await crypto.subtle.importKey('raw', keyBytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
  // In constant time, as the platform compares signatures.
  for (const [version, signature = ''] of signatures.split(' ').map((each) => each.split(',')))
    if (version === 'v1' && (await crypto.subtle.verify('HMAC', key, bytesOf(signature), signed)))
      return JSON.parse(new TextDecoder().decode(bytes)) as WebhookEvent;
  throw new Error('No signature of the message fits the secret.');
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
