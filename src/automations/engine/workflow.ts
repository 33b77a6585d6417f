import type { Database, Db } from '../../db/database.ts';
import { runForEveryApp } from '../../db/fences.ts';
import type { Tasks } from '../../domain.ts';
import type { JobContext } from '../../jobs/task.ts';
import { taskNames } from '../../jobs/task-names.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { type Graph, readGraph } from '../definitions/graph.ts';
import { isTemporaryError } from '../nodes/errors.ts';
import type { NodeServices } from '../nodes/kind.ts';
import { deleteOldOutput } from '../runs/generation-store.ts';
import { deleteOldInvocations } from '../runs/invocation-store.ts';
import { releaseExpiredLeases } from '../runs/program-work-store.ts';
import type { RunRow, WorkRow } from '../runs/store.ts';
import * as runStore from '../runs/store.ts';
import { findNextTimes, type WakeOrder, wakeDueRuns } from '../runs/wake-store.ts';
import { dispatchEvent, matchAlone } from '../triggers/events.ts';
import { dueSchedulesMax, startDueSchedules } from '../triggers/schedules.ts';
import type { Match } from '../triggers/store.ts';
import type { advanceRun as AdvanceRun } from './advance.ts';
import type { AdvanceDeps, JobControls } from './advance-deps.ts';
import type { Expressions } from './expressions.ts';
import { giveUpRun } from './give-up.ts';
import type { RunSecrets } from './run-secrets.ts';
import { RunWatch } from './run-watch.ts';
import type { TreeBudget } from './tree-budget.ts';
import { WorkClaims } from './work-claims.ts';

type WorkflowDeps = {
  db: Database;
  /** One session that bypasses any pooler, for the locks of external work. */
  session: Database;
  clock: Clock;
  log: Logger;
  expressions: Expressions;
  secrets: RunSecrets;
  loadGraph(run: RunRow): Promise<Graph>;
  advanceProgram: AdvanceDeps['advanceProgram'];
  treeBudget: TreeBudget;
  environment: AdvanceDeps['environment'];
  servicesFor(run: WorkRow): Promise<NodeServices<Db>>;
  findChildEnd: AdvanceDeps['findChildEnd'];
};

type RunKey = { appId: string; runId: string };

/** Checks on a timer. */
type Ticker = {
  /** Starts checking for due runs and schedules. */
  startTicking(): void;
  stopTicking(): Promise<void>;
  /** Does one check, for tests that control the clock. Returns the pause before the next one, in milliseconds. */
  tick(): Promise<number>;
  /** Resolves once the due runs are awake; undefined if none are being woken. */
  waking(): Promise<void> | undefined;
};

/** Work that outlives requests: jobs by their stored name, and checks on a timer. */
export type AutomationWorkflow = Ticker & { tasks: Tasks };

/** The pause between two checks, unless a run is due earlier. */
const tickMs = 1_000;
const tickMinMs = 50;
const wakeBatchCount = 2_000;
/** The longest time that the first runs of a flood wait for the others to be woken. */
const wakingMsMax = 3_000;
const leasesBatchCount = 1_000;
/** Runs of one job that advance concurrently. */
const lanes = 4;
/** Attempts for a run whose advance throws unexpectedly. A lost database does not count. */
const brokenTriesMax = 3;
const sweepEveryTicks = 600;
const lostEveryTicks = 10;
const keptInvocationsMs = 7 * 24 * 3_600_000;
const keptOutputMs = 24 * 3_600_000;

/** An idle server does not need the engine: it is loaded by the first run. */
const advanceRun: typeof AdvanceRun = async (...run) => (await import('./advance.ts')).advanceRun(...run);

export function createAutomationWorkflow(deps: WorkflowDeps): AutomationWorkflow {
  const { db, clock, log, environment } = deps;
  const claims = new WorkClaims(deps.session, environment.worker);
  const advanceDeps: AdvanceDeps = {
    db,
    clock,
    log,
    claims,
    watch: new RunWatch(db, log),
    expressions: deps.expressions,
    treeBudget: deps.treeBudget,
    environment,
    loadGraph: deps.loadGraph,
    advanceProgram: deps.advanceProgram,
    secrets: deps.secrets,
    servicesFor: deps.servicesFor,
    findChildEnd: deps.findChildEnd,
  };
  return {
    tasks: {
      [taskNames.advanceRun]: (payload, context) => advanceOne(advanceDeps, payload as RunKey, context),
      [taskNames.advanceRuns]: (payload, { signal, giveWay }) =>
        advanceTogether(advanceDeps, (payload as { runs: RunKey[] }).runs, { signal, giveWay }),
      async [taskNames.dispatchEvent](payload) {
        await dispatchEvent(deps, payload as { appId: string; eventId: string });
      },
      async [taskNames.matchEvent](payload, { waitOutside }) {
        await matchAlone(deps, payload as Match, waitOutside);
      },
    },
    ...createTicker(deps, claims),
  };
}

async function advanceOne(deps: AdvanceDeps, key: RunKey, context: JobContext): Promise<void> {
  const { signal, attempt, isLastAttempt } = context;
  try {
    await advanceRun(deps, key, context);
  } catch (error) {
    if (signal.aborted || !(isLastAttempt || (attempt >= brokenTriesMax && !isTemporaryError(error)))) throw error;
    deps.log.error({ err: error, run: key.runId, attempt }, 'A run failed for the last time');
    await giveUpRun(deps, key);
  }
}

