import type { Database, Db } from '../../db/database.ts';
import type { Tasks } from '../../domain.ts';
import { addJob } from '../../jobs/queue.ts';
import { taskNames } from '../../jobs/task-names.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, invalidField } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { requireScope } from '../../tenancy/key-scopes.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { readSignedIds, writeSignedIds } from '../../tenancy/signed-ids.ts';
import { listNamed } from '../definitions/find.ts';
import * as runStore from '../runs/store.ts';
import { claimLost, claimRun } from './claims.ts';
import type { ProgramChange, ProgramJournal } from './journal.ts';
import { programLimits } from './schema.ts';
import * as store from './wake-store.ts';

/*
 * Serverless hosting: a webhook wakes a function when a run has work. The run is claimed first, in the transaction that
 * writes the event for the webhook; the message then carries the claim, which is all that the function needs. If the
 * function writes nothing before the claim expires, it is woken again, after growing pauses.
 */

/** A webhook whose function executes runs. */
type ProgramHost = { appId: string; id: string; sandboxId: string; automations: readonly string[] };

/** What the domain of webhooks does for functions. */
export type ProgramHosts = {
  /** The webhook, if it is active and wakes a function. */
  find(db: Db, appId: string, webhookId: string): Promise<ProgramHost | undefined>;
  /** Writes an event for this webhook alone. Returns its id. */
  wake(tx: Db, host: ProgramHost, payload: Record<string, unknown>, now: Date): Promise<string>;
  /** Records that the function did nothing after this event. */
  noteIdle(tx: Db, host: ProgramHost, eventId: string, now: Date): Promise<void>;
};

/** How long a function has for each of its requests. */
const leaseSeconds = 30;
/** The code of a function until it says which version it is. */
const unknownVersion = 'function';
/** The pauses after a function has done nothing so often; the last one is repeated. */
const pauseSeconds = [0, 5, 30, 120, 600, 1_800, 3_600];
const candidatesCount = 20;

/** The claim of a message is a token of the run and the claim. */
const tokenPrefix = 'rct_';
const purpose = 'run-claim';

type WakeDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  baseUrl: () => string;
  journal: ProgramJournal;
  hosts: ProgramHosts;
};
type WakeJob = { appId: string; webhookId: string };

/** What a message for a function carries: its claim, until when, and where it is used. */
type Offer = { claim: string; lease_until: string; url: string };

export type ProgramWakes = {
  /** The automations with these ids or lookup keys. Throws 422 unless a program executes the runs of each. */
  check(caller: Caller, names: readonly string[]): Promise<string[]>;
  /** Wakes the function of a webhook now for all runs that wait for it. */
  restart(tx: Db, host: { appId: string; id: string; automations: readonly string[] | null }): Promise<void>;
  /** What is added to the message that wakes the function; undefined if the claim on the run has ended. */
  offer(appId: string, eventId: string): Promise<Offer | undefined>;
  /** What a token names. Throws 401 for anything else than a token of this installation. */
  read(authorization: string | undefined): { appId: string; runId: string; claim: string };
  /** The run of a token. A claim ends with the webhook whose function got it. */
  open(authorization: string | undefined): Promise<{ run: runStore.RunRow; claim: string }>;
  tasks: Tasks;
};

