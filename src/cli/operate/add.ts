import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { readConfig } from '../../config/config.ts';
import {
  type AddOnName,
  addOnDirectoryName,
  addOnNames,
  addOns,
  addOnsIn,
  findAddOnDirectory,
  isPartOfProgram,
  programAddOns,
  type RecordedPackage,
  readRecordedPackages,
} from '../../lib/add-ons.ts';
import { systemClock } from '../../lib/clock.ts';
import { createDirectories } from '../../lib/directories.ts';
import { UsageError } from '../errors.ts';
import { fetchPackages, savePackages, takePackages, unpackPackage } from './packages.ts';

export type AddOptions = { from?: string; save?: string; program?: boolean };

/** A staged directory of this age was left by a command that was killed. */
const staleMs = 60 * 60_000;
const stagedPrefix = '.staged-';

/** `quarry add`: lists add-ons, or installs those that are named. */
export async function add(given: string[], options: AddOptions): Promise<number> {
  const { dataDir } = readConfig();
  const names = given.map(asAddOn);
  if (names.length === 0) return list(dataDir);
  if (options.save !== undefined) return await save(names, resolve(options.save));
  const place = options.program ? programAddOns : addOnsIn(dataDir);
  const missing = options.program ? names : names.filter((name) => !isPartOfProgram(name));
  for (const name of names.filter((each) => !missing.includes(each)))
    process.stdout.write(`${name}: part of this installation, so there is nothing to install\n`);
  for (const name of missing) {
    const isInstalled = existsSync(join(place, addOnDirectoryName(name)));
    if (!isInstalled) await installAddOn(name, place, options.from);
    process.stdout.write(`${name}: ${isInstalled ? 'is installed already' : 'installed'}\n`);
  }
  if (missing.length > 0) process.stdout.write('A server that is running uses it after a restart.\n');
  return 0;
}

/** `quarry remove`: deletes add-ons from the data directory, those of other releases too. */
export function remove(given: string[]): number {
  const place = addOnsIn(readConfig().dataDir);
  for (const name of given.map(asAddOn)) {
    const found = directoriesOf(place).filter((directory) => directory.startsWith(`${name}-`));
    for (const directory of found) {
      // Renamed first, so that what is half deleted is never found.
      const trash = join(place, `${stagedPrefix}${randomUUID()}`);
      renameSync(join(place, directory), trash);
      rmSync(trash, { recursive: true, force: true });
    }
    process.stdout.write(`${name}: ${found.length > 0 ? 'removed' : 'was not installed in the data directory'}\n`);
  }
  return 0;
}

export function asAddOn(name: string): AddOnName {
  const found = addOnNames.find((each) => each === name);
  if (found === undefined) throw new UsageError(`There is no add-on "${name}". Add-ons: ${addOnNames.join(', ')}.`);
  return found;
}

function list(dataDir: string): number {
  for (const name of addOnNames)
    process.stdout.write(`${name.padEnd(9)} ${addOns[name].what}: ${stateOf(name, dataDir)}\n`);
  return 0;
}

/** Whether an add-on is installed, for lists and `quarry doctor`. */
export function stateOf(name: AddOnName, dataDir: string): string {
  if (isPartOfProgram(name)) return 'part of this installation';
  if (findAddOnDirectory(name, dataDir) !== undefined) return 'installed';
  const isOld = directoriesOf(addOnsIn(dataDir)).some((directory) => directory.startsWith(`${name}-`));
  return isOld ? `installed for another release; \`quarry add ${name}\` installs this one's` : 'not installed';
}

async function save(names: AddOnName[], file: string): Promise<number> {
  const staged = join(dirname(file), `${stagedPrefix}${randomUUID()}`);
  try {
    await fetchPackages(packagesOf(names), staged);
    savePackages(staged, `${staged}.tar`);
    renameSync(`${staged}.tar`, file);
  } finally {
    for (const path of [staged, `${staged}.tar`]) rmSync(path, { recursive: true, force: true });
  }
  process.stdout.write(`${file}: install with \`quarry add ${names.join(' ')} --from FILE\`\n`);
  return 0;
}

/** Installs into a directory beside the others, then renames it: a failure or a kill leaves nothing that is found. */
export async function installAddOn(name: AddOnName, place: string, from?: string): Promise<void> {
  createDirectories(place);
  for (const directory of readdirSync(place)) if (isStale(join(place, directory))) discard(join(place, directory));
  const staged = join(place, `${stagedPrefix}${randomUUID()}`);
  const tarballs = join(staged, '.packages');
  const packages = readRecordedPackages().addOns[name];
  try {
    if (from === undefined) await fetchPackages(packages, tarballs);
    else takePackages(packages, from, tarballs);
    for (const each of packages) unpackPackage(each, tarballs, join(staged, each.path), addOns[name].keep?.[each.name]);
    discard(tarballs);
    // The files reach the disk before the name under which they are found.
    spawnSync('sync');
    publish(staged, join(place, addOnDirectoryName(name)));
  } finally {
    discard(staged);
  }
}

/** Another command may have installed the same meanwhile. */
function publish(staged: string, directory: string): void {
  try {
    renameSync(staged, directory);
  } catch (error) {
    if (!existsSync(directory)) throw error;
  }
}

function packagesOf(names: AddOnName[]): RecordedPackage[] {
  const recorded = readRecordedPackages().addOns;
  const byId = new Map(names.flatMap((name) => recorded[name]).map((each) => [`${each.name}@${each.version}`, each]));
  return [...byId.values()];
}

function directoriesOf(place: string): string[] {
  return existsSync(place) ? readdirSync(place) : [];
}

function isStale(path: string): boolean {
  return path.includes(`/${stagedPrefix}`) && statSync(path).mtimeMs < systemClock.now().getTime() - staleMs;
}

function discard(path: string): void {
  rmSync(path, { recursive: true, force: true });
}
