import { writeFileSync } from 'node:fs';
import type { Verified } from '../../ledger/findings.ts';
import { type ExportedHead, readHead } from '../../ledger/head.ts';
import { ApiError } from '../errors.ts';
import { Report, readHeadFiles } from '../ledger-report.ts';
import type { Session } from './session.ts';

type Part = Pick<Verified, 'problems' | 'counts'> & { next_cursor?: string };

/** `quarry ledger head`: prints the signed head of the app's ledger, or writes it to a new file. */
export async function head({ client, print }: Session, { out }: { out?: string }): Promise<number> {
  const text = `${JSON.stringify(await client.send<ExportedHead>('GET', '/ledger'), null, 2)}\n`;
  if (out === undefined) await print(text);
  else writeFileSync(out, text, { flag: 'wx' });
  return 0;
}

/** `quarry ledger verify`: asks the server to verify the ledger, and compares it with exported heads. */
export async function verify({ client, json }: Session, { head: files }: { head?: string[] }): Promise<number> {
  const heads = readHeadFiles(files ?? []);
  const report = new Report(json);
  for (const known of heads) {
    const now = await fetchSegment(known.number);
    const read = now === undefined ? undefined : readHead(now);
    const isSame = read?.digest.equals(known.digest) === true;
    if (!isSame)
      report.print({
        kind: now === undefined ? 'truncated' : 'head',
        chain: 'ledger',
        segment: known.number,
        message:
          now === undefined
            ? 'The ledger has no such segment.'
            : 'The segment differs from the exported head, or the head is of another app or sandbox.',
      });
  }
  let cursor: string | undefined;
  do {
    const query = cursor === undefined ? {} : { cursor };
    const part = await client.send<Part>('GET', '/ledger/verification', { query });
    report.add(part);
    cursor = part.next_cursor;
  } while (cursor !== undefined);
  return report.end(1, heads.length);

  async function fetchSegment(segment: number): Promise<ExportedHead | undefined> {
    try {
      return await client.send<ExportedHead>('GET', '/ledger', { query: { segment } });
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }
}
