import type { RecordKind } from './store.ts';

export type ProblemKind =
  | 'changed'
  | 'removed'
  | 'inserted'
  | 'moved'
  | 'segment_changed'
  | 'segment_removed'
  | 'signature'
  | 'head'
  | 'truncated';

export type Problem = {
  kind: ProblemKind;
  /** The ledger or the journal, such as `audit dap_… sbx_…` or `journal atr_…`. */
  chain: string;
  /** The record: an id, or for an entry of a journal its sequence. */
  record?: string;
  segment?: number;
  message: string;
};

export type Counts = {
  segments: number;
  records: number;
  runs: number;
  entries: number;
  /** The number of records that retention or a deletion removed, as a signed segment states. */
  removed: number;
  /** The number of records that no segment covers yet. */
  unsealed: number;
};

export type Position =
  | { phase: 'segments'; after: number }
  | { phase: 'records'; kind: RecordKind; after: string }
  | { phase: 'runs'; after: string };

/** The result of verifying from one position. `next` is undefined at the end. */
export type Verified = { problems: Problem[]; counts: Counts; next: Position | undefined };

export function noCounts(): Counts {
  return { segments: 0, records: 0, runs: 0, entries: 0, removed: 0, unsealed: 0 };
}
