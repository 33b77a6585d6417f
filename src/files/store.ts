import type { Db } from '../db/database.ts';
import type { Caller } from '../tenancy/caller.ts';
import { fileGranted, inScope, ownedVisible } from '../tenancy/visible.ts';

export type FileRow = {
  appId: string;
  id: string;
  sandboxId: string;
  filename: string;
  contentType: string;
  size: number;
  checksum: Buffer;
  blobKey: string;
  width: number | null;
  height: number | null;
  shared: boolean;
  providerMetadata: Record<string, unknown>;
  orgId: string | null;
  teamId: string | null;
  userId: string | null;
  agentId: string | null;
  createdAt: Date;
  updatedAt: Date;
};

export type NewFile = Omit<FileRow, 'createdAt' | 'updatedAt' | 'providerMetadata'>;

export async function insertFile(db: Db, file: NewFile): Promise<FileRow> {
  const [row] = await db<[FileRow]>`
    insert into files ${db(
      file,
      'appId',
      'id',
      'sandboxId',
      'filename',
      'contentType',
      'size',
      'checksum',
      'blobKey',
      'width',
      'height',
      'shared',
      'orgId',
      'teamId',
      'userId',
      'agentId',
    )} returning *`;
  return row;
}

/** A file that the caller sees, by ownership or by a grant. */
export async function findVisibleFile(db: Db, caller: Caller, id: string): Promise<FileRow | undefined> {
  const [row] = await db<FileRow[]>`
    select f.* from files f where f.id = ${id} and ${inScope(db, caller, 'f')}
      and ((${ownedVisible(db, caller, 'f')}) or ${fileGranted(db, caller, 'f', 'read')})`;
  return row;
}

/** A file of an app whoever asks: for links that carry their own proof. */
export async function findFile(db: Db, appId: string, id: string): Promise<FileRow | undefined> {
  const [row] = await db<FileRow[]>`select * from files where app_id = ${appId} and id = ${id}`;
  return row;
}

/** Several files of an app, for answers that embed whole files. */
export function listFilesById(db: Db, appId: string, ids: readonly string[]): Promise<FileRow[]> {
  return db<FileRow[]>`select * from files where app_id = ${appId} and id = any(${[...ids]}::uuid[])`;
}

export async function deleteFile(db: Db, appId: string, id: string): Promise<boolean> {
  const gone = await db`delete from files where app_id = ${appId} and id = ${id}`;
  return gone.count > 0;
}
