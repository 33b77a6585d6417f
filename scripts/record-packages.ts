import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addOnNames, addOns, bundlePlatforms, type RecordedPackage } from '../src/lib/add-ons.ts';
import { defined } from '../src/lib/defined.ts';

/*
 * `npm run packages` records in release-packages.json, from package-lock.json, the packages that Quarry installs itself.
 * The published package contains that file and no lock file.
 */

type Locked = {
  version?: string;
  integrity?: string;
  dev?: boolean;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optional?: boolean;
  peerDependencies?: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
};
export type Lock = { packages: Record<string, Locked> };

const root = join(import.meta.dirname, '..');

/** The content of release-packages.json. */
export function recordPackages(lock: Lock): string {
  const record = {
    addOns: Object.fromEntries(addOnNames.map((name) => [name, listTree(lock, addOns[name].packages)])),
    program: lockOfProgram(lock),
  };
  return `${JSON.stringify(record, null, 2)}\n`;
}

/** The lock file of what the program needs, on every platform, and of Node for those that `quarry bundle` writes for. */
function lockOfProgram({ packages }: Lock): Record<string, Locked> {
  const { dependencies, optionalDependencies } = packages[''] ?? {};
  const nodes = bundlePlatforms.map((platform) => `node-${platform}`);
  const optional = Object.fromEntries(nodes.map((name) => [name, packages[`node_modules/${name}`]?.version ?? '']));
  const isShipped = ([path, { dev }]: [string, Locked]) =>
    path.startsWith('node_modules/') && (!dev || nodes.some((name) => path === `node_modules/${name}`));
  const entries = Object.entries(packages).filter(isShipped);
  return {
    '': { ...defined({ dependencies }), optionalDependencies: { ...optionalDependencies, ...optional } },
    ...Object.fromEntries(entries.map(([path, entry]) => [path, pick(entry)])),
  };
}

/** What npm needs to install a package from a lock file. */
function pick({ version, integrity, dependencies, optionalDependencies, os, cpu, libc, optional, ...entry }: Locked) {
  const { peerDependencies, peerDependenciesMeta } = entry;
  const needs = { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta };
  return defined({ version, integrity, ...needs, os, cpu, libc, optional });
}

/** The packages and everything they need, by path. Throws if one is not in the lock file or has no checksum. */
function listTree({ packages }: Lock, names: string[]): RecordedPackage[] {
  const found = new Map<string, RecordedPackage>();
  for (let waiting = names.map((name) => ({ from: '', name })); waiting.length > 0; ) {
    const next = waiting.pop();
    if (next === undefined) break;
    const path = findPath(packages, next.from, next.name);
    const { version, integrity, dependencies, ...locked } = packages[path] ?? {};
    if (version === undefined || integrity === undefined) throw new Error(`${path} has no version or no checksum.`);
    if (found.has(path)) continue;
    found.set(path, { path, name: next.name, version, integrity });
    const peers = Object.keys(locked.peerDependencies ?? {}).filter(
      (peer) => !locked.peerDependenciesMeta?.[peer]?.optional,
    );
    for (const name of [...Object.keys(dependencies ?? {}), ...peers]) waiting.push({ from: path, name });
  }
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Where Node finds a package that another one requires. */
function findPath(packages: Lock['packages'], from: string, name: string): string {
  for (let place = from; ; place = place.slice(0, Math.max(0, place.lastIndexOf('/node_modules/')))) {
    const path = `${place === '' ? '' : `${place}/`}node_modules/${name}`;
    if (path in packages) return path;
    if (place === '') throw new Error(`${name}, which ${from} needs, is not in package-lock.json.`);
  }
}

if (import.meta.main) {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;
  writeFileSync(join(root, 'release-packages.json'), recordPackages(lock));
}
