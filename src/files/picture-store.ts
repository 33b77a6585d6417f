import type { Db } from '../db/database.ts';
import { sweepRows } from '../db/delete-batch.ts';
import type { PictureRequest } from './picture-request.ts';
import type { FileRow } from './store.ts';

type Contents = Pick<FileRow, 'appId' | 'sandboxId' | 'checksum'>;

/** How often the use of a picture is recorded, because each record is a write. */
const usedEveryHours = 1;

/** A cached picture of these contents; undefined without one. */
export async function findPicture(
  db: Db,
  { appId, sandboxId, checksum }: Contents,
  { width, format }: Pick<PictureRequest, 'width' | 'format'>,
): Promise<Buffer | undefined> {
  const where = db`app_id = ${appId} and sandbox_id = ${sandboxId} and checksum = ${checksum}
    and width = ${width} and format = ${format}`;
  const [row] = await db<{ bytes: Buffer; stale: boolean }[]>`
    select bytes, used_at < now() - make_interval(hours => ${usedEveryHours}) as stale from pictures where ${where}`;
  if (row?.stale) await db`update pictures set used_at = now() where ${where}`;
  return row?.bytes;
}

/** Caches a picture. Deletes the least recently used pictures of the app while they have more than `bytesMax` bytes. */
export async function insertPicture(
  db: Db,
  { appId, sandboxId, checksum }: Contents,
  { width, format }: Pick<PictureRequest, 'width' | 'format'>,
  bytes: Uint8Array,
  bytesMax: number,
): Promise<void> {
  await db.begin(async (tx) => {
    await tx`
      insert into pictures (app_id, sandbox_id, checksum, width, format, size, bytes)
      values (${appId}, ${sandboxId}, ${checksum}, ${width}, ${format}, ${bytes.byteLength}, ${Buffer.from(bytes)})
      on conflict do nothing`;
    await tx`
      delete from pictures p using (
        select ctid as place, sum(size) over (order by used_at desc, ctid) as bytes from pictures
        where app_id = ${appId}) kept
      where p.app_id = ${appId} and p.ctid = kept.place and kept.bytes > ${bytesMax}`;
  });
}

/** Deletes pictures that were not requested for `daysKept` days. */
export async function deleteUnusedPictures(db: Db, daysKept: number): Promise<void> {
  await sweepRows(db, { table: 'pictures', where: db`t.used_at < now() - make_interval(days => ${daysKept})` });
}
