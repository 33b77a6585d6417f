import { type CellUse, measureApps, type ProposedMove, planMoves } from '../../cells/balance.ts';
import type { CellSettings } from '../../cells/settings.ts';
import { inspectCells, withCell } from '../../cells/status.ts';
import type { Database } from '../../db/database.ts';
import { formatId } from '../../lib/ids.ts';
import { countOf } from '../count.ts';
import { UsageError } from '../errors.ts';
import { onDirectory } from './cells.ts';

/** Proposes moves that even out the cells. Changes nothing. */
export function balance({ dryRun, json }: { dryRun?: boolean; json?: boolean }): Promise<number> {
  if (dryRun !== true)
    throw new UsageError('Only a proposal is possible: add --dry-run, and start the moves that you want.');
  return onDirectory(async (directory, cells) => {
    const uses = await measureCells(directory, cells);
    const moves = planMoves(uses);
    const print = (text: string) => process.stdout.write(`${text}\n`);
    if (json === true)
      print(JSON.stringify({ cells: uses.map((cell) => sizesOf(cell, moves)), moves: moves.map(present) }));
    else {
      for (const cell of uses) {
        const { name, apps, bytes, bytes_after } = sizesOf(cell, moves);
        print(`${name}  ${countOf(apps, 'app')}  ${mebibytes(bytes)}, then ${mebibytes(bytes_after)}`);
      }
      if (moves.length === 0) print('The cells are even: nothing to move.');
      for (const { appId, to, bytes } of moves)
        print(`quarry cells move ${formatId('app', appId)} --to ${to}  # ${mebibytes(bytes)}`);
    }
    return 0;
  });
}

/** What each app uses in each cell. A cell that servers cannot use takes no part. */
async function measureCells(directory: Database, cells: readonly CellSettings[]): Promise<CellUse[]> {
  const statuses = await inspectCells(directory, cells);
  const uses: CellUse[] = [];
  for (const cell of cells) {
    const status = statuses.find(({ name }) => name === cell.name);
    if (status === undefined || status.problem !== undefined || status.state === 'new') {
      process.stderr.write(`${cell.name} takes no part: ${status?.problem ?? 'no server has opened it yet'}\n`);
      continue;
    }
    const state = status.state === 'draining' ? 'draining' : cell.acceptsNewApps ? 'open' : 'closed';
    uses.push({ name: cell.name, state, apps: await withCell(cell, directory, measureApps) });
  }
  return uses;
}

function sizesOf({ name, apps }: CellUse, moves: readonly ProposedMove[]) {
  const sum = (uses: readonly { bytes: number }[]) => uses.reduce((total, { bytes }) => total + bytes, 0);
  const bytes = sum(apps);
  const coming = moves.filter(({ to }) => to === name);
  const going = moves.filter(({ from }) => from === name);
  return { name, apps: apps.length, bytes, bytes_after: bytes + sum(coming) - sum(going) };
}

function present({ appId, from, to, bytes }: ProposedMove) {
  return { app: formatId('app', appId), from, to, bytes };
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
