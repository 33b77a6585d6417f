import { readFileSync } from 'node:fs';
import { ConfigError } from '../config/config.ts';
import type { DatabaseTarget } from '../db/address.ts';

/** One cell, as QUARRY_CELLS names it. */
export type CellSettings = {
  name: string;
  /** Undefined: the cell is in the directory's database. */
  target: DatabaseTarget | undefined;
  /** The same database without a transaction pooler. */
  directTarget: DatabaseTarget | undefined;
  /** Whether new apps may be created in it. */
  acceptsNewApps: boolean;
};

type CellsSetting = { cells?: string | undefined; databaseUrl?: DatabaseTarget | undefined };

const namePattern = /^[a-z][a-z0-9-]{0,39}$/;
const cellsMax = 1_000;
const filePrefix = 'file:';
const members = new Set(['name', 'database_url', 'direct_database_url', 'accepts_new_apps']);

/** The cells of QUARRY_CELLS; undefined without the setting. Throws ConfigError with every problem. */
export function readCells(config: CellsSetting): CellSettings[] | undefined {
  if (config.cells === undefined) return undefined;
  const path = cellsFile(config);
  let value: unknown;
  try {
    value = JSON.parse(path === undefined ? config.cells : readFileSync(path, 'utf8'));
  } catch (error) {
    // The text contains passwords, and an error of the parser would quote it.
    const reason = error instanceof SyntaxError ? 'is not JSON' : `cannot be read: ${(error as Error).message}`;
    throw new ConfigError([`QUARRY_CELLS ${reason}`]);
  }
  const problems: string[] = [];
  const cells = readList(value, config.databaseUrl, problems);
  if (problems.length > 0) throw new ConfigError(problems.map((problem) => `QUARRY_CELLS: ${problem}`));
  return cells;
}

/** The file that QUARRY_CELLS names; undefined if it contains the cells itself. */
export function cellsFile({ cells }: CellsSetting): string | undefined {
  return cells?.startsWith(filePrefix) ? cells.slice(filePrefix.length) : undefined;
}

function readList(value: unknown, directory: DatabaseTarget | undefined, problems: string[]): CellSettings[] {
  const list = isObject(value) ? value.cells : undefined;
  if (!Array.isArray(list) || list.length === 0 || list.length > cellsMax) {
    problems.push(`it must be {"cells": […]} with 1 to ${cellsMax} cells`);
    return [];
  }
  const cells = list.map((each, index) => readCell(each, `cells[${index}]`, directory, problems));
  for (const [name, same] of Map.groupBy(cells, (cell) => cell.name))
    if (same.length > 1 && name !== '') problems.push(`two cells are called ${name}`);
  for (const same of Map.groupBy(cells, ({ target }) => JSON.stringify(target ?? null)).values())
    if (same.length > 1) problems.push(`${same.map(({ name }) => name).join(' and ')} have the same database`);
  return cells;
}

function readCell(
  value: unknown,
  place: string,
  directory: DatabaseTarget | undefined,
  problems: string[],
): CellSettings {
  const given = isObject(value) ? value : {};
  const { name, database_url: url, direct_database_url: direct, accepts_new_apps: accepts = true } = given;
  if (!isObject(value)) problems.push(`${place} must be an object`);
  else if (typeof name !== 'string' || !namePattern.test(name) || name === 'directory')
    problems.push(`${place}.name must be lower-case letters, digits and hyphens, at most 40, and not "directory"`);
  for (const member of Object.keys(given)) if (!members.has(member)) problems.push(`${place}.${member} is not known`);
  for (const [member, text] of Object.entries({ database_url: url, direct_database_url: direct }))
    if (text !== undefined && !(typeof text === 'string' && /^postgres(?:ql)?:\/\//.test(text)))
      problems.push(`${place}.${member} must be a URL of PostgreSQL`);
  if (typeof accepts !== 'boolean') problems.push(`${place}.accepts_new_apps must be true or false`);
  const isDirectory = url === undefined || url === directory;
  if (isDirectory && direct !== undefined)
    problems.push(`${place}.direct_database_url: set DATABASE_DIRECT_URL for the directory's database`);
  return {
    name: typeof name === 'string' ? name : '',
    target: isDirectory ? undefined : (url as string),
    directTarget: isDirectory ? undefined : (direct as string | undefined),
    acceptsNewApps: accepts !== false,
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
