import type { Db } from '../db/database.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { type Owned, ownedVisible } from '../tenancy/visible.ts';

export type FailureReason = 'fetch_failed' | 'unsupported_content' | 'extraction_failed' | 'timeout' | 'internal_error';
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
  error: StoredError | null;
  fileId: string | null;
  createdAt: Date;
};

export type NewExtraction = Owned &
  Pick<
    ExtractionRow,
    'id' | 'kind' | 'state' | 'destinationKind' | 'destinationPath' | 'fileId' | 'url' | 'maxPages' | 'options'
  >;

export async function insertExtraction(db: Db, scope: Scope, extraction: NewExtraction): Promise<ExtractionRow> {
  const { options, ...columns } = extraction;
  const row = { ...columns, appId: scope.appId, sandboxId: scope.sandboxId, options: db.json(options as never) };
  const [inserted] = await db<[ExtractionRow]>`
    insert into extractions ${db(row as unknown as Record<string, string | null>)} returning *`;
  return inserted;
}

export async function findExtraction(db: Db, caller: Caller, id: string): Promise<ExtractionRow | undefined> {
  const [row] = await db<ExtractionRow[]>`
    select e.* from extractions e where e.id = ${id} and ${ownedVisible(db, caller, 'e')}`;
  return row;
}

export type NewOutput = Omit<OutputRow, 'appId' | 'createdAt'>;

export async function insertOutput(db: Db, appId: string, output: NewOutput): Promise<OutputRow> {
  const row = {
    ...output,
    appId,
    metadata: db.json(output.metadata as never),
    error: output.error === null ? null : db.json(output.error),
  };
  const [inserted] = await db<[OutputRow]>`
    insert into extraction_outputs ${db(row as unknown as Record<string, string | null>)} returning *`;
  return inserted;
}

export function listOutputs(db: Db, appId: string, extractionId: string): Promise<OutputRow[]> {
  return db<OutputRow[]>`select * from extraction_outputs
    where app_id = ${appId} and extraction_id = ${extractionId} order by ordinal`;
}
