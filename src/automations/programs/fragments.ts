import type { Secrets } from '../../tenancy/secrets.ts';
import { type RedactedPlace, SecretValues } from '../engine/secret-values.ts';

/*
 * A program reads what its steps returned, secrets included, but a reader of the journal does not. What redaction removes
 * from an entry is stored beside it, encrypted. It stays what it was when the app's secret changes or is deleted.
 */

export function wrapSecrets(secrets: Secrets, values: Readonly<Record<string, string>>): Buffer {
  return secrets.wrap(Buffer.from(JSON.stringify(values)));
}

/** The payload as the program wrote it. */
export function restorePayload(
  secrets: Secrets,
  payload: unknown,
  places: readonly RedactedPlace[],
  wrapped: Buffer | undefined,
): unknown {
  if (wrapped === undefined) return payload;
  const values = JSON.parse(secrets.unwrap(wrapped).plain.toString('utf8')) as Record<string, string>;
  return new SecretValues(values).restore(payload, places).value;
}
