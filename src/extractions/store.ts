/*
 * Triggers of extractions: extractions_created and extractions_ended emit an event when an extraction has ended.
 */
import type { OcrReport, PageReport } from '../content/parse/types.ts';
import { deleteCrawl } from '../crawls/store.ts';
import type { Progress } from '../crawls/types.ts';
import type { Db, Transaction } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { matchesSeen, type Owned, ownedVisible } from '../tenancy/visible.ts';

type FailureReason = 'fetch_failed' | 'unsupported_content' | 'extraction_failed' | 'timeout' | 'internal_error';
export type StoredError = { code: string; message: string };

export type ExtractionRow = Owned & {
  appId: string;
  id: string;
  sandboxId: string;
  kind: 'document' | 'link' | 'site';
  state: 'running' | 'done' | 'failed';
  destinationKind: 'config' | 'storage';
  destinationPath: string | null;
  fileId: string | null;
  url: string | null;
  maxPages: number | null;
  options: Record<string, unknown>;
  failureReason: FailureReason | null;
  error: StoredError | null;
  version: number;
  /** The tree of the run that started the extraction, and the depth of its events. */
  causeTreeId: string | null;
  causeDepth: number;
  /** The number of pages of a link or site; null for a document. */
  discovered: number | null;
  done: number | null;
  failed: number | null;
  waiting: number | null;
  /** The number of finished outputs, and the size of their text in bytes when they were written. */
  outputCount: number;
  outputBytes: number;
  /**
   * With a schema: the numbers of outputs that wait for data, have data or failed, and of the pieces of their texts.
   * Otherwise null.
   */
  dataPending: number | null;
  dataDone: number | null;
  dataFailed: number | null;
  dataPieces: number | null;
  dataPiecesDone: number | null;
  /** Tokens that the language model used. */
  tokens: number;
  requests: number;
  createdAt: Date;
  updatedAt: Date;
};

export type OutputRow = {
  appId: string;
  id: string;
  extractionId: string;
  ordinal: number;
  state: 'done' | 'failed';
  sourceUrl: string | null;
  title: string | null;
  metadata: Record<string, unknown>;
  /** Metadata of the text; null for a failed output. */
  page: (Partial<PageReport> & { ocr?: OcrReport; truncated: boolean }) | null;
  error: StoredError | null;
  fileId: string | null;
  createdAt: Date;
};

type NewExtraction = Owned &
  Pick<
    ExtractionRow,
    'id' | 'kind' | 'state' | 'destinationKind' | 'destinationPath' | 'fileId' | 'url' | 'maxPages' | 'options'
  > &
  Partial<
    Pick<
      ExtractionRow,
      'outputCount' | 'outputBytes' | 'dataPending' | 'dataDone' | 'dataFailed' | 'dataPieces' | 'dataPiecesDone'
    >
  >;

export async function insertExtraction(db: Db, scope: Scope, extraction: NewExtraction): Promise<ExtractionRow> {
  const { options, ...columns } = extraction;
  const row = { ...columns, appId: scope.appId, sandboxId: scope.sandboxId, options: db.json(options as never) };
  return db<[ExtractionRow]>`
    insert into extractions ${db(row as unknown as Record<string, string | null>)} returning *`.first();
}

export async function findExtraction(db: Db, caller: Caller, id: string): Promise<ExtractionRow | undefined> {
  return db<ExtractionRow[]>`
    select e.* from extractions e where e.id = ${id} and ${ownedVisible(db, caller, 'e')}`.first();
}

