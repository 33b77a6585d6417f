import type { Database, Db } from '../../db/database.ts';
import type { JobContext } from '../../jobs/task.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Graph } from '../definitions/graph.ts';
import type { Child, NodeError, NodeServices } from '../nodes/kind.ts';
import type { RunRow, WorkRow } from '../runs/store.ts';
import type { Expressions } from './expressions.ts';
import type { RunSecrets } from './run-secrets.ts';
import type { RunWatch } from './run-watch.ts';
import type { TreeBudget } from './tree-budget.ts';
import type { WorkClaims } from './work-claims.ts';

export type AdvanceDeps = {
  db: Database;
  clock: Clock;
  log: Logger;
  claims: WorkClaims;
  watch: RunWatch;
  expressions: Expressions;
  treeBudget: TreeBudget;
  /** The process that writes, stored in every entry. */
  environment: { worker: string; version: string };
  loadGraph(run: RunRow): Promise<Graph>;
  /** Does what the server does in a run that a program executes. */
  advanceProgram(run: { appId: string; id: string }): Promise<void>;
  secrets: RunSecrets;
  /** The services of nodes, bound to the identity that the run acts as. Throws NodeFailure if it was deleted. */
  servicesFor(run: WorkRow): Promise<NodeServices<Db>>;
  /** The child's result; undefined while it is active. */
  findChildEnd(run: WorkRow, child: Child): Promise<ChildEnd | undefined>;
};

/**
 * What the job of a run allows. Without `waitOutside`, which waits for responses without holding a job slot, a node with
 * external work, or one behind other expressions of its automation, is left to a job for that run alone.
 */
export type JobControls = Pick<JobContext, 'signal' | 'giveWay'> & Partial<Pick<JobContext, 'waitOutside'>>;

export type ChildEnd = { output: unknown } | { error: NodeError };
