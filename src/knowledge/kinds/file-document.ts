import { findVisibleFile } from '../../files/store.ts';
import { parseId } from '../../lib/ids.ts';
import { Type } from '../../lib/type.ts';
import { loadOwnerCaller } from '../../tenancy/callers.ts';
import { usePages } from '../../tenancy/quotas.ts';
import { findFirstDocument } from '../documents/store.ts';
import { DocumentDeleted, describeFailure, documentBytesMax } from '../ingestion/prepare.ts';
import type { IngestionRun } from '../ingestion/run.ts';
import type { IngestionError } from '../ingestion/store.ts';
import type { SourceRow } from '../sources/store.ts';
import type { SourceKind } from './kind.ts';
import { language, type Payload, schedule } from './payload.ts';

export const fileDocument: SourceKind = {
  type: 'file/document',
  label: 'File',
  description: 'One uploaded file; a pull reads it again.',
  payload: Type.Object({ file: Type.String({ description: 'fil_… (or as file_id)' }), schedule, language }),
  aliases: { file_id: 'file' },
  pushable: false,
  pull: { by: 'job', run: pullFile },
};

/** The file that a payload names, under either name. */
export function payloadFile(payload: Payload | null): unknown {
  return payload?.file ?? payload?.file_id;
}

/** Updates the document to the file's current content; an unchanged file is skipped. */
async function pullFile(run: IngestionRun, source: SourceRow): Promise<IngestionError | undefined> {
  const { db, blobs } = run.deps;
  const named = payloadFile(source.payload);
  const fileId = typeof named === 'string' ? parseId('file', named) : undefined;
  // A pull may read what the owner may currently read.
  const owner = await loadOwnerCaller(db, source);
  const file = fileId === undefined || !owner ? undefined : await findVisibleFile(db, owner, fileId);
  if (!file)
    return { code: 'not_found', message: 'The file does not exist or is not visible to the owner of the source.' };
  const old = await findFirstDocument(db, source.appId, source.id);
  if (old?.bytesHash.equals(file.checksum)) {
    run.stats.unchanged = 1;
    return undefined;
  }
  try {
    const ready = await run.prepare(source, {
      documentId: old?.id ?? null,
      bytes: Buffer.from(await blobs.readAll(file.blobKey, documentBytesMax)),
      isText: false,
      filename: file.filename,
      contentType: file.contentType,
      title: null,
      metadata: null,
      fileId: file.id,
    });
    await run.write(source, [ready], async (tx) => {
      if (await run.wasDeleted(tx)) throw new DocumentDeleted();
      await usePages(tx, source, 1);
    });
    return undefined;
  } catch (error) {
    const failure = describeFailure(error);
    if (!failure) throw error;
    return failure;
  }
}
