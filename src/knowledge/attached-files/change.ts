import type { Db, Transaction } from '../../db/database.ts';
import { findVisibleFiles } from '../../files/store.ts';
import { AppError, found } from '../../lib/errors.ts';
import { parseId } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { pathId } from '../../tenancy/references.ts';
import { lockIndex, type SourceKey } from '../index/store.ts';
import { documentBytesMax } from '../ingestion/prepare.ts';
import type { IngestService } from '../ingestion/service.ts';
import type { VisibleSource } from '../sources/find.ts';
import * as store from './store.ts';

/** The members of metadata that are strings, numbers or booleans. */
export type Attributes = Record<string, string | number | boolean>;

/** A file to attach, and the attributes of its document; undefined keeps the current ones. */
export type FileToAttach = { file: string; attributes?: Attributes | undefined };

/** Runs a change of the attachments of a source, one at a time. */
export function changeAttachments<T>(
  db: Db,
  source: VisibleSource,
  run: (tx: Transaction, key: SourceKey) => Promise<T>,
): Promise<T> {
  const key = { appId: source.appId, sourceId: source.id };
  return db.begin(async (tx) => {
    found(await lockIndex(tx, key));
    return run(tx, key);
  }) as Promise<T>;
}

/** Returns the ids of the files. Throws unless each is visible to the caller and small enough for a document. */
export async function requireFiles(db: Db, caller: Caller, files: readonly FileToAttach[]): Promise<string[]> {
  const ids = files.map(({ file }) => pathId('file', file));
  const visible = new Map((await findVisibleFiles(db, caller, ids)).map((row) => [row.id, row]));
  for (const id of ids) {
    const file = found(visible.get(id));
    if (file.size > documentBytesMax)
      throw new AppError('file_too_large', `Files may have at most ${documentBytesMax} bytes.`);
  }
  return ids;
}

/** Deletes failed attempts, after ending those that no process continues. Returns their number. */
export async function forgetFailed(
  tx: Transaction,
  ingestions: IngestService,
  key: SourceKey,
  files: readonly string[],
): Promise<number> {
  for (const id of await store.listStuckIngestions(tx, key, files)) await ingestions.cancel(tx, key.appId, id);
  return store.deleteFailedItems(tx, key, files);
}

/** The members of metadata that are not attributes: lists and objects. */
export function keptMembers(attachment: store.Attachment | undefined): Record<string, unknown> {
  const members = Object.entries(attachment?.metadata ?? {});
  return Object.fromEntries(members.filter(([, value]) => typeof value === 'object' && value !== null));
}

export function inProgress(): AppError {
  return new AppError('conflict', 'The file is being processed. Try again later.', {
    headers: { 'retry-after': '1' },
  });
}

export async function getAttachment(db: Db, caller: Caller, key: SourceKey, file: string): Promise<store.Attachment> {
  return found(await store.findAttachment(db, caller, key, file));
}

/** The UUID of an attachment: that of a file, or of a document without a file. */
export function attachedId(id: string): string {
  return found(parseId('file', id) ?? parseId('document', id));
}
