import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto';
import type { Client } from '../client/client.ts';
import { ApiError } from '../errors.ts';

/** A resource or config entry that `apply` created. */
type Created = { kind: string; key: string; id?: string };

/**
 * What `apply` created for the directory of a name, and fingerprints of the values that the API does not return. It is
 * a config entry of the app.
 */
export type Record = { created: Created[]; fingerprints: { [key: string]: string } };

export const recordFolder = 'quarry/applied/';

const pathOf = (name: string) => `/config/${recordFolder}${encodeURIComponent(name)}.json`;

export async function readRecord(client: Client, name: string): Promise<Record> {
  try {
    const { content } = await client.send<{ content: string }>('GET', pathOf(name));
    const { created = [], fingerprints = {} } = JSON.parse(content) as Partial<Record>;
    return { created, fingerprints };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { created: [], fingerprints: {} };
    if (error instanceof SyntaxError) throw new ApiError(0, `The config entry ${recordFolder}${name}.json is damaged.`);
    throw error;
  }
}

export async function writeRecord(client: Client, name: string, record: Record): Promise<void> {
  const body = { content: `${JSON.stringify(record, undefined, 1)}\n`, content_type: 'application/json' };
  await client.send('PUT', pathOf(name), { body });
}

const saltBytes = 16;
const hashBytes = 32;

/** Shows whether a value is the same later, without revealing it. */
export function fingerprint(value: string, salt = randomBytes(saltBytes)): string {
  return `${salt.toString('hex')}:${scryptSync(value, salt, hashBytes).toString('hex')}`;
}

export function isSame(known: string | undefined, value: string): boolean {
  if (known === undefined) return false;
  const same = fingerprint(value, Buffer.from(known.split(':')[0] ?? '', 'hex'));
  return same.length === known.length && timingSafeEqual(Buffer.from(same), Buffer.from(known));
}
