import type { Database } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import type { Graph } from '../definitions/graph.ts';
import type { Expressions } from '../engine/expressions.ts';
import type { ProgramJournal } from '../programs/journal.ts';
import { createRetries, type Retries } from '../rewind/service.ts';
import { createRunChanges, type RunChanges } from './change.ts';
import { createProgramWork, type ProgramWork } from './program-work.ts';
import { createRunReading, type RunReading } from './read.ts';
import { createRunStarts, type RunStarts } from './start.ts';
import type { RunRow } from './store.ts';

type RunDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  expressions: Expressions;
  loadGraph(run: RunRow): Promise<Graph>;
  journal: ProgramJournal;
};

/** All that callers do with runs. */
export type RunService = RunReading & RunStarts & RunChanges & Retries & ProgramWork;

export function createRunService(deps: RunDeps): RunService {
  return {
    ...createRunReading(deps),
    ...createRunStarts(deps),
    ...createRunChanges(deps),
    ...createRetries(deps),
    ...createProgramWork(deps),
  };
}
