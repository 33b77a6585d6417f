import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import type { StreamHub } from '../http/sse.ts';
import type { Logger } from '../log.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { createAutomationService } from './definitions/service.ts';
import { createExpressions } from './engine/expressions.ts';
import { createAutomationWorkflow, createGraphLoader } from './engine/workflow.ts';
import { createNodeServices, type NodeDomains } from './nodes/services.ts';
import { createRunService } from './runs/service.ts';
import { registerRunStream } from './runs/stream.ts';

export type AutomationsDeps = {
  db: Database;
  /** One session for the locks of work outside. */
  session: Database;
  clock: Clock;
  log: Logger;
  secrets: Secrets;
  streams: StreamHub;
  version: string;
};

/** The domain, put together: its services for routes, and its work for the job workers. */
export function createAutomations(deps: AutomationsDeps, domains: NodeDomains) {
  const { db, clock, log, secrets } = deps;
  const expressions = createExpressions();
  const loadGraph = createGraphLoader(db);
  const automations = createAutomationService({ db, clock, secrets, expressions });
  const runs = createRunService({ db, clock, secrets, expressions, automations, loadGraph });
  const nodes = createNodeServices({ db, runs, domains });
  const automationWork = createAutomationWorkflow({
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
  registerRunStream(deps.streams, db);
  return { automations, runs, automationWork };
}
