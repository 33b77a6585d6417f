import type { Database } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import type { Graph } from '../definitions/graph.ts';
import type { Expressions } from '../engine/expressions.ts';
import type { ProgramJournal } from '../programs/journal.ts';
import { createRetries } from '../rewind/service.ts';
import { createRunChanges } from './change.ts';
import { createProgramWork } from './program-work.ts';
import { createRunReading } from './read.ts';
import { createRunStarts } from './start.ts';
import type { RunRow } from './store.ts';

type RunDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  expressions: Expressions;
  loadGraph(run: RunRow): Promise<Graph>;
  journal: ProgramJournal;
};

export type RunService = ReturnType<typeof createRunService>;

/** All that callers do with runs. */
export function createRunService(deps: RunDeps) {
  return {
    ...createRunReading(deps),
    ...createRunStarts(deps),
    ...createRunChanges(deps),
    ...createRetries(deps),
    ...createProgramWork(deps),
  };
}
