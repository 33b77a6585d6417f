import type { GraphNode } from '../definitions/graph.ts';
import { findReferencedNodes } from '../engine/expressions.ts';
import type { RunJournal } from '../engine/run-journal.ts';
import type { SecretValues } from '../engine/secret-values.ts';
import { NodeFailure } from './kind.ts';

/**
 * Throws NodeFailure if the node reads an output that contained a secret which was deleted since: the node must not get
 * `[redacted]` instead. `own` are the unresolved members; `parent` is the execution around the node, if any.
 */
export function requireSecrets(
  node: GraphNode,
  own: Record<string, unknown>,
  parent: string | undefined,
  journal: RunJournal,
): void {
  if (journal.goneSecrets.size === 0) return;
  const text = JSON.stringify(own);
  const named = findReferencedNodes(text);
  const around = parent === undefined ? undefined : journal.state.active.get(parent)?.nodeId;
  for (const [nodeId, secret] of journal.goneSecrets) {
    const asks = !named || named.includes(nodeId) || (around === nodeId && text.includes('$item'));
    if (asks && nodeId !== node.id)
      throw new NodeFailure(
        'secret_gone',
        `The output of node "${nodeId}" contains the secret ${secret}, which no longer exists.`,
      );
  }
}

/** Throws NodeFailure if one of these members, which other runs receive and store, contains a secret. */
export function refuseHandedOnSecrets(
  names: readonly string[],
  members: Record<string, unknown>,
  secretValues: SecretValues,
): void {
  for (const name of names) {
    const [secret] = secretValues.namesIn(members[name]);
    if (secret !== undefined)
      throw new NodeFailure(
        'secret_handed_on',
        `The node's ${name} contains the secret ${secret}, which other runs would store. Use $secrets.${secret} in their graph instead.`,
      );
  }
}
