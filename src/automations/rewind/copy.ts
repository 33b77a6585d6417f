import { AppError, invalidField, requireJsonSize } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import { graphLimits } from '../definitions/graph.ts';
import { isDeeperThan } from '../engine/draft-entries.ts';
import type { DraftEntry, EntryMetadata, JournalEntry } from '../engine/journal.ts';
import type { SecretValues } from '../engine/secret-values.ts';

/** The entries that a new run keeps, ready to be written: with new sequences, and the places that they come from. */
export function copyEntries(
  kept: readonly JournalEntry[],
  { runId, open, now }: { runId: string; open: ReadonlySet<string>; now: Date },
): DraftEntry[] {
  const newSequences = new Map(kept.map(({ sequence }, index) => [sequence, index + 1]));
  return kept.map(({ sequence, record, ...entry }) => {
    const { signal_sequence: taken, ...metadata } = record.metadata ?? {};
    const copied: EntryMetadata = {
      ...metadata,
      ...(taken === undefined ? {} : { signal_sequence: newSequences.get(taken) ?? taken }),
      copied_from: { run: formatId('automationRun', runId), sequence },
    };
    // The time limits of the run, and of nodes that continue, count from now.
    const restarts = entry.type === 'run_started' || (entry.type === 'node_started' && open.has(entry.commandId ?? ''));
    return { ...entry, record: { ...record, metadata: copied, ...(restarts ? { timestamp: now.toISOString() } : {}) } };
  });
}

/**
 * Replaces the recorded outputs of these nodes: of each, the last one that is kept. Throws 422 and 409.
 * @param nodes the ids of the workflow's nodes, or of the steps of a program
 */
export function replaceOutputs(
  kept: readonly JournalEntry[],
  outputs: Readonly<Record<string, unknown>>,
  nodes: { has(id: string): boolean },
  secrets: SecretValues,
): JournalEntry[] {
  const replaced = new Map<number, unknown>();
  for (const [nodeId, output] of Object.entries(outputs)) {
    const field = `outputs.${nodeId}`;
    if (!nodes.has(nodeId)) throw invalidField(field, 'does not name a node of the workflow');
    const ends = kept.filter((entry) => entry.type === 'node_completed' && entry.nodeId === nodeId);
    const last = ends.at(-1);
    if (!last) throw invalidField(field, 'has no recorded output that the new run keeps');
    if (isNested(kept, last))
      throw invalidField(field, 'names a nested node: replace the output of the node around it');
    requireFits(field, output);
    replaced.set(last.sequence, output);
  }
  const first = Math.min(...replaced.keys());
  const approval = kept.find(({ sequence, record }) => sequence > first && record.metadata?.approval !== undefined);
  if (approval)
    throw new AppError(
      'rewind_refused',
      'The new run would keep an approval that was given after the replaced output. Continue from a node before it.',
      { details: { node: approval.nodeId ?? null, sequence: approval.sequence } },
    );
  return kept.map((entry) => {
    if (!replaced.has(entry.sequence)) return entry;
    const { value, places } = secrets.redact(replaced.get(entry.sequence) ?? null);
    const { redacted: _old, ...metadata } = entry.record.metadata ?? {};
    const more = { ...metadata, replaced: true, ...(places.length === 0 ? {} : { redacted: places }) };
    return { ...entry, record: { ...entry.record, payload: value, metadata: more } };
  });
}

function isNested(kept: readonly JournalEntry[], { commandId }: JournalEntry): boolean {
  const start = kept.find((entry) => entry.type === 'node_started' && entry.commandId === commandId);
  return start?.record.metadata?.parent_command_id !== undefined;
}

function requireFits(field: string, output: unknown): void {
  const { outputBytesMax, outputDepthMax } = graphLimits;
  if (isDeeperThan(output ?? null, outputDepthMax))
    throw invalidField(field, `must be nested at most ${outputDepthMax} deep`);
  requireJsonSize(field, output, outputBytesMax);
}
