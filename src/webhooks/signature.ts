import { createHmac, randomBytes } from 'node:crypto';

/** Standard Webhooks (https://www.standardwebhooks.com): symmetric signatures, version 1. */

const secretPrefix = 'whsec_';
const secretBytes = 32;

export function generateWebhookSecret(): string {
  return `${secretPrefix}${randomBytes(secretBytes).toString('base64')}`;
}

/** The headers of a message. With several secrets, it has one signature of each. */
export function signedHeaders(id: string, at: Date, body: string, secrets: readonly string[]): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1_000));
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map((secret) => `v1,${sign(secret, `${id}.${timestamp}.${body}`)}`).join(' '),
  };
}

function sign(secret: string, message: string): string {
  const key = Buffer.from(secret.slice(secretPrefix.length), 'base64');
  return createHmac('sha256', key).update(message).digest('base64');
}
