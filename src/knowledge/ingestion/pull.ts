import { findVisibleFile } from '../../files/store.ts';
import { parseId } from '../../ids.ts';
import { loadOwnerCaller } from '../../tenancy/callers.ts';
import { usePages } from '../../tenancy/quotas.ts';
import { findFirstDocument } from '../documents/store.ts';
import { payloadFile } from '../sources/kinds.ts';
import type { SourceRow } from '../sources/store.ts';
import { DocumentDeleted, describeFailure, documentBytesMax, type IngestionRun } from './run.ts';
import type { IngestionError } from './store.ts';

/**
 * Brings a file/document source's document to what its file is now; an unchanged file is left alone. Answers why the
 * file could not be read, or undefined. Safe to repeat. Pages on the web are pulled by crawls (crawl-sink.ts).
 */
export async function pullSource(run: IngestionRun, source: SourceRow): Promise<IngestionError | undefined> {
  if (source.type !== 'file/document')
    return { code: 'unsupported_content', message: 'This type of source has nothing to pull from.' };
  const { db, blobs } = run.deps;
  const named = payloadFile(source.payload);
  const fileId = typeof named === 'string' ? parseId('file', named) : undefined;
  // What a pull may read is what the owner may read now.
  const owner = await loadOwnerCaller(db, source);
  const file = fileId === undefined || !owner ? undefined : await findVisibleFile(db, owner, fileId);
  if (!file)
    return { code: 'not_found', message: 'The file does not exist, or the owner of the source may not see it.' };
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
    await run.write(source, ready, async (tx) => {
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
