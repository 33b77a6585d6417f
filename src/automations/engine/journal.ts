import type { RedactedPlace } from './secret-values.ts';

/** The entries of a run's journal: what happened, in order, and the only state the engine has. */
const entryTypes = [
  'run_started',
  'node_started',
  'node_completed',
  'node_failed',
  'node_retry_scheduled',
  'timer_started',
  'timer_fired',
  'signal_waiting',
  'signal_received',
  'signal_timed_out',
  'child_run_started',
  'child_run_ended',
  'run_cancel_requested',
  'run_completed',
  'run_failed',
  'run_cancelled',
] as const;
type EntryType = (typeof entryTypes)[number];

export type EntryRecord = {
  /** Output, error or input, by the entry's type. */
  payload?: unknown;
  context?: Record<string, unknown>;
  environment?: Record<string, unknown>;
  metadata?: EntryMetadata;
  /** ISO 8601, when it happened. */
  timestamp: string;
};

export type EntryMetadata = {
  attempt?: number;
  duration_ms?: number;
  /** A failed attempt that is tried again. */
  will_retry?: boolean;
  /** Of a node inside another: the command of that other and its place in it. */
  parent_command_id?: string;
  index?: number;
  /** The `signal_received` entry that a wait has taken. */
  signal_sequence?: number;
  /** A wait that ended by its time and goes on by `on_timeout`. */
  timed_out?: boolean;
  /** Where secrets stood in the payload. */
  redacted?: RedactedPlace[];
  [name: string]: unknown;
};

/** An entry that is not yet written: its place in the journal is given when it is. */
export type DraftEntry = {
  type: EntryType;
  nodeId?: string;
  commandId?: string;
  timerId?: string;
  record: EntryRecord;
};

export type JournalEntry = DraftEntry & { sequence: number };