export function createProgramWakes(deps: WakeDeps): ProgramWakes {
  const { db, clock, secrets, baseUrl } = deps;

  function read(authorization: string | undefined): { appId: string; runId: string; claim: string } {
    if (authorization === undefined)
      throw new AppError('unauthenticated', 'Send the claim as a bearer token: Authorization: Bearer rct_….');
    const text = /^Bearer +rct_(\S+)$/i.exec(authorization.trim())?.[1] ?? '';
    const [appId, runId, claim] = readSignedIds(secrets, purpose, text, 3) ?? [];
    if (appId === undefined || runId === undefined || claim === undefined)
      throw new AppError('invalid_credentials', 'The claim is not valid.');
    return { appId, runId, claim };
  }

  return {
    async check(caller, names) {
      // What is sent to a function lets its receiver execute runs.
      requireScope(caller.scopes, { area: 'automations', reads: false }, { what: 'waking a function for runs' });
      const automations = await listNamed(db, caller, names);
      const wrong = automations.findIndex(({ program }) => !program);
      if (wrong >= 0) throw invalidField(`automations.${wrong}`, 'must be an automation with a WorkflowProgram');
      return [...new Set(automations.map(({ id }) => id))];
    },

    async restart(tx, host) {
      if (host.automations === null) return;
      await store.forgetWakes(tx, host.appId, host.automations);
      const job: WakeJob = { appId: host.appId, webhookId: host.id };
      await addJob(tx, taskNames.wakePrograms, job, { key: `wake/${host.id}` });
    },

    async offer(appId, eventId) {
      const found = await store.findOffered(db, appId, eventId, clock.now());
      if (found === undefined) return undefined;
      const token = writeSignedIds(secrets, purpose, [appId, found.runId, found.claim]);
      return {
        claim: `${tokenPrefix}${token}`,
        lease_until: found.leaseUntil.toISOString(),
        url: `${baseUrl()}/api/v1/claimed_run`,
      };
    },

    read,

    async open(authorization) {
      const { appId, runId, claim } = read(authorization);
      const [run, isHosted] = await Promise.all([runStore.findRun(db, appId, runId), store.isHosted(db, appId, runId)]);
      if (run === undefined) throw new AppError('invalid_credentials', 'The claim is not valid.');
      if (!isHosted) throw claimLost();
      return { run, claim };
    },

    tasks: {
      [taskNames.wakePrograms]: (payload, { signal }) => wakeHost(deps, payload as WakeJob, signal),
      [taskNames.wakeIdlePrograms]: async () => {
        for (const job of await store.listIdleHosts(db, clock.now()))
          await addJob(db, taskNames.wakePrograms, job, { key: `wake/${job.webhookId}` });
      },
    },
  };
}

/** Claims runs for the function of a webhook until none is ready or it has as many as it may have. */
async function wakeHost(
  { db, clock, journal, hosts }: WakeDeps,
  { appId, webhookId }: WakeJob,
  signal: AbortSignal,
): Promise<void> {
  const full = new Set<string>();
  const skip = new Set<string>();
  while (!signal.aborted) {
    const host = await hosts.find(db, appId, webhookId);
    if (host === undefined) return;
    const now = clock.now();
    const free = programLimits.wokenMax - (await store.countWoken(db, host, host.id, now));
    if (free <= 0) return;
    const wanted = { automations: host.automations, full: [...full], skip: [...skip] };
    const runs = await store.findRunsToWake(db, host, wanted, now, Math.min(free, candidatesCount));
    if (runs.length === 0) return;
    for (const { id, automationId } of runs) {
      if (full.has(automationId)) continue;
      const outcome = await journal.change({ appId, id, automationId }, (change) => wakeFor(hosts, change, host));
      if (outcome === 'full') full.add(automationId);
      else skip.add(id);
    }
  }
}

/** Claims the run of this change and writes the event that offers it. */
async function wakeFor(
  hosts: ProgramHosts,
  change: ProgramChange,
  host: ProgramHost,
): Promise<'lost' | 'full' | 'woken'> {
  const { work, row, tx, now } = change;
  const idle = work.wakes > 0 ? work.wakeEvent : null;
  const outcome = await claimRun(change, { code_version: unknownVersion, lease_seconds: leaseSeconds, fits: true });
  if (outcome === 'lost' || outcome === 'full') return outcome;
  if (idle !== null) await hosts.noteIdle(tx, host, idle, now);
  const pause = pauseSeconds[Math.min(work.wakes, pauseSeconds.length - 1)] ?? 0;
  work.wakes += 1;
  work.wakeAfter = new Date(outcome.leaseUntil.getTime() + pause * 1_000);
  work.wokenBy = host.id;
  const payload = {
    run: formatId('automationRun', row.id),
    automation: formatId('automation', row.automationId),
    ...(await store.findNames(tx, row)),
  };
  work.wakeEvent = await hosts.wake(tx, host, payload, now);
  return 'woken';
}
