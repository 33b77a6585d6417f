import { Directory } from '../../../src/cells/move/directory.ts';
import { continueMove } from '../../../src/cells/move/move.ts';
import type { DatabaseTarget } from '../../../src/db/address.ts';

/** What test/crash/move.test.ts passes to this process in MOVE_TASK. */
export type MoveTask = {
  directory: DatabaseTarget;
  cells: { name: string; target: DatabaseTarget }[];
  appId: string;
  /** Where the process kills itself. */
  killAt: string | undefined;
};

const { directory, cells, appId, killAt } = JSON.parse(process.env.MOVE_TASK ?? '') as MoveTask;
const { step } = await continueMove({
  directory: new Directory(
    directory,
    cells.map((cell) => ({ ...cell, acceptsNewApps: true })),
  ),
  appId,
  sourceKeptMs: 1_000,
  onPoint(point) {
    if (point === killAt) process.kill(process.pid, 'SIGKILL');
  },
});
process.stdout.write(step);
process.exit(0);
