import { requireNodeScopes } from '../definitions/graph-scopes.ts';
import { findKind } from '../nodes/index.ts';
import { decide } from './decide.ts';
import { attemptOf, draftEnd, draftStart } from './draft-entries.ts';
import { evaluatePlainPath, type Scope } from './expressions.ts';
import type { DraftEntry } from './journal.ts';
import type { NodeInput } from './node-input.ts';
import type { RunJournal } from './run-journal.ts';

/**
 * Runs the pure nodes that follow an effect, so that their entries, and often the end of the run, are written in its
 * transaction. That transaction is open: nothing here takes long or uses the database. An expression that needs a
 * process and a node that fails are left for after the commit.
 */
export async function holdPureNodes(journal: RunJournal, input: NodeInput): Promise<void> {
  for (;;) {
    const entries = await runPureNode(journal, input).catch(() => undefined);
    if (entries === undefined || !journal.hold(entries)) return;
  }
}

/** The entries of the pure node that comes next; undefined if something else does. */
async function runPureNode(journal: RunJournal, input: NodeInput): Promise<DraftEntry[] | undefined> {
  const around = journal.entryContext();
  const next = decide(journal.graph, journal.state, around);
  const command = next.ended ? undefined : next.commands[0];
  if (command?.do !== 'start') return undefined;
  const { node } = command;
  const work = findKind(node.kind)?.work;
  if (work?.style !== 'pure') return undefined;
  const { members, shown } = await input.resolve(node, command, evaluatePath);
  requireNodeScopes(journal.row, node.kind, members);
  const output = work.run(members, { input: journal.state.input });
  const started = draftStart(command, around, { context: { input: shown } });
  return [started, ...draftEnd(node, attemptOf(command, around), output, journal.entryContext())];
}

async function evaluatePath(expression: string, scope: Scope): Promise<unknown> {
  const path = evaluatePlainPath(expression, scope);
  if (path === undefined) throw new Error('The expression is not a plain path.');
  return path.value;
}
