import type { Db } from '../../db/database.ts';
import { emitEvent } from '../../events/emit.ts';
import { formatId, type IdKind, newUuid, parseId } from '../../lib/ids.ts';
import { limits } from '../../lib/limits.ts';
import { ExpressionError, type Expressions } from '../engine/expressions.ts';
import type { SecretValues } from '../engine/secret-values.ts';
import type { ApproveMembers } from '../nodes/approve.ts';
import { NodeFailure } from '../nodes/kind.ts';
import { type RunRow, treeOf } from '../runs/store.ts';
import * as store from './store.ts';

/** The form of an approval that names none. */
const defaultForm = {
  type: 'object',
  required: ['ok'],
  properties: {
    ok: { type: 'boolean', title: 'Approve' },
    comment: { type: 'string', title: 'Comment', maxLength: 10_000 },
  },
  additionalProperties: false,
};

const formBytesMax = limits.approvalFormBytesMax;

type Place = { nodeId: string; commandId: string; attempt: number; expiresAt: Date | null };

/** An approval that is ready to be written in the transaction of its `signal_waiting` entry. */
export type PreparedApproval = { id: string; write(tx: Db, now: Date): Promise<void> };

/**
 * Checks what an `approve` node asks, and whom. Throws NodeFailure. Secrets are redacted in the question and the form:
 * people read them outside the run.
 */
export async function prepareApproval(
  { db, expressions }: { db: Db; expressions: Expressions },
  run: RunRow,
  secrets: SecretValues,
  place: Place,
  members: ApproveMembers,
): Promise<PreparedApproval> {
  const form = secrets.redact(members.form ?? defaultForm).value as Record<string, unknown>;
  const question = secrets.redact(members.question).value as string;
  if (Buffer.byteLength(JSON.stringify(form)) > formBytesMax)
    throw invalid(`form is larger than ${formBytesMax} bytes`);
  try {
    await expressions.checkSchema(run.appId, form, {}, run.automationId);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw invalid(`form is not a valid JSON Schema: ${error.message.replace(/\.$/, '')}`);
  }
  const users = await known(db, run, 'user', members.users ?? []);
  const teams = await known(db, run, 'team', members.teams ?? []);
  const roles = members.roles ?? [];
  const [org] = members.org === undefined ? [] : await known(db, run, 'org', [members.org]);
  const orgId = org ?? run.orgId;
  if (roles.length > 0 && orgId === null) throw invalid('roles need org, because the automation belongs to none');
  const id = newUuid();
  return {
    id,
    async write(tx, now) {
      const { appId, sandboxId, automationId } = run;
      const isExcluding = members.exclude_invoker === true;
      const excludedUserId = isExcluding ? run.invokedByUserId : null;
      const excludedUsers = isExcluding ? await store.listInvokers(tx, run) : [];
      const more = { automationId, runId: run.id, ...place, excludedUserId, excludedUsers, createdAt: now };
      const audience = { users, teams, roles, orgId: roles.length > 0 ? orgId : null };
      await store.insertApproval(tx, { appId, id, sandboxId, question, form, ...audience, ...more });
      await announceApproval(tx, run, id, 'approval.requested', {
        ...{ question, node_id: place.nodeId },
        ...(place.expiresAt === null ? {} : { expires_at: place.expiresAt.toISOString() }),
      });
    },
  };
}

/** Emits an event about an approval. Of the users who see its automation, those who may answer it see the event. */
export async function announceApproval(
  tx: Db,
  run: RunRow,
  approvalId: string,
  name: 'approval.requested' | 'approval.answered',
  payload: Record<string, unknown>,
): Promise<void> {
  const { appId, sandboxId, orgId, teamId, userId } = run;
  const of = {
    approval: formatId('approval', approvalId),
    run: formatId('automationRun', run.id),
    automation: formatId('automation', run.automationId),
  };
  const owner = { orgId, teamId, userId, agentId: null };
  const cause = { depth: run.eventDepth + 1, treeId: treeOf(run) };
  const subject = { kind: 'approval', id: approvalId } as const;
  await emitEvent(tx, { appId, sandboxId, name, payload: { ...payload, ...of }, owner, subject, ...cause });
}

const tables = { user: 'users', team: 'teams', org: 'orgs' } as const;

async function known(db: Db, run: RunRow, kind: keyof typeof tables & IdKind, ids: readonly string[]) {
  const uuids = ids.map((id) => {
    const uuid = parseId(kind, id);
    if (uuid === undefined) throw invalid(`${tables[kind]}: ${JSON.stringify(id)} is not the id of a ${kind}`);
    return uuid;
  });
  if (uuids.length === 0) return [];
  const found = new Set(await store.filterKnown(db, run, tables[kind], uuids));
  const missing = ids.find((_id, index) => !found.has(uuids[index] ?? ''));
  if (missing !== undefined) throw invalid(`${tables[kind]}: there is no ${kind} ${missing}`);
  return [...new Set(uuids)];
}

function invalid(message: string): NodeFailure {
  return new NodeFailure('invalid_members', `The node's ${message}.`);
}
