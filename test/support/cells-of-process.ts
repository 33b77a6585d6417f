import { createTestDatabase } from './database.ts';
import { openTcpProxy } from './tcp-proxy.ts';

/** The variable that makes every server of a test one with two cells. */
export const testsCells = process.env.QUARRY_TEST_CELLS === '2';

/** The second cell of each installation, by the URL of its directory. */
const cells = new Map<string, Promise<string>>();

/** Settings of a process whose apps are in the directory's database, beside a cell that must see none of them. */
export async function secondCellOf(directoryUrl: string): Promise<Record<string, string>> {
  const url = cells.get(directoryUrl) ?? createSecond();
  cells.set(directoryUrl, url);
  const other = { name: 'other', database_url: await url, accepts_new_apps: false };
  return { QUARRY_CELLS: JSON.stringify({ cells: [{ name: 'own' }, other] }) };
}

/** Its database ends with that of the test run. */
async function createSecond(): Promise<string> {
  const { target } = await createTestDatabase();
  const proxy = await openTcpProxy(target);
  proxy.unref();
  return proxy.url;
}
