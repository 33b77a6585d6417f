import type { Transaction } from '../../db/database.ts';
import { formatId } from '../../lib/ids.ts';
import { removeDocument } from '../index/indexing.ts';
import { lockIndex, type SourceKey } from '../index/store.ts';
import {
  ChangedMeanwhile,
  describeFailure,
  type PreparedInput,
  prepareInput,
  requireNext,
} from '../ingestion/prepare.ts';
import type { IngestionRun } from '../ingestion/run.ts';
import { addError, addWritten } from '../ingestion/stats.ts';
import { type IngestionError, insertPullRemoval } from '../ingestion/store.ts';
import type { SourceRow } from '../sources/store.ts';
import { deleteItemsOfDocument, deleteTombstone } from '../syncs/store.ts';
import * as store from './store.ts';

/** What an ingestion that restores has in its metadata. Other releases read it. */
export type RestoreOrder =
  | { document: string; restored_version: number }
  /** With `acls`, only the documents with one of these lists of grants, or with none. */
  | { restored_to: string; acls?: string[] };

const stepsBatch = 200;
const firstId = '00000000-0000-0000-0000-000000000000';

/**
 * Brings back a version of a document, or a source as it was. Each document is one transaction, after which it is no
 * longer among the steps: a restore that was killed continues where it stopped.
 */
export async function restoreVersions(
  run: IngestionRun,
  source: SourceRow,
  { metadata, startedAt }: { metadata: Record<string, unknown>; startedAt: Date },
): Promise<IngestionError | undefined> {
  const order = metadata as RestoreOrder;
  if ('document' in order) return restoreOne(run, source, order.document, order.restored_version);
  const restore: store.Restore = {
    ...{ appId: source.appId, sourceId: source.id },
    ...{ at: new Date(order.restored_to), until: startedAt, acls: order.acls },
  };
  const { unknown } = await store.countRestoreSteps(run.deps.db, restore);
  if (unknown > 0) run.note({ unknown });
  // Deletions first: they free the room and the ids that what comes back needs.
  for (const action of ['delete', 'change', 'create'] as const) {
    let after = firstId;
    for (;;) {
      const steps = await store.listRestoreSteps(run.deps.db, restore, action, after, stepsBatch);
      for (const step of steps) await takeStep(run, source, step);
      after = steps.at(-1)?.documentId ?? after;
      if (steps.length < stepsBatch) break;
    }
  }
  return undefined;
}

async function restoreOne(run: IngestionRun, source: SourceRow, documentId: string, number: number) {
  const { db } = run.deps;
  const [live] = await db`
    select from knowledge_documents where app_id = ${source.appId} and id = ${documentId}`;
  try {
    await writeBack(run, source, { documentId, action: live ? 'change' : 'create', target: number, current: null });
    return undefined;
  } catch (error) {
    return describe(error);
  }
}

/** Takes a step, unless somebody else has changed the document meanwhile. A failure is listed and stops nothing. */
async function takeStep(run: IngestionRun, source: SourceRow, step: store.RestoreStep): Promise<void> {
  try {
    if (step.action === 'delete') await deleteAgain(run, source, step);
    else await writeBack(run, source, step);
  } catch (error) {
    if (error instanceof ChangedMeanwhile) return;
    const failure = describe(error);
    addError(run.stats, { document: formatId('document', step.documentId), ...failure });
  }
}

function describe(error: unknown): IngestionError {
  if (error instanceof VersionGone) return { code: 'not_found', message: error.message };
  const failure = describeFailure(error);
  if (failure === undefined) throw error;
  return failure;
}

class VersionGone extends Error {
  constructor() {
    super('The version is no longer kept.');
  }
}

/** Makes a version the newest one. Its text is prepared and indexed like that of any document. */
async function writeBack(run: IngestionRun, source: SourceRow, step: store.RestoreStep): Promise<void> {
  const { documentId, action, target, current } = step;
  const key = { appId: source.appId, sourceId: source.id };
  const kept = await store.readKeptVersion(run.deps.db, key.appId, documentId, target ?? 0);
  const last = await store.findLastVersion(run.deps.db, key.appId, documentId);
  if (kept === undefined || last === undefined) throw new VersionGone();
  const aclId = action === 'create' ? last.aclId : undefined;
  const ready = await readBack(run, source, kept, aclId);
  await run.write(source, [{ ...ready, replaces: action === 'change' }], async (tx) => {
    if (action === 'create') await finishCreation(tx, key, kept);
    else if (current !== null) await requireNext(tx, key.appId, documentId, current);
    await record(run, tx, ready);
  });
}

function readBack(
  run: IngestionRun,
  source: SourceRow,
  kept: store.KeptVersion,
  aclId: string | null | undefined,
): Promise<PreparedInput> {
  const { documentId, title, metadata, contentType, fileId, bytesHash, sourceUrl, content, fragments } = kept;
  return prepareInput(run.deps, source, {
    ...{ documentId, title, metadata, contentType, fileId, bytesHash, sourceUrl, aclId },
    text: content.toString(),
    bytes: content.length,
    pages: 1,
    seenBy: null,
    truncated: undefined,
    reader: undefined,
    signal: run.signal,
    ...(fragments && { fragments }),
  });
}

async function finishCreation(tx: Transaction, key: SourceKey, { documentId, externalId }: store.KeptVersion) {
  const [row] = await tx<{ version: number }[]>`
    select version from knowledge_documents where app_id = ${key.appId} and id = ${documentId}`;
  // The row is new; otherwise, another restore was faster, and this one has written a version after it.
  if (row?.version !== 1) throw new ChangedMeanwhile();
  await store.continueVersions(tx, key, documentId);
  if (externalId !== null) await deleteTombstone(tx, key, externalId);
}

async function record(run: IngestionRun, tx: Transaction, ready: PreparedInput): Promise<void> {
  const stats = structuredClone(run.stats);
  addWritten(stats, ready);
  await run.recordStep(tx, stats);
}

async function deleteAgain(run: IngestionRun, source: SourceRow, step: store.RestoreStep): Promise<void> {
  const key = { appId: source.appId, sourceId: source.id };
  await run.commit(async (tx) => {
    await lockIndex(tx, key);
    const [row] = await tx<{ version: number; externalId: string | null; sourceUrl: string | null }[]>`
      select version, external_id, source_url from knowledge_documents
      where app_id = ${key.appId} and id = ${step.documentId}`;
    if (row?.version !== step.current) throw new ChangedMeanwhile();
    await insertPullRemoval(tx, key.appId, key.sourceId, row.externalId ?? row.sourceUrl);
    await deleteItemsOfDocument(tx, key, step.documentId);
    await removeDocument(tx, key, step.documentId);
    await run.recordStep(tx, { ...run.stats, removed: run.stats.removed + 1 });
  });
  run.stats.removed += 1;
}
