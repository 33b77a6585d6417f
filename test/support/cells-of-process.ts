import type { DatabaseTarget } from '../../src/db/address.ts';
import { createTestDatabase } from './database.ts';
import { openTcpProxy } from './tcp-proxy.ts';

/** The variable that makes every server of a test one with two cells. */
export const testsCells = process.env.QUARRY_TEST_CELLS === '2';

/** The second cell of each installation, by the URL of its directory. */
const cells = new Map<string, Promise<string>>();

/** Settings of a process whose apps are in the directory's database, beside a cell that must see none of them. */
export async function secondCellOf(directoryUrl: string): Promise<Record<string, string>> {
  const url = cells.get(directoryUrl) ?? openDatabaseOfRun().then((opened) => opened.url);
  cells.set(directoryUrl, url);
  const other = { name: 'other', database_url: await url, accepts_new_apps: false };
  return { QUARRY_CELLS: JSON.stringify({ cells: [{ name: 'own' }, other] }) };
}

/**
 * With cells, the database of a server that would otherwise start its own, and the settings that name it. Without
 * cells, there are none.
 */
export async function externalDatabase(): Promise<{
  target: DatabaseTarget | undefined;
  settings: Record<string, string>;
}> {
  if (!testsCells) return { target: undefined, settings: {} };
  const { target, url } = await openDatabaseOfRun();
  return { target, settings: { DATABASE_URL: url, QUARRY_SECRET: '0f7c1a94d7c35e28b0f4a1c96d82e735' } };
}

/** A database that ends with the test run. */
async function openDatabaseOfRun(): Promise<{ target: DatabaseTarget; url: string }> {
  const { target } = await createTestDatabase();
  const proxy = await openTcpProxy(target);
  proxy.unref();
  return { target, url: proxy.url };
}