/** The ids of the extractions that the caller may see. */
export async function filterVisibleExtractions(db: Db, caller: Caller, ids: readonly string[]): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select e.id from extractions e where e.id = any(${[...ids]}::uuid[]) and ${ownedVisible(db, caller, 'e')}`;
  return rows.map(({ id }) => id);
}

export function listOutputs(db: Db, appId: string, extractionId: string): Promise<OutputRow[]> {
  return db<OutputRow[]>`select * from extraction_outputs
    where app_id = ${appId} and extraction_id = ${extractionId} order by ordinal`;
}

type NewOutput = Omit<OutputRow, 'appId' | 'createdAt'> & { name: string | null };

export async function insertOutputs(db: Db, appId: string, outputs: readonly NewOutput[]): Promise<void> {
  const column = <K extends keyof NewOutput>(key: K) => outputs.map((output) => output[key]);
  await db`
    insert into extraction_outputs (app_id, id, extraction_id, ordinal, state, source_url, title, metadata, page, error, file_id, name)
    select ${appId}, given.* from unnest(${column('id')}::uuid[], ${column('extractionId')}::uuid[],
      ${column('ordinal')}::integer[], ${column('state')}::text[], ${column('sourceUrl')}::text[], ${column('title')}::text[],
      ${outputs.map((output) => JSON.stringify(output.metadata))}::text[]::jsonb[],
      ${outputs.map((output) => (output.page === null ? null : JSON.stringify(output.page)))}::text[]::jsonb[],
      ${outputs.map((output) => (output.error === null ? null : JSON.stringify(output.error)))}::text[]::jsonb[],
      ${column('fileId')}::uuid[], ${column('name')}::text[]) as given`;
}

/** Locks and returns the row of a running extraction, or undefined if it was deleted or has ended. */
export async function lockRunningExtraction(
  tx: Transaction,
  appId: string,
  id: string,
): Promise<ExtractionRow | undefined> {
  return tx<ExtractionRow[]>`
    select * from extractions where app_id = ${appId} and id = ${id} and state = 'running' for update`.first();
}

export async function updateProgress(
  tx: Db,
  appId: string,
  id: string,
  progress: Progress,
  written: { outputs: number; bytes: number },
): Promise<void> {
  await tx`
    update extractions set discovered = ${progress.discovered}, done = ${progress.done}, failed = ${progress.failed},
      waiting = ${progress.waiting}, output_count = output_count + ${written.outputs}, output_bytes = output_bytes + ${written.bytes},
      version = version + 1, updated_at = now()
    where app_id = ${appId} and id = ${id}`;
}

export async function endExtraction(
  tx: Transaction,
  appId: string,
  id: string,
  state: 'done' | 'failed',
  failure: { reason: FailureReason; code: string; message: string } | undefined,
): Promise<void> {
  const error = failure === undefined ? null : tx.json({ code: failure.code, message: failure.message });
  await tx`
    update extractions set state = ${state}, failure_reason = ${failure?.reason ?? null}, error = ${error},
      version = version + 1, updated_at = now()
    where app_id = ${appId} and id = ${id} and state = 'running'`;
}

export async function deleteExtraction(db: Db, appId: string, id: string): Promise<void> {
  await db`delete from extractions where app_id = ${appId} and id = ${id}`;
}

/** Deletes those of these extractions that have ended, with what their crawls found. Their files are kept. */
export async function deleteEndedExtractions(db: Db, appId: string, ids: readonly string[]): Promise<number> {
  const gone = await db<{ id: string }[]>`
    delete from extractions where app_id = ${appId} and id = any(${[...ids]}::uuid[]) and state <> 'running'
    returning id`;
  for (const { id } of gone) await deleteCrawl(db, appId, id);
  return gone.length;
}

type ExtractionFilter = { kind?: string | undefined; state?: string | undefined; agentId?: string | undefined };

/** Lists the extractions that the caller may see, newest first, with the total. */
export async function listExtractions(
  db: Db,
  caller: Caller,
  filter: ExtractionFilter,
  page: PageRequest,
): Promise<[ExtractionRow[], number]> {
  const where = db`${ownedVisible(db, caller, 'e')}
    ${filter.kind === undefined ? db`` : db`and e.kind = ${filter.kind}`}
    ${filter.state === undefined ? db`` : db`and e.state = ${filter.state}`}
    ${filter.agentId === undefined ? db`` : db`and ${matchesSeen(db, caller, 'agent', 'e.agent_id', [filter.agentId])}`}`;
  return readWithTotal(
    db<ExtractionRow[]>`
      select e.* from extractions e where ${where}
      order by e.created_at desc, e.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from extractions e where ${where}`,
  );
}

/** These extractions of one app, without a visibility check: for streams that were authorized when they were opened. */
export function listExtractionsById(db: Db, appId: string, ids: readonly string[]): Promise<ExtractionRow[]> {
  return db<ExtractionRow[]>`select * from extractions where app_id = ${appId} and id = any(${[...ids]}::uuid[])`;
}
