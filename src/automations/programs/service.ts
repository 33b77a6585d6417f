import { createHash } from 'node:crypto';
import type { Database } from '../../db/database.ts';
import type { Wait } from '../../http/streams/change-waits.ts';
import { type StreamHub, topicOf } from '../../http/streams/sse.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, found, invalidField } from '../../lib/errors.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import type { Logger } from '../../lib/log.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { unknownReference } from '../../tenancy/references.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { prepareApproval } from '../approvals/request.ts';
import type { AutomationService } from '../definitions/service.ts';
import { draftEntry } from '../engine/draft-entries.ts';
import type { Expressions } from '../engine/expressions.ts';
import { nodeErrorOf } from '../nodes/errors.ts';
import { runEnd } from '../nodes/services.ts';
import { readCursor, writeCursor } from '../runs/cursor.ts';
import { loadRunCaller } from '../runs/identity.ts';
import type { RunService } from '../runs/service.ts';
import { requireSignalRoom } from '../runs/signals.ts';
import * as runStore from '../runs/store.ts';
import { wrongState } from '../runs/wrong-state.ts';
import { claimLost, claimRun, type HeldClaim, offer, release, renew } from './claims.ts';
import {
  type ProgramChange,
  type ProgramJournal,
  type ProgramJournalDeps,
  type RunKey,
  readyTopic,
} from './journal.ts';
import { listPage, listServerEntries, type PageRow } from './pages.ts';
import type { WorkBatch, WorkerEntry } from './schema.ts';
import {
  addWorkerEntry,
  checkEntries,
  fireDue,
  type PreparedStep,
  takeChildEnds,
  takeSignals,
  takes,
} from './steps.ts';
import * as store from './store.ts';

type ProgramDeps = ProgramJournalDeps & {
  db: Database;
  clock: Clock;
  log: Logger;
  secrets: Secrets;
  expressions: Expressions;
  streams: StreamHub;
  automations: AutomationService;
  runs: RunService;
  journal: ProgramJournal;
};

/** Entries of the holder of a claim. */
type Batch = Omit<WorkBatch, 'claim'>;
type Claim = { automations: readonly string[]; code_version: string; lease_seconds: number };
type Claimed = { run: runStore.RunRow; claim: string; leaseUntil: Date; entries: PageRow[]; cursor?: string };
export type Appended = {
  sequence: number;
  ended: boolean;
  leaseUntil: Date | null;
  commandIds: Record<string, string>;
  entries: PageRow[];
};

const candidatesCount = 4;
const lookMsMin = 20;

export type ProgramService = ReturnType<typeof createProgramService>;

