import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import type { StreamHub } from '../http/streams/sse.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Ledger } from '../ledger/seal.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { Llm } from '../llm/service.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { createApprovalService } from './approvals/service.ts';
import { createAutomationService } from './definitions/service.ts';
import type { Expressions } from './engine/expressions.ts';
import { RunSecrets } from './engine/run-secrets.ts';
import { TreeBudget } from './engine/tree-budget.ts';
import { type AutomationWorkflow, createAutomationWorkflow, createGraphLoader } from './engine/workflow.ts';
import { createNodeServices, type NodeDomains } from './nodes/services.ts';
import { ProgramJournal } from './programs/journal.ts';
import { createProgramService } from './programs/service.ts';
import { createProgramWakes, type ProgramHosts } from './programs/wakes.ts';
import { pruneRuns } from './retention/prune.ts';
import { outputLog, outputTopic } from './runs/output.ts';
import { createRunService } from './runs/service.ts';
import { runStream } from './runs/stream.ts';

/*
 * Durable workflows. A definition has a graph of nodes; a run executes one version of it and writes a journal.
 * - definitions/: `change.ts` creates and changes automations: `values.ts` applies the input, `checks.ts` and `graph.ts`
 *   check it; `find.ts` finds them for every other folder. Also the app's secrets, and files of the command line.
 * - approvals/: questions of runs to people, who answers them, and links for people without an account.
 * - rewind/: new runs from those that have ended, with a part of their journal.
 * - triggers/: events and schedules start runs.
 * - runs/: starting by invocation, reading, signals, claims by external programs, the streams of a run.
 * - engine/: `fold.ts` computes a run's state from its journal, `decide.ts` the next steps from that state, and
 *   `advance.ts` executes them and appends the outcome, as often as its job runs.
 * - programs/: runs that the user's own program executes, over the same journal.
 * - retention/: deletes runs that are kept no longer.
 * - nodes/: what one step of each kind does, through the services of other domains.
 * An invocation writes a run and a job in one transaction; the job advances the run until it waits or ends. The ticker
 * wakes runs whose time has come.
 */

/** How often runs that are kept no longer are deleted. */
const retention = { task: taskNames.sweepRuns, everySeconds: 3_600 };
/** How often functions are woken again for runs that they have not continued. */
const idleWakes = { task: taskNames.wakeIdlePrograms, everySeconds: 5 };

type AutomationsDeps = {
  db: Database;
  /** One session for the locks of external work. */
  session: Database;
  clock: Clock;
  log: Logger;
  secrets: Secrets;
  ledger: Ledger;
  streams: StreamHub;
  expressions: Expressions;
  llm: Llm;
  /** Tokens of one run; 0 for no limit. */
  runTokensMax: number;
  version: string;
  baseUrl: () => string;
  /** Webhooks that wake functions. */
  hosts: ProgramHosts;
  deleteExtractions: Parameters<typeof pruneRuns>[0]['deleteExtractions'];
};

/** Definitions, runs and the engine that advances them. */
export function createAutomations(deps: AutomationsDeps, domains: NodeDomains) {
  const { db, clock, log, secrets, ledger, expressions, llm, runTokensMax } = deps;
  const loadGraph = createGraphLoader(db);
  const automations = createAutomationService({ db, clock, secrets, ledger, expressions });
  const runSecrets = new RunSecrets(secrets);
  const treeBudget = new TreeBudget(db, clock);
  const worker = `${hostname()}/${process.pid}/${randomBytes(3).toString('hex')}`;
  const environment = { worker, version: deps.version };
  const journal = new ProgramJournal({ db, clock, secrets, treeBudget, environment, runSecrets });
  const runs = createRunService({ db, clock, secrets, expressions, loadGraph, journal });
  const programs = createProgramService({
    ...{ db, clock, log, secrets, expressions, streams: deps.streams, runs, runSecrets, journal },
  });
  const { baseUrl, hosts } = deps;
  const wakes = createProgramWakes({ db, clock, secrets, baseUrl, journal, hosts });
  const nodes = createNodeServices({ db, log, llm, runTokensMax, runs, domains, expressions });
  const workflow = createAutomationWorkflow({
    db,
    session: deps.session,
    clock,
    log,
    expressions,
    loadGraph,
    secrets: runSecrets,
    advanceProgram: programs.advance,
    treeBudget,
    environment,
    servicesFor: nodes.servicesFor,
    findChildEnd: nodes.findChildEnd,
  });
  const approvals = createApprovalService({ db, clock, secrets, expressions, baseUrl: deps.baseUrl });
  return {
    service: { automations, runs, programs, wakes, approvals },
    tasks: {
      ...workflow.tasks,
      ...wakes.tasks,
      [retention.task]: async (_payload, { signal }) => {
        const { deleteExtractions } = deps;
        const pruned = await pruneRuns({ db, clock, ledger, deleteExtractions }, { signal });
        if (pruned.runs > 0) log.info(pruned, 'Deleted old runs');
      },
    },
    recurring: [retention, idleWakes],
    streams: { run: runStream(db), [outputTopic]: outputLog(db) },
    /** Checks every second for due runs and schedules. */
    ticker: workflow,
  } satisfies Domain & { ticker: Ticker };
}

type Ticker = Pick<AutomationWorkflow, 'startTicking' | 'stopTicking' | 'tick' | 'waking'>;