/** Advances runs that were woken together. A run that cannot be advanced gets its own job with retries. */
async function advanceTogether(deps: AdvanceDeps, runs: readonly RunKey[], controls: JobControls): Promise<void> {
  const left = [...runs];
  const work = async () => {
    for (let key = left.shift(); key; key = left.shift())
      try {
        await advanceRun(deps, key, controls);
      } catch (error) {
        // If this throws, the whole job is released; finished work stays.
        if (controls.signal.aborted) throw error;
        deps.log.error({ err: error, run: key.runId }, 'Could not advance a woken run');
        await runStore.queueAdvance(deps.db, { appId: key.appId, id: key.runId });
      }
  };
  await Promise.all(Array.from({ length: lanes }, work));
}

function createTicker(deps: WorkflowDeps, claims: WorkClaims): Ticker {
  const { db, clock, log } = deps;
  let waking: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let ticking: Promise<void> = Promise.resolve();
  let ticks = 0;
  let releasing: Promise<void> | undefined;

  /** Nothing waits for this: a claim may wait behind a lock, and runs are due meanwhile. */
  function releaseLostClaims(): void {
    releasing ??= claims
      .releaseLost()
      .catch((error: unknown) => log.warn({ err: error }, 'Could not look for lost claims'))
      .finally(() => {
        releasing = undefined;
      });
  }

  /** Wakes all due runs before this process advances any of a flood; otherwise, the last ones would be late. */
  async function wakeFirst(): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => {
      waking = undefined;
      resolve();
    };
    const patience = setTimeout(end, wakingMsMax).unref();
    waking = promise;
    try {
      return await wakeRuns(deps);
    } finally {
      clearTimeout(patience);
      end();
    }
  }

  async function tick(): Promise<number> {
    if (++ticks % lostEveryTicks === 0) releaseLostClaims();
    const { wakeAt, scheduleAt, leaseUntil } = await findNextTimes(db);
    const isDue = (at: Date | null) => at !== null && at <= clock.now();
    const woken = isDue(wakeAt) ? await wakeFirst() : 0;
    if (isDue(scheduleAt)) while ((await startDueSchedules(deps)) === dueSchedulesMax);
    if (isDue(leaseUntil))
      for (const run of await releaseExpiredLeases(db, clock.now(), leasesBatchCount))
        await runStore.announceRun(db, run);
    // A single run is woken on time. While runs are due continuously, they are woken in batches, one per second.
    if (woken > 0 || wakeAt === null) return tickMs;
    return Math.min(tickMs, Math.max(tickMinMs, wakeAt.getTime() - clock.now().getTime()));
  }

  async function look(): Promise<number> {
    try {
      const pauseMs = await runForEveryApp(tick);
      if (ticks % sweepEveryTicks === 0) {
        await runForEveryApp(() => deleteOldInvocations(db, new Date(clock.now().getTime() - keptInvocationsMs)));
        await runForEveryApp(() => deleteOldOutput(db, new Date(clock.now().getTime() - keptOutputMs)));
      }
      return pauseMs;
    } catch (error) {
      log.error({ err: error }, 'Could not check for due runs');
      return tickMs;
    }
  }

  function schedule(pauseMs: number): void {
    timer = setTimeout(() => {
      ticking = look().then((nextMs) => {
        if (timer !== undefined) schedule(nextMs);
      });
    }, pauseMs).unref();
  }

  return {
    tick,
    waking: () => waking,
    startTicking: () => schedule(tickMs),
    async stopTicking() {
      clearTimeout(timer);
      timer = undefined;
      await ticking;
      await releasing;
    },
  };
}

/**
 * Wakes due runs. More than one batch is a flood, which is woken on separate connections; otherwise, the runs woken
 * first would delay the rest.
 */
async function wakeRuns({ db, clock, environment }: WorkflowDeps): Promise<number> {
  const wakeBatch = (connection: Db, order?: WakeOrder) =>
    wakeDueRuns(connection, clock.now(), wakeBatchCount, environment, order);
  const first = await wakeBatch(db);
  if (first < wakeBatchCount) return first;
  const wakeRest = async (order: WakeOrder) => {
    const connection = await db.reserve();
    try {
      while ((await wakeBatch(connection, order)) === wakeBatchCount);
    } finally {
      connection.release();
    }
  };
  await Promise.all([wakeRest('longest due first'), wakeRest('longest due last')]);
  return first;
}

const graphsKeptMax = 1_000;

/** Caches graphs: a version of an automation's graph never changes. */
export function createGraphLoader(db: Database): (run: RunRow) => Promise<Graph> {
  const graphs = new Map<string, Graph>();
  return async (run) => {
    const { appId, automationId, graphVersion } = run;
    if (graphVersion === null) throw new Error('The run has no graph.');
    const key = `${automationId}/${graphVersion}`;
    const known = graphs.get(key);
    if (known) return known;
    const graph = readGraph(await runStore.findGraph(db, appId, automationId, graphVersion));
    if (graphs.size >= graphsKeptMax) graphs.clear();
    graphs.set(key, graph);
    return graph;
  };
}
