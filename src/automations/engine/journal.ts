import type { RedactedPlace } from './secret-values.ts';

/** The entries of a run's journal: what happened, in order. The engine has no other state. */
const entryTypes = [
  'run_started',
  'node_started',
  'node_completed',
  'node_failed',
  'node_retry_scheduled',
  'tool_calls_received',
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
  /** Output, error or input, depending on the entry's type. */
  payload?: unknown;
  context?: Record<string, unknown>;
  environment?: Record<string, unknown>;
  metadata?: EntryMetadata;
  /** When it happened, in ISO 8601. */
  timestamp: string;
};

export type EntryMetadata = {
  attempt?: number;
  duration_ms?: number;
  /** Whether the failed attempt is retried. */
  will_retry?: boolean;
  /** For a nested node: the command of the node around it and its place in that node. */
  parent_command_id?: string;
  index?: number;
  /** The `signal_received` entry that a wait took. */
  signal_sequence?: number;
  /** The approval that the `signal_received` entry answers. */
  approval?: string;
  /** Whether the wait timed out and the run continues by `on_timeout`. */
  timed_out?: boolean;
  /** Positions of secrets in the payload. */
  redacted?: RedactedPlace[];
  [name: string]: unknown;
};

/** An entry that is not yet written. Its sequence is assigned when it is written. */
export type DraftEntry = {
  type: EntryType;
  nodeId?: string;
  commandId?: string;
  timerId?: string;
  record: EntryRecord;
};

export type JournalEntry = DraftEntry & { sequence: number };
