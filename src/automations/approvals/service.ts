import type { Static } from 'typebox';
import type { Database, Db } from '../../db/database.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, found, invalidField, notFound, requireJsonSize } from '../../lib/errors.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import { limits } from '../../lib/limits.ts';
import { type Caller, canSeeWholeApp } from '../../tenancy/caller.ts';
import { type Credential, requirePerson } from '../../tenancy/credential.ts';
import { fieldId, pathId } from '../../tenancy/references.ts';
import { requireRoom } from '../../tenancy/room.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import type { Expressions } from '../engine/expressions.ts';
import { requireShape } from '../runs/payload.ts';
import * as runStore from '../runs/store.ts';
import { readLinkToken, writeLinkToken } from './links.ts';
import { announceApproval } from './request.ts';
import type { linkCreateSchema, listApprovalsQuery } from './schema.ts';
import type { ApprovalRow, LinkRow } from './store.ts';
import * as store from './store.ts';

type ApprovalDeps = { db: Database; clock: Clock; secrets: Secrets; expressions: Expressions; baseUrl: () => string };

export type ApprovalService = ReturnType<typeof createApprovalService>;

const linkSecondsDefault = 7 * 24 * 3_600;

/** Questions of runs to people: who sees them, who answers, and links for people without an account. */
export function createApprovalService(deps: ApprovalDeps) {
  const { db, clock, secrets, baseUrl } = deps;
  async function get(caller: Caller, id: string): Promise<ApprovalRow> {
    return found(await store.findApproval(db, caller, pathId('approval', id)));
  }

  async function getLinked(token: string): Promise<{ link: LinkRow; approval: ApprovalRow }> {
    const named = readLinkToken(secrets, token);
    const link = named && (await store.findLink(db, named.appId, named.id));
    if (!link || link.expiresAt <= clock.now()) throw notFound();
    return { link, approval: found(await store.findAnyApproval(db, link.appId, link.approvalId)) };
  }

  return {
    get,

    async list(caller: Caller, query: Static<typeof listApprovalsQuery>, page: PageRequest) {
      if (query.run !== undefined && !canSeeWholeApp(caller))
        throw invalidField('run', 'is only for secret keys and developers');
      const runId = fieldId('automationRun', 'run', query.run);
      return store.listApprovals(db, caller, { status: query.status ?? 'waiting', runId }, page);
    },

    /** Answers as a user of the audience, or for the app as a developer or a secret key. */
    async answer(caller: Caller, credential: Credential | undefined, id: string, data: unknown): Promise<ApprovalRow> {
      const approval = await get(caller, id);
      requirePerson(credential, 'A personal token cannot answer an approval. Sign in to answer.');
      requireWaiting(approval, clock.now());
      return record(deps, approval, data, nameAnswerer(caller), (tx) =>
        store.findApproval(tx, caller, approval.id, true),
      );
    },

    /** Creates a link by which its holder answers once. */
    async createLink(caller: Caller, id: string, input: Static<typeof linkCreateSchema>) {
      const approval = await get(caller, id);
      const now = clock.now();
      requireWaiting(approval, now);
      const seconds = input.expires_in_seconds ?? linkSecondsDefault;
      const expiresAt = new Date(now.getTime() + seconds * 1_000);
      const { appId } = approval;
      const link = { appId, id: newUuid(), approvalId: approval.id, sentTo: input.to, expiresAt, createdAt: now };
      await db.begin(async (tx) => {
        const max = limits.approvalLinksMax;
        const message = `An approval has at most ${max} links.`;
        const room = { things: 'approval links', max, message, of: approval.id };
        await requireRoom(tx, approval, room, () => store.countLinks(tx, approval));
        await store.insertLink(tx, link);
      });
      return { url: `${baseUrl()}/api/v1/approval_links/${writeLinkToken(secrets, link)}`, expiresAt };
    },

    getLinked,

    async answerLinked(token: string, data: unknown) {
      const { link, approval } = await getLinked(token);
      requireWaiting(approval, clock.now());
      const by = `holder of the link sent to ${link.sentTo}`;
      const row = await record(deps, approval, data, by, (tx) => store.lockApproval(tx, link.appId, link.approvalId));
      return { link, approval: row };
    },
  };
}

/**
 * Records the answer: the run's `signal_received` entry, the closed approval, its event, and the job that continues the
 * run, in one transaction. `findAgain` reads the approval once its run is locked, so that the rights of this moment count.
 */
async function record(
  { db, clock, expressions }: ApprovalDeps,
  approval: ApprovalRow,
  data: unknown,
  by: string,
  findAgain: (tx: Db) => Promise<ApprovalRow | undefined>,
): Promise<ApprovalRow> {
  requireJsonSize('data', data, limits.approvalAnswerBytesMax);
  const automation = { appId: approval.appId, id: approval.automationId };
  await requireShape(expressions, automation, approval.form, 'data', data);
  return db.begin(async (tx) => {
    const run = found(await runStore.lockRun(tx, approval.appId, approval.runId));
    const row = found(await findAgain(tx));
    const at = clock.now();
    requireWaiting(row, at);
    const id = formatId('approval', row.id);
    const ok = typeof data === 'object' && data !== null && 'ok' in data ? data.ok === true : true;
    const answer = { approval: id, ok, data: data ?? null, by, at: at.toISOString() };
    const written = await runStore.appendEntries(tx, {
      run,
      automation: formatId('automation', run.automationId),
      expected: run.sequence,
      entries: [
        {
          type: 'signal_received',
          nodeId: row.nodeId,
          commandId: row.commandId,
          record: {
            payload: { name: row.nodeId, payload: answer },
            metadata: { approval: id },
            timestamp: at.toISOString(),
          },
        },
      ],
      status: run.status,
      waiting: run.waiting,
      waitingFor: run.waitingFor,
      wakeAt: run.wakeAt,
      wakeTimer: run.wakeTimer,
      now: at,
    });
    if (!written) throw new AppError('conflict', 'The run has ended.');
    await store.setAnswer(tx, row, { data, by, at });
    await announceApproval(tx, run, row.id, 'approval.answered', { answered_by: by, node_id: row.nodeId });
    await runStore.queueAdvance(tx, run);
    return found(await store.lockApproval(tx, row.appId, row.id));
  });
}

function requireWaiting(approval: ApprovalRow, now: Date): void {
  const isLate = approval.status === 'waiting' && approval.expiresAt !== null && approval.expiresAt <= now;
  const status = isLate ? 'expired' : approval.status;
  if (status === 'waiting') return;
  const said = status === 'answered' ? 'was already answered' : status === 'expired' ? 'has expired' : 'was cancelled';
  throw new AppError('conflict', `The approval ${said}.`, { details: { status } });
}

/** The person as the run's journal names them. */
function nameAnswerer(caller: Caller): string {
  switch (caller.kind) {
    case 'user':
      return formatId('user', caller.userId);
    case 'agent':
      return formatId('agent', caller.agentId);
    case 'developer':
      return formatId('developer', caller.developerId);
    case 'server':
      return 'secret key';
  }
}
