import type { AutomationRun, WorkflowJournalEntry } from '../../api/generated.ts';

/** The state of one execution of a node, or of a node in the graph. */
export type NodeState = 'idle' | 'running' | 'waiting' | 'retrying' | 'done' | 'failed' | 'cancelled';

export type Waiting =
  | { kind: 'signal'; name: string; until?: string }
  | { kind: 'approval'; id: string; until?: string }
  | { kind: 'time'; until?: string }
  | { kind: 'child'; id: string }
  | { kind: 'retry'; until?: string };

export type Execution = {
  commandId: string;
  nodeId: string;
  /** The command of the node that contains this one, with the index in that node. */
  parent: string | undefined;
  index: number | undefined;
  state: NodeState;
  attempts: number;
  startedAt: string;
  endedAt: string | undefined;
  waits: Waiting | undefined;
  /** Runs, extractions and ingestions that the node has started. */
  children: string[];
  /** The responses in which a language model asked for calls of tools. */
  turns: { text: string; tool_calls: ToolCall[] }[];
  input: unknown;
  output: unknown;
  error: { code?: string; message?: string } | undefined;
};

/** A call that a model asked for; `error` if it was not made. */
export type ToolCall = { id: string; name: string; arguments: string; error?: { code: string; message: string } };

type RunState = {
  executions: Execution[];
  /** The latest execution of each node of the graph, outside of other nodes. */
  byNode: Map<string, Execution>;
};

const endings = ['completed', 'failed', 'cancelled'];
export const isOver = ({ status }: Pick<AutomationRun, 'status'>) => endings.includes(status);

/** What happened to each node, from the journal. In a run that has ended, no node is active. */
export function foldRun(entries: WorkflowJournalEntry[], run: Pick<AutomationRun, 'status'>): RunState {
  const byCommand = new Map<string, Execution>();
  for (const entry of entries) applyEntry(byCommand, entry);
  const executions = [...byCommand.values()];
  if (isOver(run))
    for (const one of executions)
      if (one.endedAt === undefined) {
        one.state = 'cancelled';
        one.endedAt = entries.at(-1)?.created_at;
        one.waits = undefined;
      }
  const byNode = new Map<string, Execution>();
  for (const one of executions) if (one.parent === undefined) byNode.set(one.nodeId, one);
  return { executions, byNode };
}

function applyEntry(byCommand: Map<string, Execution>, entry: WorkflowJournalEntry): void {
  const { type, node_id, command_id, record, created_at } = entry;
  if (node_id === undefined || command_id === undefined) return;
  const metadata = (record.metadata ?? {}) as Metadata;
  if (type === 'node_started') {
    const known = byCommand.get(command_id);
    const input = (record.context as { input?: unknown } | undefined)?.input ?? known?.input;
    if (known) Object.assign(known, { state: 'running', attempts: known.attempts + 1, waits: undefined, input });
    else
      byCommand.set(command_id, {
        ...{ commandId: command_id, nodeId: node_id, parent: metadata.parent_command_id, index: metadata.index },
        ...{ state: 'running', attempts: metadata.attempt ?? 1, startedAt: created_at, endedAt: undefined },
        ...{ waits: undefined, children: [], turns: [], input, output: undefined, error: undefined },
      });
    return;
  }
  const execution = byCommand.get(command_id);
  if (!execution) return;
  const payload = (record.payload ?? {}) as { name?: string; id?: string; approval?: string; fires_at?: string };
  const until = payload.fires_at === undefined ? {} : { until: payload.fires_at };
  switch (type) {
    case 'tool_calls_received':
      execution.turns.push(readTurn(record.payload));
      return;
    case 'timer_started':
      wait(execution, { kind: 'time', ...until });
      return;
    case 'signal_waiting':
      wait(
        execution,
        payload.approval === undefined
          ? { kind: 'signal', name: payload.name ?? '', ...until }
          : { kind: 'approval', id: payload.approval, ...until },
      );
      return;
    case 'child_run_started':
      if (payload.id !== undefined) execution.children.push(payload.id);
      wait(execution, { kind: 'child', id: payload.id ?? '' });
      return;
    case 'node_retry_scheduled':
      wait(execution, { kind: 'retry', ...until });
      execution.state = 'retrying';
      return;
    case 'node_completed':
      end(execution, 'done', created_at, { output: record.payload, error: undefined });
      return;
    case 'node_failed': {
      const error = record.payload as Execution['error'];
      if (metadata.will_retry) execution.error = error;
      else end(execution, 'failed', created_at, { error });
      return;
    }
    default:
  }
}

/** Who may not see the contents of the journal gets no payload. */
function readTurn(payload: unknown): Execution['turns'][number] {
  const { text = '', tool_calls = [] } = (payload ?? {}) as Partial<Execution['turns'][number]>;
  return { text, tool_calls };
}

type Metadata = { attempt?: number; parent_command_id?: string; index?: number; will_retry?: boolean };

function wait(execution: Execution, waits: Waiting): void {
  execution.state = 'waiting';
  execution.waits = waits;
}

function end(execution: Execution, state: NodeState, at: string, facts: Partial<Execution>): void {
  Object.assign(execution, { state, endedAt: at, waits: undefined, ...facts });
}

/** The status to show. A run that only waits is shown as waiting, as in lists. */
export function shownStatus(run: { status: string; waiting?: boolean }): string {
  return run.status === 'running' && run.waiting ? 'waiting' : run.status;
}
