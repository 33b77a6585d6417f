import { open, readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { signingKeys } from '../ledger/keys.ts';
import { findSigner, type Signed, signStatement } from '../ledger/statement.ts';
import { createDirectories } from '../lib/directories.ts';
import { formatId, newUuid, parseId } from '../lib/ids.ts';
import { syncDirectory } from '../lib/sync-directory.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { presentSubject } from './present.ts';
import { subjectKinds } from './schema.ts';
import type { ErasureRow, NewErasure } from './store.ts';

/*
 * The register of erasures: one signed file for each, in a directory that no backup contains. A restore reads it, so that
 * a backup from before an erasure does not bring back what was erased.
 */

type Order = {
  erasure: string;
  app: string;
  sandbox: string;
  user?: string;
  document?: string;
  source?: string;
  files: boolean;
  requested_at: string;
};

export type Register = { add(erasure: ErasureRow): Promise<void> };

const kind = 'quarry:erasure-order:1';
const suffix = '.json';

/** Where the register is. */
export function registerDirectory({
  erasuresDir,
  dataDir,
}: {
  erasuresDir: string | undefined;
  dataDir: string;
}): string {
  return erasuresDir ?? join(dataDir, 'erasures');
}

export function openRegister(directory: string, secrets: Secrets): Register {
  return {
    /** Writes the order durably before anything is deleted. May be repeated. */
    async add(erasure) {
      const [key] = signingKeys(secrets);
      if (key === undefined) throw new Error('There is no key to sign with.');
      const order: Order = {
        erasure: formatId('erasure', erasure.id),
        app: formatId('app', erasure.appId),
        sandbox: formatId('sandbox', erasure.sandboxId),
        ...presentSubject(erasure),
        files: erasure.withFiles,
        requested_at: erasure.createdAt.toISOString(),
      };
      createDirectories(directory, 0o700);
      const unfinished = join(directory, `.${newUuid()}.unfinished`);
      const file = await open(unfinished, 'wx', 0o600);
      try {
        await file.writeFile(`${JSON.stringify(signStatement(key, kind, order))}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(unfinished, join(directory, `${order.erasure}${suffix}`));
      await syncDirectory(directory);
    },
  };
}

/** The orders in a register, oldest first. Throws for a file that is not signed with a trusted key. */
export async function readRegister(
  directory: string,
  trusted: readonly Uint8Array[],
): Promise<Omit<NewErasure, 'work'>[]> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const orders = [];
  for (const name of names.filter((each) => !each.startsWith('.') && each.endsWith(suffix)).sort()) {
    const path = join(directory, name);
    const signed = JSON.parse(await readFile(path, 'utf8')) as Signed<Order>;
    const signer = findSigner(kind, signed);
    if (signer === undefined || !trusted.some((key) => signer.equals(key)))
      throw new Error(`${path} is not an erasure that this installation signed.`);
    orders.push(readOrder(signed.statement));
  }
  return orders;
}

function readOrder(order: Order): Omit<NewErasure, 'work'> {
  const subjectKind = subjectKinds.find((each) => order[each] !== undefined) ?? 'user';
  const uuid = (id: ReturnType<typeof parseId>) => {
    if (id === undefined) throw new Error(`The erasure ${order.erasure} is incomplete.`);
    return id;
  };
  return {
    appId: uuid(parseId('app', order.app)),
    sandboxId: uuid(parseId('sandbox', order.sandbox)),
    id: uuid(parseId('erasure', order.erasure)),
    subjectKind,
    subjectId: uuid(parseId(subjectKind, order[subjectKind] ?? '')),
    withFiles: order.files,
    createdAt: new Date(order.requested_at),
  };
}
