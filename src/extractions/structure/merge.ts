import { canonicalJson } from '../../lib/canonical-json.ts';
import { isObject } from './schema-shape.ts';

/**
 * Merges the results of consecutive pieces: arrays are joined without duplicates, and objects are merged member by
 * member. Of other values, the most frequent one is chosen, or the first of equally frequent ones. A null from a
 * piece does not count.
 */
export function mergeResults(results: readonly unknown[]): unknown {
  const values = results.filter((value) => value !== null && value !== undefined);
  const [first] = values;
  if (values.length === 0) return results.includes(null) ? null : undefined;
  if (values.every(Array.isArray)) return unique(values.flat());
  if (values.every(isObject)) {
    const names = new Set(values.flatMap((value) => Object.keys(value)));
    const members = [...names].map((name) => [name, mergeResults(values.map((value) => memberOf(value, name)))]);
    return Object.fromEntries(members);
  }
  return mostFrequent(values) ?? first;
}

function memberOf(value: { readonly [key: string]: unknown }, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function unique(items: readonly unknown[]): unknown[] {
  const seen = new Set<string>();
  return items.filter((item) => {
    const key = canonicalJson(item);
    return !seen.has(key) && seen.add(key);
  });
}

function mostFrequent(values: readonly unknown[]): unknown {
  const counts = new Map<string, { value: unknown; count: number }>();
  for (const value of values) {
    const key = canonicalJson(value);
    const counted = counts.get(key);
    if (counted) counted.count += 1;
    else counts.set(key, { value, count: 1 });
  }
  let best: { value: unknown; count: number } | undefined;
  for (const counted of counts.values()) if (best === undefined || counted.count > best.count) best = counted;
  return best?.value;
}

/** The value without the members at these JSON Pointers that are null because no piece has a value for them. */
export function dropNulls(value: unknown, paths: ReadonlySet<string>, at = ''): unknown {
  if (!isObject(value)) return value;
  const kept = Object.entries(value).flatMap(([name, member]) => {
    const path = `${at}/${pointerStep(name)}`;
    return member === null && paths.has(path) ? [] : [[name, dropNulls(member, paths, path)]];
  });
  return Object.fromEntries(kept);
}

/** Escapes a member's name as a step of a JSON Pointer. */
export function pointerStep(name: string | number): string {
  return String(name).replaceAll('~', '~0').replaceAll('/', '~1');
}
