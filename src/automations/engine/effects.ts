import type { Database, Db } from '../../db/database.ts';
import type { GraphNode } from '../definitions/graph.ts';
import { requireNodeScopes } from '../definitions/graph-scopes.ts';
import { findKind } from '../nodes/index.ts';
import { NodeFailure, type NodeKind } from '../nodes/kind.ts';
import type { JobControls } from './advance-deps.ts';
import { decide } from './decide.ts';
import { type Attempt, type AttemptStart, attemptOf, draftEnd, draftStart } from './draft-entries.ts';
import { evaluatePlainPath, type Scope } from './expressions.ts';
import type { DraftEntry } from './journal.ts';
import type { NodeInput } from './node-input.ts';
import { JournalConflict, type RunJournal } from './run-journal.ts';

/** How long an effect that has joined a transaction waits for a lock. */
const sharedLockTimeoutMs = 50;

/** A transaction of several effects has failed. Nothing was written: read the journal again. */
export class SharedFailure extends Error {}

/** An effect and its start. */
type Effect = { node: GraphNode; attempt: Attempt; started: DraftEntry; run(tx: Db): Promise<unknown> };

type EffectsDeps = Pick<JobControls, 'signal' | 'giveWay'> & { db: Database; journal: RunJournal; input: NodeInput };

/** A node that comes next, with its members. */
type Next = {
  command: AttemptStart;
  node: GraphNode;
  work: NodeKind['work'];
  members: Record<string, unknown>;
  started: DraftEntry;
  attempt: Attempt;
};

/**
 * Writes effects with their entries. The nodes that come next and need nothing but plain paths join the transaction:
 * pure ones, and further effects. If one of several effects fails, or waits for a lock, all of them are done again, each
 * in a transaction of its own. So a failure undoes no other effect, and none keeps its locks for long.
 */
export class Effects {
  readonly #deps: EffectsDeps;
  readonly #journal: RunJournal;
  /** Whether one of several effects has failed. */
  #areApart = false;

  constructor(deps: EffectsDeps) {
    this.#deps = deps;
    this.#journal = deps.journal;
  }

  /** Throws SharedFailure, or the error of this effect alone. */
  async write({ node, attempt, started, run }: Effect): Promise<void> {
    let isShared = false;
    const share = () => {
      isShared = true;
    };
    try {
      await this.#deps.db.begin(async (tx) => {
        if (isShared) throw new Error('A transaction of several effects is not repeated.');
        const output = await run(tx);
        const hasRoom = this.#journal.hold([started, ...this.endOf(node, attempt, output)]);
        if (hasRoom) await this.#holdNext(tx, share);
        await this.#journal.append([], tx);
      });
    } catch (error) {
      if (!isShared || error instanceof JournalConflict) throw error;
      this.#areApart = true;
      throw new SharedFailure('A transaction of several effects failed.', { cause: error });
    }
  }

  /** Drafts the end of a node. If its output exceeds a limit, throws, which also rolls back the node's effect. */
  endOf(node: GraphNode, attempt: Attempt, output: unknown): DraftEntry[] {
    const ends = draftEnd(node, attempt, output, this.#journal.entryContext());
    if (ends[0]?.type === 'node_failed') throw new NodeFailure('output_too_large', 'The output is too large.');
    return ends;
  }

  /**
   * Runs the nodes that come next, until as many entries are held back as may be, or for as long as they may be. The
   * transaction is open, and keeps its locks until then, so nothing here takes long.
   */
  async #holdNext(tx: Db, share: () => void): Promise<void> {
    for (let entries: DraftEntry[] | undefined; ; ) {
      const next = await this.#findNext().catch(() => undefined);
      if (next?.work.style === 'pure') entries = this.#runPure(next, next.work);
      else if (next?.work.style === 'effect' && this.#mayJoin()) {
        share();
        entries = await this.#join(tx, next, next.work);
      } else return;
      if (entries === undefined || !this.#journal.hold(entries)) return;
    }
  }

  #mayJoin(): boolean {
    const { signal, giveWay } = this.#deps;
    return !this.#areApart && !signal.aborted && giveWay() === undefined;
  }

  /** The node that comes next, if its members select only plain paths: any other expression needs a process. */
  async #findNext(): Promise<Next | undefined> {
    const journal = this.#journal;
    const around = journal.entryContext();
    const decision = decide(journal.graph, journal.state, around);
    const command = decision.ended ? undefined : decision.commands[0];
    if (command?.do !== 'start') return undefined;
    const { node } = command;
    const work = findKind(node.kind)?.work;
    if (work === undefined || (work.style !== 'pure' && work.style !== 'effect')) return undefined;
    const { members, shown } = await this.#deps.input.resolve(node, command, evaluatePath);
    requireNodeScopes(journal.row, node.kind, members);
    const started = draftStart(command, around, { context: { input: shown } });
    return { command, node, work, members, started, attempt: attemptOf(command, around) };
  }

  /** The entries of a pure node; undefined if it fails, which is left for after the commit. */
  #runPure({ node, members, started, attempt }: Next, work: Extract<NodeKind['work'], { style: 'pure' }>) {
    try {
      const output = work.run(members, { input: this.#journal.state.input });
      return [started, ...draftEnd(node, attempt, output, this.#journal.entryContext())];
    } catch {
      return undefined;
    }
  }

  /** Runs one more effect in the transaction. It may wait for another one that holds what it needs, but not for long. */
  async #join(
    tx: Db,
    { command, node, members, started, attempt }: Next,
    work: Extract<NodeKind['work'], { style: 'effect' }>,
  ): Promise<DraftEntry[]> {
    const context = await this.#deps.input.context(command);
    const [, output] = await Promise.all([
      tx`select set_config('lock_timeout', ${`${sharedLockTimeoutMs}ms`}, true)`,
      work.run<Db>(tx, members, context),
    ]);
    return [started, ...this.endOf(node, attempt, output)];
  }
}

async function evaluatePath(expression: string, scope: Scope): Promise<unknown> {
  const path = evaluatePlainPath(expression, scope);
  if (path === undefined) throw new Error('The expression is not a plain path.');
  return path.value;
}
