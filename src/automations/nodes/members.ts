import { formatId } from '../../lib/ids.ts';
import { limits } from '../../lib/limits.ts';
import {
  findMemberProblem,
  type GraphNode,
  graphLimits,
  nestedNodes,
  ownMembers,
  unwrapExpression,
} from '../definitions/graph.ts';
import { type Attempt, draftNodeEntry, type EntryContext } from '../engine/draft-entries.ts';
import type { Scope } from '../engine/expressions.ts';
import { itemOf, type RunState } from '../engine/fold.ts';
import type { DraftEntry } from '../engine/journal.ts';
import type { RunJournal } from '../engine/run-journal.ts';
import { redactedText, type SecretValues } from '../engine/secret-values.ts';
import { redactHeaders, referencesSecrets, resolveTemplates } from '../engine/template.ts';
import { findKind } from './index.ts';
import { NodeFailure } from './kind.ts';
import { refuseHandedOnSecrets, requireSecrets } from './secrets.ts';
import { callAt } from './tool-turns.ts';

/** Where a node runs: at the top level, or at an index of the execution `parent`. */
export type Place = { parent: string | undefined; index: number };

/**
 * Resolves the templates in a node's members. Returns them with the copy that the journal may show. Throws NodeFailure
 * and ExpressionError.
 */
export async function resolveMembers(
  node: GraphNode,
  place: Place,
  run: {
    journal: RunJournal;
    secrets: Readonly<Record<string, string>>;
    secretValues: SecretValues;
    evaluate(expression: string, scope: Scope): Promise<unknown>;
  },
): Promise<{ members: Record<string, unknown>; shown: Record<string, unknown> }> {
  const { row, state } = run.journal;
  const kind = findKind(node.kind);
  const own = ownMembers(node);
  requireSecrets(node, own, place.parent, run.journal);
  const scope: Scope = {
    input: state.input,
    nodes: state.outputs,
    participants: row.participants ?? {},
    run: {
      id: formatId('automationRun', row.id),
      automation: formatId('automation', row.automationId),
      created_at: row.createdAt.toISOString(),
    },
    secrets: run.secrets,
    ...(itemOf(state, place.parent, place.index) ?? {}),
  };
  const { membersCharactersMax: charactersMax } = graphLimits;
  let characters = 0;
  const evaluate = async (expression: string) => {
    const value = await run.evaluate(expression, scope);
    characters += typeof value === 'string' ? value.length : (JSON.stringify(value)?.length ?? 0);
    if (characters > charactersMax)
      throw new NodeFailure(
        'members_too_large',
        `The node's expressions select more than ${charactersMax} characters.`,
      );
    return value;
  };
  const members: Record<string, unknown> = {};
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(own)) {
    if (kind?.expressions?.includes(name)) {
      members[name] = (await evaluate(unwrapExpression(String(value)))) ?? null;
      shown[name] = referencesSecrets(String(value)) ? redactedText : members[name];
    } else {
      const resolved = await resolveTemplates(value, evaluate);
      // A template that selects nothing omits an optional member, unless null means something there.
      const mayBeNull = kind?.members.required?.includes(name) || kind?.nullable?.includes(name);
      const stays = resolved.value !== null || value === null || mayBeNull;
      if (stays) members[name] = resolved.value;
      shown[name] = resolved.shown;
    }
  }
  giveArguments(node, place, run.journal.state, members, shown);
  const problem = findMemberProblem(node.kind, members);
  if (problem !== undefined) throw new NodeFailure('invalid_members', `The node's ${problem}.`);
  refuseHandedOnSecrets(kind?.handedOn ?? [], members, run.secretValues);
  return { members, shown: redactHeaders(shown) as Record<string, unknown> };
}

/** Adds what the model gives to a node that its call runs as. What the graph states stays. Never a template. */
function giveArguments(
  node: GraphNode,
  { parent, index }: Place,
  { active }: RunState,
  members: Record<string, unknown>,
  shown: Record<string, unknown>,
): void {
  const generation = parent === undefined ? undefined : active.get(parent)?.generation;
  const call = generation && callAt(generation, index);
  if (call === undefined) return;
  const given = JSON.parse(call.arguments === '' ? '{}' : call.arguments) as Record<string, unknown>;
  if (node.kind === 'approve') {
    members.question = `${members.question}\n\n${call.name} ${visibleJson(given)}`;
    shown.question = members.question;
    const charactersMax = limits.approvalQuestionCharactersMax;
    // Nobody approves what they are not shown.
    if (String(members.question).length > charactersMax)
      throw new NodeFailure(
        'arguments_too_long',
        `People must approve this call, and are shown at most ${charactersMax} characters of it: its arguments are longer.`,
      );
    return;
  }
  const member = node.kind === 'run_automation' ? 'payload' : 'arguments';
  for (const each of [members, shown]) each[member] = { ...given, ...(each[member] as Record<string, unknown>) };
}

/** JSON in which every character can be seen: some change the order of others, or how they look. */
function visibleJson(value: unknown): string {
  return JSON.stringify(value).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escapeUnits);
}

function escapeUnits(character: string): string {
  return Array.from({ length: character.length }, (_, at) => {
    const unit = character.charCodeAt(at).toString(16).padStart(4, '0');
    return `\\u${unit}`;
  }).join('');
}

/** The stored state of a fan-out: its items. JSONata returns a list of one as a single value. */
export function fanOutPayload(node: GraphNode, members: Record<string, unknown>): Record<string, unknown> {
  if (node.kind === 'parallel') return { items: nestedNodes(node).map((inner) => inner.id) };
  const { items: value } = members;
  const items = value === null || value === undefined ? [] : Array.isArray(value) ? value : [value];
  if (items.length > graphLimits.itemsMax)
    throw new NodeFailure('too_many_items', `There are ${items.length} items; ${graphLimits.itemsMax} are allowed.`);
  if (Buffer.byteLength(JSON.stringify(items)) > graphLimits.outputBytesMax)
    throw new NodeFailure('items_too_large', `The items are larger than ${graphLimits.outputBytesMax} bytes.`);
  return { items, concurrency: members.concurrency ?? 4 };
}

/** The stored state of a wait for a signal: its name or approval, and its deadline. */
export function signalEntry(
  node: GraphNode,
  awaited: { name: unknown; approval?: string },
  attempt: Attempt,
  around: EntryContext,
): DraftEntry {
  const { name, approval } = awaited;
  const expiresAt = expiryOf(node, around);
  const payload = {
    name,
    ...(approval === undefined ? {} : { approval }),
    ...(expiresAt === null ? {} : { fires_at: expiresAt.toISOString() }),
  };
  const entry = draftNodeEntry(attempt, around, 'signal_waiting', { payload });
  return expiresAt === null ? entry : { ...entry, timerId: around.newTimerId() };
}

/** When a node's wait for a signal or an approval that starts now ends; null without a limit. */
export function expiryOf(node: GraphNode, { nowMs }: EntryContext): Date | null {
  return node.timeout_seconds === undefined ? null : new Date(nowMs + node.timeout_seconds * 1_000);
}