/** Runs that the user's program executes: workers claim them and write their journals, and the server does the waiting. */
export function createProgramService(deps: ProgramDeps) {
  const { db, clock, log, secrets, streams, automations, runs } = deps;
  const { journal } = deps;
  /** Runs that requests of this process are claiming, so that others try the next ones. */
  const claiming = new Set<string>();

  async function findAutomations(caller: Caller, names: readonly string[]): Promise<string[]> {
    const ids = new Set<string>();
    for (const [index, name] of names.entries()) {
      const id = await automations.findDefinitionId(caller, name);
      if (id === undefined) throw unknownReference(`automations.${index}`);
      ids.add(id);
    }
    return [...ids];
  }

  /** Claims the run that has been ready for longest. */
  async function tryClaim(appId: string, ids: readonly string[], input: Claim): Promise<Claimed | undefined> {
    const full = new Set<string>();
    const lost = new Set<string>();
    for (;;) {
      const wanted = {
        automations: ids,
        full: [...full],
        codeVersion: input.code_version,
        skip: [...claiming, ...lost],
      };
      const candidates = await store.findReadyRuns(db, { appId }, wanted, clock.now(), candidatesCount);
      const next = candidates.find(({ runId }) => !claiming.has(runId));
      if (next === undefined) return undefined;
      const key = { appId, id: next.runId, automationId: next.automationId };
      claiming.add(key.id);
      try {
        const outcome = await journal.change(key, (change) => claimRun(change, input));
        if (outcome === 'full') full.add(next.automationId);
        else if (outcome === 'lost' || outcome === undefined) lost.add(next.runId);
        else return await describe(key, outcome);
      } finally {
        claiming.delete(key.id);
      }
    }
  }

  async function describe(key: RunKey, held: HeldClaim): Promise<Claimed> {
    const run = found(await runStore.findRun(db, key.appId, key.id));
    return { run, ...held, ...(await readPage(run, 0)) };
  }

  async function readPage(run: runStore.RunRow, after: number): Promise<{ entries: PageRow[]; cursor?: string }> {
    const entries = await listPage(db, secrets, run, after, run.sequence);
    const last = entries.at(-1)?.sequence ?? run.sequence;
    return { entries, ...(last < run.sequence ? { cursor: writeCursor(secrets, run, last) } : {}) };
  }

  /** The run, if a program executes it. */
  async function getRun(caller: Caller, id: string): Promise<runStore.RunRow> {
    const run = await runs.get(caller, id);
    if (!run.program) throw wrongState(run, 'is not executed by a program');
    return run;
  }

  /**
   * Prepares the children and approvals of a batch. Not in a transaction: nothing requests a second connection while it
   * holds one.
   */
  async function prepareSteps(run: runStore.RunRow, batch: Batch): Promise<Map<number, PreparedStep>> {
    const prepared = new Map<number, PreparedStep>();
    for (const [index, entry] of batch.entries.entries()) {
      if (entry.kind !== 'child' && entry.kind !== 'approve') continue;
      const commandId = formatId('command', newUuid());
      const row = await runStore.findWork(db, run.appId, run.id);
      if (!row) continue;
      try {
        const step = entry.kind === 'child' ? prepareChild(row, entry, commandId) : prepareAsk(row, entry, commandId);
        prepared.set(index, { commandId, ...(await step) });
      } catch (error) {
        prepared.set(index, { commandId, error: nodeErrorOf(error, log) });
      }
    }
    return prepared;
  }

  async function prepareChild(row: runStore.WorkRow, entry: WorkerEntry, commandId: string) {
    const caller = await loadRunCaller(db, row);
    const input = { automation: entry.automation ?? '', payload: entry.payload ?? {} };
    return { child: await runs.prepareChild(caller, row, input, commandId) };
  }

  async function prepareAsk(row: runStore.WorkRow, entry: WorkerEntry, commandId: string) {
    const { type: _type, kind: _kind, node_id: nodeId = '', timeout_seconds: seconds, question = '', ...more } = entry;
    const { finder } = await deps.runSecrets.of(db, row, row.secretsVersion);
    const expiresAt = seconds === undefined ? null : new Date(clock.now().getTime() + seconds * 1_000);
    const place = { nodeId, commandId, attempt: 1, expiresAt };
    return { approval: { ...(await prepareApproval(deps, row, finder, place, { question, ...more })), expiresAt } };
  }

  async function append(run: runStore.RunRow, claim: string | undefined, batch: Batch): Promise<Appended> {
    if (claim === undefined) throw claimLost();
    checkEntries(batch.entries, clock.now());
    const digest = createHash('sha256')
      .update(JSON.stringify([batch.entries, batch.release]))
      .digest();
    const prepared = await prepareSteps(run, batch);
    const outcome = await journal.change({ ...run, id: run.id }, async (change) => {
      const written = await applyBatch(change, batch, { claim, digest, prepared });
      const commandIds = Object.fromEntries(
        batch.entries
          .filter(({ type }) => type === 'node_started')
          .map(({ node_id = '' }) => [node_id, change.state.steps.get(node_id)?.commandId ?? '']),
      );
      return { ...written, commandIds, sequence: change.state.sequence, leaseUntil: change.work.leaseUntil };
    });
    if (outcome === undefined) throw claimLost();
    const entries =
      outcome.sequence === batch.after_sequence ? [] : await listServerEntries(db, secrets, run, batch.after_sequence);
    return { ...outcome, entries };
  }

  /** Applies a batch, unless it was applied before or the run has ended. */
  async function applyBatch(
    change: ProgramChange,
    batch: Batch,
    by: { claim: string; digest: Buffer; prepared: Map<number, PreparedStep> },
  ): Promise<{ ended: boolean }> {
    const { work, state } = change;
    if (work.claim !== by.claim) throw claimLost();
    change.isByHolder = true;
    if (work.batchAfter === batch.after_sequence && work.batchDigest?.equals(by.digest)) {
      if (!change.hasEnded && work.leaseUntil !== null) renew(change);
      work.seen = state.sequence;
      return { ended: state.status === 'cancelled' };
    }
    if (change.hasEnded) return { ended: true };
    if (work.leaseUntil === null) throw claimLost();
    const isEmpty = batch.entries.length === 0 && batch.release === undefined;
    if (isEmpty ? batch.after_sequence > work.seen : batch.after_sequence !== work.seen)
      throw new AppError('conflict', `The journal continues after entry ${work.seen}, not ${batch.after_sequence}.`, {
        details: { sequence: work.seen },
      });
    renew(change);
    if (isEmpty) {
      work.seen = state.sequence;
      return { ended: false };
    }
    const unseen = state.sequence > batch.after_sequence;
    for (const [index, entry] of batch.entries.entries())
      await addWorkerEntry(change, entry, index, by.prepared.get(index));
    const endsItself = change.hasEnded;
    await change.endAtLimit(deps.treeBudget);
    work.batchAfter = batch.after_sequence;
    work.batchDigest = by.digest;
    work.seen = state.sequence;
    if (batch.release?.workflow_changed === undefined) Object.assign(work, { wakes: 0, wakeAfter: null });
    if (endsItself || change.hasEnded) work.leaseUntil = null;
    else if (batch.release !== undefined) await release(change, batch.release, unseen);
    return { ended: change.hasEnded && !endsItself };
  }

  return {
    /** Claims a run, and waits for one for up to `waitSeconds`. Undefined if there is none, or the reader is gone. */
    async claim(
      caller: Caller,
      input: Claim,
      waitSeconds: number,
      onOpen: (wait: Wait) => void,
    ): Promise<Claimed | undefined> {
      const ids = await findAutomations(caller, input.automations);
      const { appId } = caller;
      if (waitSeconds === 0) return tryClaim(appId, ids, input);
      const wait = streams.waits.open(
        appId,
        ids.map((id) => topicOf(readyTopic, appId, id)),
      );
      try {
        onOpen(wait);
        const endMs = performance.now() + waitSeconds * 1_000;
        for (;;) {
          if (wait.hasEnded) return undefined;
          const claimed = await tryClaim(appId, ids, input);
          const leftMs = endMs - performance.now();
          if (claimed !== undefined || leftMs <= 0) return claimed;
          const now = clock.now();
          const expiry = await store.findNextExpiry(db, { appId }, ids, now);
          const expiryMs = expiry === undefined ? leftMs : Math.max(lookMsMin, expiry.getTime() - now.getTime());
          await wait.next(Math.min(leftMs, expiryMs));
        }
      } finally {
        wait.close();
      }
    },

    getRun,

    /** Continues the journal of a claimed run, with the secrets that other readers do not see. */
    async read(run: runStore.RunRow, claim: string | undefined, cursor?: string) {
      const work = await store.findWorkOf(db, run);
      if (work?.claim !== claim || work?.leaseUntil === null) throw claimLost();
      return readPage(run, cursor === undefined ? 0 : readCursor(secrets, run, cursor));
    },

    /** The journal for the holder of a claim that is a credential, which notes the version of its code. */
    async readClaimed(run: runStore.RunRow, claim: string, input: { code_version?: string; after_cursor?: string }) {
      const held = await journal.change(run, async (change) => {
        requireHeld(change.work, claim, change.now);
        if (input.code_version !== undefined) change.work.codeVersion = input.code_version;
        change.work.seen = change.state.sequence;
        return { leaseUntil: change.work.leaseUntil ?? change.now, sequence: change.state.sequence };
      });
      if (held === undefined) throw claimLost();
      const now = { ...run, sequence: held.sequence };
      const { after_cursor: cursor } = input;
      return { ...held, ...(await readPage(now, cursor === undefined ? 0 : readCursor(secrets, now, cursor))) };
    },

    /** Throws unless a claim that is a credential is still valid. One that its holder has ended may repeat its last batch. */
    async requireOpen(run: runStore.RunRow, claim: string): Promise<void> {
      const work = await store.findWorkOf(db, run);
      if (work?.leaseUntil !== null || work.claim !== claim) requireHeld(work, claim, clock.now());
    },

    /** Writes a batch of a worker. An empty one renews the claim, and may wait for what the server adds. */
    async append(
      run: runStore.RunRow,
      claim: string | undefined,
      batch: Batch,
      onOpen: (wait: Wait) => void,
    ): Promise<Appended> {
      const waitSeconds = batch.wait_seconds ?? 0;
      if (waitSeconds === 0) return append(run, claim, batch);
      if (batch.entries.length > 0 || batch.release !== undefined)
        throw invalidField('wait_seconds', 'is only for a request without entries and release');
      const wait = streams.waits.open(run.appId, [topicOf('run', run.appId, run.id)]);
      try {
        onOpen(wait);
        const endMs = performance.now() + waitSeconds * 1_000;
        for (;;) {
          const appended = await append(run, claim, batch);
          const leftMs = endMs - performance.now();
          if (appended.ended || appended.entries.length > 0 || leftMs <= 0 || wait.hasEnded) return appended;
          await wait.next(leftMs);
        }
      } finally {
        wait.close();
      }
    },

    /** Stores a signal for the run. */
    async signal(run: runStore.RunRow, signal: { name: string; payload: unknown }): Promise<runStore.RunRow> {
      await journal.change(run, async (change) => {
        if (change.hasEnded) throw wrongState(change.row, 'takes no signals');
        requireSignalRoom(change.row, change.state.signals.length);
        const waiting = [...change.state.open.values()].find((one) => one.phase === 'signal' && takes(one, signal));
        const payload = { name: signal.name, payload: signal.payload ?? null };
        const received = draftEntry(change.around, 'signal_received', { payload });
        change.add([waiting ? { ...received, nodeId: waiting.nodeId, commandId: waiting.commandId } : received]);
        await takeSignals(change);
        offer(change);
      });
      return found(await runStore.findRun(db, run.appId, run.id));
    },

    /** Does what the server does in a run: fires its timers, and ends the steps whose child run has ended. */
    async advance(key: RunKey): Promise<void> {
      const run = await runStore.findRun(db, key.appId, key.id);
      if (!run) return;
      await journal.change(run, async (change) => {
        if (change.hasEnded) return;
        if (change.state.status === 'running') {
          // An answer that was recorded before the deadline counts.
          await takeSignals(change);
          await fireDue(change);
          if (!change.hasEnded) await takeChildEnds(change, runEnd);
          await change.endAtLimit(deps.treeBudget);
        }
        offer(change);
      });
    },
  };
}

function requireHeld(work: store.ProgramWork | undefined, claim: string, now: Date): void {
  if (work?.claim !== claim || work.leaseUntil === null || work.leaseUntil <= now) throw claimLost();
}
