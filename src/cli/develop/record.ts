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
  return (await readVersion(client, name)).record;
}

async function readVersion(client: Client, name: string): Promise<{ version: number; record: Record }> {
  try {
    const { content, version } = await client.send<{ content: string; version: number }>('GET', pathOf(name));
    const { created = [], fingerprints = {} } = JSON.parse(content) as Partial<Record>;
    return { version, record: { created, fingerprints } };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404)
      return { version: 0, record: { created: [], fingerprints: {} } };
    if (error instanceof SyntaxError) throw new ApiError(0, `The config entry ${recordFolder}${name}.json is damaged.`);
    throw error;
  }
}

/** What one run of `apply` adds to the record and takes from it. Keys are `kind key`. */
export type RecordChange = {
  created: Map<string, Created>;
  deleted: Set<string>;
  fingerprints: { [key: string]: string };
};

const attemptsMax = 20;

/** Changes the record. Changes that another run makes at the same time are kept. */
export async function changeRecord(client: Client, name: string, change: RecordChange): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { version, record } = await readVersion(client, name);
    const content = `${JSON.stringify(withChange(record, change), undefined, 1)}\n`;
    const body = { content, content_type: 'application/json', if_version: version };
    try {
      await client.send('PUT', pathOf(name), { body });
      return;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 412 || attempt === attemptsMax) throw error;
    }
  }
}

function withChange(record: Record, { created, deleted, fingerprints }: RecordChange): Record {
  const all = new Map(record.created.map((one) => [`${one.kind} ${one.key}`, one]));
  for (const [key, one] of created) all.set(key, one);
  for (const key of deleted) all.delete(key);
  const known = Object.entries({ ...record.fingerprints, ...fingerprints }).filter(([key]) => !deleted.has(key));
  return { created: [...all.values()], fingerprints: Object.fromEntries(known) };
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
