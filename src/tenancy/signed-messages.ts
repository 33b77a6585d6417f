import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Standard Webhooks (https://www.standardwebhooks.com): symmetric signatures, version 1. */

const secretPrefix = 'whsec_';
const secretBytes = 32;
const secretBytesMin = 24;
const secretBytesMax = 64;

export function generateWebhookSecret(): string {
  return `${secretPrefix}${randomBytes(secretBytes).toString('base64')}`;
}

/** Whether this is `whsec_` and 24 to 64 bytes in base64, as the standard requires. */
export function isWebhookSecret(text: string): boolean {
  const encoded = text.slice(secretPrefix.length);
  const bytes = Buffer.from(encoded, 'base64');
  return (
    text.startsWith(secretPrefix) &&
    bytes.length >= secretBytesMin &&
    bytes.length <= secretBytesMax &&
    bytes.toString('base64') === encoded
  );
}

/** The headers of a message. With several secrets, it has one signature of each. */
export function signedHeaders(id: string, at: Date, body: string, secrets: readonly string[]): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1_000));
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets
      .map((secret) => `v1,${sign(secret, id, timestamp, body).toString('base64')}`)
      .join(' '),
  };
}

/** Whether one of the signatures was made with one of the secrets. Constant time for each. */
export function isSignedBy(
  { id, timestamp, signatures }: { id: string; timestamp: string; signatures: string },
  body: Uint8Array,
  secrets: readonly string[],
): boolean {
  const given = signatures
    .split(' ')
    .filter((each) => each.startsWith('v1,'))
    .map((each) => Buffer.from(each.slice('v1,'.length), 'base64'));
  const expected = secrets.map((secret) => sign(secret, id, timestamp, body));
  return expected.some((one) => given.some((other) => other.length === one.length && timingSafeEqual(one, other)));
}

function sign(secret: string, id: string, timestamp: string, body: string | Uint8Array): Buffer {
  const key = Buffer.from(secret.slice(secretPrefix.length), 'base64');
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
}
