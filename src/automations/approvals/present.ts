import type { Static } from 'typebox';
import { compact, iso, presentSandboxId } from '../../http/route/present.ts';
import { formatId } from '../../lib/ids.ts';
import { type Caller, canSeeWholeApp } from '../../tenancy/caller.ts';
import type { approvalSchema, linkedApprovalSchema } from './schema.ts';
import type { ApprovalRow, LinkRow } from './store.ts';

export function presentApproval(caller: Caller, row: ApprovalRow): Static<typeof approvalSchema> {
  return {
    ...compact({
      id: formatId('approval', row.id),
      status: row.status,
      question: row.question,
      expires_at: row.expiresAt && iso(row.expiresAt),
      created_at: iso(row.createdAt),
      closed_at: row.closedAt && iso(row.closedAt),
      answered_by: row.answeredBy,
    }),
    form: row.form,
    ...(canSeeWholeApp(caller) ? presentWhole(row) : {}),
  };
}

/** What only callers see who see the whole app: the run, the audience and the answer. */
function presentWhole(row: ApprovalRow) {
  return {
    ...compact({
      app: formatId('app', row.appId),
      sandbox: presentSandboxId(row.sandboxId),
      run: formatId('automationRun', row.runId),
      automation: formatId('automation', row.automationId),
      node_id: row.nodeId,
      org: row.orgId && formatId('org', row.orgId),
      excluded_user: row.excludedUserId && formatId('user', row.excludedUserId),
    }),
    ...(row.status === 'answered' ? { answer: row.answer } : {}),
    users: row.users.map((id) => formatId('user', id)),
    teams: row.teams.map((id) => formatId('team', id)),
    roles: row.roles,
    ...(row.excludedUsers.length === 0 ? {} : { excluded_users: row.excludedUsers.map((id) => formatId('user', id)) }),
  };
}

export function presentLinked(row: ApprovalRow, link: LinkRow): Static<typeof linkedApprovalSchema> {
  const expiresAt = row.expiresAt !== null && row.expiresAt < link.expiresAt ? row.expiresAt : link.expiresAt;
  return {
    status: row.status,
    question: row.question,
    form: row.form,
    sent_to: link.sentTo,
    expires_at: iso(expiresAt),
  };
}
