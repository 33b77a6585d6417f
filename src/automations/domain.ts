import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import type { Ledger } from '../ledger/seal.ts';
import type { Llm } from '../llm/service.ts';
import type { Logger } from '../log.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { createAutomationService } from './definitions/service.ts';
import type { Expressions } from './engine/expressions.ts';
import { type AutomationWorkflow, createAutomationWorkflow, createGraphLoader } from './engine/workflow.ts';
import { createNodeServices, type NodeDomains } from './nodes/services.ts';
import { outputLog, outputTopic } from './runs/output.ts';
import { createRunService } from './runs/service.ts';
import { runStream } from './runs/stream.ts';

type AutomationsDeps = {
  db: Database;
  /** One session for the locks of external work. */
  session: Database;
  clock: Clock;
  log: Logger;
  secrets: Secrets;
  ledger: Ledger;
  expressions: Expressions;
  llm: Llm;
  /** Tokens of one run; 0 for no limit. */
  runTokensMax: number;
  version: string;
};

/** Definitions, runs and the engine that advances them. */
export function createAutomations(deps: AutomationsDeps, domains: NodeDomains) {
  const { db, clock, log, secrets, ledger, expressions, llm, runTokensMax } = deps;
  const loadGraph = createGraphLoader(db);
  const automations = createAutomationService({ db, clock, secrets, ledger, expressions });
  const runs = createRunService({ db, clock, secrets, expressions, automations, loadGraph });
  const nodes = createNodeServices({ db, log, llm, runTokensMax, runs, domains });
  const workflow = createAutomationWorkflow({
    db,
    session: deps.session,
    clock,
    log,
    expressions,
    automations,
    runs,
    loadGraph,
    servicesFor: nodes.servicesFor,
    findChildEnd: nodes.findChildEnd,
    version: deps.version,
  });
  return {
    service: { automations, runs },
    tasks: workflow.tasks,
    streams: { run: runStream(db), [outputTopic]: outputLog(db) },
    /** Checks every second for due runs and schedules. */
    ticker: workflow,
  } satisfies Domain & { ticker: Ticker };
}

type Ticker = Pick<AutomationWorkflow, 'startTicking' | 'stopTicking' | 'tick' | 'waking'>;
