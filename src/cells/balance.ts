import type { Database } from '../db/database.ts';
import { appTables } from '../db/tables.ts';

/** What an app uses in the database of its cell. */
type AppUse = { appId: string; bytes: number };
export type CellUse = {
  name: string;
  /** `draining`: all of its apps should leave. `closed`: it takes no further apps. */
  state: 'open' | 'closed' | 'draining';
  apps: AppUse[];
};
export type ProposedMove = AppUse & { from: string; to: string };

const pageBytes = 8_192;
/** Of a larger table, a random part of this size is read. */
const sampledPagesMax = 2_000;
const movesMax = 100;
/** Cells whose use differs by less than this part of the average are even. */
const tolerance = 0.1;

/** Estimates the bytes of each app's rows. Reads at most 16 MB of each table. */
export async function measureApps(db: Database): Promise<AppUse[]> {
  const tables = await db<{ name: string; bytes: number }[]>`
    select c.relname as name, (pg_relation_size(c.oid)
        + (select coalesce(sum(pg_relation_size(relid)), 0) from pg_partition_tree(c.oid)))::float8 as bytes
    from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
      and not c.relispartition and c.relname = any (${[...appTables]})`;
  const uses = new Map((await db<{ id: string }[]>`select id from apps`).map(({ id }) => [id, 0]));
  for (const { name, bytes } of tables) {
    if (bytes === 0 || name === 'apps') continue;
    const part = Math.min(1, (sampledPagesMax * pageBytes) / bytes);
    const rows = await db<{ appId: string; bytes: number }[]>`
      select app_id, sum(pg_column_size(t.*))::float8 as bytes from ${db(name)} t tablesample system (${100 * part})
      group by app_id`;
    for (const row of rows) {
      const known = uses.get(row.appId);
      if (known !== undefined) uses.set(row.appId, known + row.bytes / part);
    }
  }
  return [...uses].map(([appId, used]) => ({ appId, bytes: Math.round(used) }));
}

/** The moves that empty draining cells and then even out the others, each from the fullest to the emptiest. */
export function planMoves(cells: readonly CellUse[]): ProposedMove[] {
  const moves: ProposedMove[] = [];
  const left = new Map(cells.map(({ name, apps }) => [name, [...apps].sort((one, other) => other.bytes - one.bytes)]));
  const bytesOf = (name: string) => (left.get(name) ?? []).reduce((sum, { bytes }) => sum + bytes, 0);
  const inUse = cells.filter(({ state }) => state !== 'draining').map(({ name }) => name);
  const emptiest = () => {
    const open = cells.filter(({ state }) => state === 'open').map(({ name }) => name);
    return open.sort((one, other) => bytesOf(one) - bytesOf(other))[0];
  };
  const move = (app: AppUse, from: string, to: string) => {
    left.set(
      from,
      (left.get(from) ?? []).filter((each) => each !== app),
    );
    left.get(to)?.push(app);
    moves.push({ ...app, from, to });
  };
  for (const { name } of cells.filter(({ state }) => state === 'draining'))
    for (const app of left.get(name) ?? []) {
      const to = emptiest();
      if (to !== undefined && moves.length < movesMax) move(app, name, to);
    }
  const average = inUse.reduce((sum, name) => sum + bytesOf(name), 0) / Math.max(1, inUse.length);
  while (moves.length < movesMax) {
    const to = emptiest();
    const from = [...inUse].sort((one, other) => bytesOf(other) - bytesOf(one))[0];
    if (to === undefined || from === undefined || to === from) break;
    const gap = bytesOf(from) - bytesOf(to);
    if (gap <= tolerance * average) break;
    // Moving half of the gap makes both equal. An app that is larger than the gap would only turn it around.
    const fits = (left.get(from) ?? []).filter(({ bytes }) => bytes > 0 && bytes < gap);
    const app = fits.sort((one, other) => Math.abs(one.bytes - gap / 2) - Math.abs(other.bytes - gap / 2))[0];
    // An app that was moved once stays: a second move would only correct the first.
    if (app === undefined || moves.some(({ appId }) => appId === app.appId)) break;
    move(app, from, to);
  }
  return moves;
}
