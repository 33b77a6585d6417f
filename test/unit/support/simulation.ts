import { type Graph, nestedNodes, readGraph } from '../../../src/automations/definitions/graph.ts';
import { type Command, decide } from '../../../src/automations/engine/decide.ts';
import {
  attemptOf,
  draftEnd,
  draftFailure,
  draftNodeEntry,
  draftStart,
  type EntryContext,
} from '../../../src/automations/engine/draft-entries.ts';
import {
  applyEntry,
  type Execution,
  emptyState,
  foldJournal,
  type RunState,
  timerDueAt,
} from '../../../src/automations/engine/fold.ts';
import type { DraftEntry, JournalEntry } from '../../../src/automations/engine/journal.ts';
import { nodeKinds } from '../../../src/automations/nodes/index.ts';
import type { NodeError } from '../../../src/automations/nodes/kind.ts';

/** A worker without a database: it carries out the engine's commands with the results that a test gives it. */
export class Simulation {
  graph: Graph;
  state: RunState = emptyState();
  journal: JournalEntry[] = [];
  nowMs = 1_000_000;
  /** How long the run has slept, each time. */
  waits: number[] = [];
  results = new Map<string, unknown>();
  /** Failures of a node's next attempts. */
  failures = new Map<string, NodeError[]>();
  items = new Map<string, unknown[]>();
  timeoutSeconds: number | undefined;
  journalEntriesMax: number | undefined;
  /** What is outside never answers. */
  stuck = false;
  resultOf: (execution: { nodeId: string; index: number }) => unknown = ({ nodeId }) =>
    this.results.has(nodeId) ? this.results.get(nodeId) : nodeId;
  onStep: () => void = () => {};
  #ids = 0;

  constructor(graph: unknown) {
    this.graph = readGraph(graph);
  }

  around(): EntryContext {
    return {
      nowMs: this.nowMs,
      input: {},
      timeoutSeconds: this.timeoutSeconds,
      ...(this.journalEntriesMax === undefined ? {} : { journalEntriesMax: this.journalEntriesMax }),
      newCommandId: () => `cmd_${++this.#ids}`,
      newTimerId: () => `tmr_${++this.#ids}`,
    };
  }

  advance(ms: number): void {
    this.nowMs += ms;
  }

  append(...entries: DraftEntry[]): void {
    for (const entry of entries) {
      const written = JSON.parse(JSON.stringify({ ...entry, sequence: this.journal.length + 1 })) as JournalEntry;
      this.journal.push(written);
      applyEntry(this.graph, this.state, written);
    }
  }

  /** Forgets everything but the journal, as a process that dies does. */
  crash(): void {
    this.state = foldJournal(this.graph, this.journal);
  }

  signal(name: string, payload: unknown): void {
    this.append({ type: 'signal_received', record: { payload: { name, payload }, timestamp: this.timestamp() } });
  }

  /** What the database does without the engine: the timer that the run sleeps for fires. False when it is none. */
  fire(wakeAtMs: number | undefined): boolean {
    const timer = timerDueAt(this.state, wakeAtMs);
    if (!timer || wakeAtMs === undefined) return false;
    this.nowMs = Math.max(this.nowMs, wakeAtMs);
    const payload = { fired_at: this.timestamp() };
    this.append(draftNodeEntry(timer, this.around(), 'timer_fired', { payload }));
    return true;
  }

  cancel(): void {
    this.append({ type: 'run_cancel_requested', record: { timestamp: this.timestamp() } });
    this.append({ type: 'run_cancelled', record: { timestamp: this.timestamp() } });
  }

  /** Executes commands until the run ends or waits; with `sleep` (the default) the waits pass immediately. */
  drive(options: { sleep?: boolean; newestFirst?: boolean } = {}): void {
    for (let steps = 0; steps < 100_000; steps++) {
      const decision = decide(this.graph, this.state, this.around());
      if (decision.ended) return;
      const able = decision.commands.filter((command) => this.#able(command));
      const command = options.newestFirst ? able.at(-1) : able[0];
      if (command) this.execute(command);
      else if (options.sleep !== false && decision.wakeAtMs !== undefined) {
        this.waits.push(decision.wakeAtMs - this.nowMs);
        this.nowMs = decision.wakeAtMs;
      } else return;
      this.onStep();
    }
    throw new Error('The simulation does not end.');
  }

  #able(command: Command): boolean {
    return !this.stuck || command.do === 'write' || command.do === 'start';
  }

  execute(command: Command): void {
    const around = this.around();
    if (command.do === 'write') this.append(...command.entries);
    else if (command.do === 'start') this.#start(command, around);
    else this.#work(command.execution, around, command.do === 'check');
  }

  #start(command: Extract<Command, { do: 'start' }>, around: EntryContext): void {
    const { node } = command;
    const attempt = attemptOf(command, around);
    const style = nodeKinds.get(node.kind)?.work.style;
    const payload =
      node.kind === 'for_each'
        ? { items: this.items.get(node.id) ?? [], concurrency: node.concurrency ?? 4 }
        : node.kind === 'parallel'
          ? { items: nestedNodes(node).map((inner) => inner.id) }
          : undefined;
    const started = draftStart(command, around, { payload });
    const fires = (seconds: unknown) => ({ fires_at: new Date(this.nowMs + Number(seconds) * 1_000).toISOString() });
    if (style === 'timer')
      this.append(started, {
        ...draftNodeEntry(attempt, around, 'timer_started', { payload: fires(node.seconds) }),
        timerId: around.newTimerId(),
      });
    else if (style === 'signal')
      this.append(
        started,
        draftNodeEntry(attempt, around, 'signal_waiting', {
          payload: { name: node.name, ...(node.timeout_seconds === undefined ? {} : fires(node.timeout_seconds)) },
        }),
      );
    else if (style === 'child')
      this.append(started, draftNodeEntry(attempt, around, 'child_run_started', { payload: { kind: 'run', id: 'x' } }));
    else if (style === 'external' || style === 'prepared' || style === 'fan-out') this.append(started);
    else this.append(started, ...this.#end(attempt, command.index, around));
  }

  #work(execution: Execution, around: EntryContext, child: boolean): void {
    const ended = child ? [draftNodeEntry(execution, around, 'child_run_ended', {})] : [];
    this.append(...ended, ...this.#end(execution, execution.index, around));
  }

  #end(
    attempt: Pick<Execution, 'commandId' | 'nodeId' | 'attempt' | 'startedAtMs'>,
    index: number,
    around: EntryContext,
  ): DraftEntry[] {
    const node = this.graph.nodes.get(attempt.nodeId);
    if (!node) throw new Error('no node');
    const failure = this.failures.get(attempt.nodeId)?.shift();
    return failure
      ? draftFailure(node, attempt, failure, around)
      : draftEnd(node, attempt, this.resultOf({ nodeId: attempt.nodeId, index }), around);
  }

  timestamp(): string {
    return new Date(this.nowMs).toISOString();
  }

  last(): JournalEntry {
    const entry = this.journal.at(-1);
    if (!entry) throw new Error('The journal is empty.');
    return entry;
  }

  types(): string[] {
    return this.journal.map((entry) => (entry.nodeId === undefined ? entry.type : `${entry.type} ${entry.nodeId}`));
  }
}
