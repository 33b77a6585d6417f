import type { Db } from '../../db/database.ts';
import { findVisibleFile } from '../../files/store.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { fieldId, unknownReference } from '../../tenancy/references.ts';
import { fileDocument, payloadFile } from '../kinds/file-document.ts';
import { checkPayload, findCreatableKind } from '../kinds/index.ts';
import { nextRun, type Payload, type UrlCheck } from '../kinds/payload.ts';

/** 422 on the members of a payload that its kind refuses, or on a file that the caller does not see. */
export async function checkConfiguration(
  db: Db,
  caller: Caller,
  { type, payload }: { type: string; payload: Payload },
  checkUrl: UrlCheck,
): Promise<void> {
  const kind = findCreatableKind(type);
  if (kind) checkPayload(kind, payload, checkUrl);
  const file = type === fileDocument.type ? payloadFile(payload) : undefined;
  if (typeof file !== 'string') return;
  const field = payload.file === undefined ? 'payload.file_id' : 'payload.file';
  if (!(await findVisibleFile(db, caller, fieldId('file', field, file)))) throw unknownReference(field);
}

/** When the next automatic pull is due; null for a paused source, a kind without pulls, or no schedule. */
export function dueAt(type: string, state: string, payload: Payload | null, now: Date): Date | null {
  if (state !== 'active' || findCreatableKind(type)?.pull === undefined) return null;
  return nextRun(payload?.schedule, now) ?? null;
}
