import { isDeepStrictEqual } from 'node:util';
import type { Values } from './kinds.ts';
import { takesEnvironment } from './references.ts';

/** One member that differs. Without `to`, its value is from the environment and is not shown. */
export type Change = { path: string; from?: unknown; to?: unknown; secret?: string };

/** The members in which two values differ, down to the smallest. The order of members does not matter. */
export function compareValues(from: unknown, to: unknown, written: unknown, path = ''): Change[] {
  if (isDeepStrictEqual(from, to)) return [];
  if (isMap(from) && isMap(to)) return compareMembers(from, to, written, path);
  if (isListOfThings(from) && isListOfThings(to)) {
    // Nodes of a graph are the same if they have the same id.
    const [was, is] = [byId(from), byId(to)];
    if (was && is) return compareMembers(was, is, isListOfThings(written) ? byId(written) : undefined, path);
  }
  const secret = typeof written === 'string' && takesEnvironment(written) ? written : undefined;
  if (secret !== undefined) return [{ path, secret }];
  if (hasEnvironment(written)) return [{ path, secret: 'a value from the environment' }];
  return [{ path, from, to }];
}

function compareMembers(from: Values, to: Values, written: unknown, path: string): Change[] {
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((name) =>
    compareValues(
      from[name],
      to[name],
      isMap(written) ? written[name] : undefined,
      path === '' ? name : `${path}.${name}`,
    ),
  );
}

function byId(list: Values[]): Values | undefined {
  const entries = list.map((one) => [one.id, one] as const);
  const ids = new Set(entries.map(([id]) => id));
  const isNamed = ids.size === list.length && entries.every(([id]) => typeof id === 'string');
  return isNamed ? Object.fromEntries(entries as [string, Values][]) : undefined;
}

function isListOfThings(value: unknown): value is Values[] {
  return Array.isArray(value) && value.every(isMap);
}

function isMap(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasEnvironment(written: unknown): boolean {
  return JSON.stringify(written ?? null).includes('${env:');
}

const charactersMax = 60;

/** A change in a line for people. */
export function describeChange({ path, from, to, secret }: Change): string {
  if (secret !== undefined) return `${path}: set to ${secret}`;
  return `${path}: ${shown(from)} → ${shown(to)}`;
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return 'none';
  const text = JSON.stringify(value);
  return text.length > charactersMax ? `${text.slice(0, charactersMax - 1)}…` : text;
}
