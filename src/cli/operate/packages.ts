import { execFile, spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { RecordedPackage } from '../../lib/add-ons.ts';
import { createDirectories } from '../../lib/directories.ts';
import { UsageError } from '../errors.ts';

/*
 * Packages of the release, as npm publishes them: fetched by npm from the registry that it is configured with, or taken
 * from a file. Each is compared with the SHA-512 that the release records before it is unpacked; no script of one runs.
 */

const run = promisify(execFile);
const fetchTimeoutMs = 15 * 60_000;
const packageBytesMax = 128 * 1024 * 1024;
/** Packages of one call of npm, so that the command line stays short. */
const packagesAtOnce = 100;

type Package = Pick<RecordedPackage, 'name' | 'version' | 'integrity'>;

/** Fetches packages into a directory with npm. Throws UsageError if npm cannot, or if one has another checksum. */
export async function fetchPackages(packages: Package[], directory: string): Promise<void> {
  createDirectories(directory);
  for (let from = 0; from < packages.length; from += packagesAtOnce)
    await packWithNpm(packages.slice(from, from + packagesAtOnce), directory);
  for (const each of packages) verify(each, readFileSync(join(directory, fileNameOf(each))));
}

async function packWithNpm(packages: Package[], directory: string): Promise<void> {
  const names = packages.map(({ name, version }) => `${name}@${version}`);
  await npm(['pack', ...names, '--pack-destination', directory], directory);
}

/**
 * Installs the packages of a lock file into `node_modules` of a directory, for another platform than this one too. npm
 * compares each with its SHA-512 there. Throws UsageError if npm cannot.
 * @param packages members of npm's lock file by path, the needs of the program itself under ''.
 * @param platform npm's names of a system and a processor, as in `linux-x64`.
 */
export async function installLocked(packages: Record<string, object>, platform: string, directory: string) {
  const program = { name: 'quarry', version: '0.0.0', ...packages[''] };
  const lock = { ...program, lockfileVersion: 3, requires: true, packages: { ...packages, '': program } };
  writeFileSync(join(directory, 'package.json'), JSON.stringify(program));
  writeFileSync(join(directory, 'package-lock.json'), JSON.stringify(lock));
  const [system = '', processor = ''] = platform.split('-');
  const target = ['--os', system, '--cpu', processor, '--libc', 'glibc'];
  await npm(['ci', '--no-audit', '--no-fund', '--no-bin-links', ...target], directory);
}

async function npm(args: string[], directory: string): Promise<void> {
  const besideNode = join(dirname(process.execPath), 'npm');
  const options = ['--ignore-scripts', '--prefer-offline', '--loglevel=error'];
  try {
    await run(existsSync(besideNode) ? besideNode : 'npm', [...args, ...options], {
      cwd: directory,
      timeout: fetchTimeoutMs,
      maxBuffer: 16 * 1024 * 1024,
    });
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: string };
    if (code === 'ENOENT')
      throw new UsageError('npm is not installed. Install it, or use --from with a file from another machine.');
    throw new UsageError(`npm could not fetch the packages; nothing was changed.\n${stderr.trim()}`);
  }
}

/** Copies packages out of a file that `savePackages` wrote. Throws UsageError if one is missing or differs. */
export function takePackages(packages: Package[], file: string, directory: string): void {
  if (!existsSync(file)) throw new UsageError(`There is no file ${file}.`);
  createDirectories(directory);
  for (const each of packages) {
    // One name at a time to the standard output: whatever the file contains, tar writes nothing to the disk.
    const { status, stdout, error } = spawnSync('tar', ['-xOf', file, fileNameOf(each)], {
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: packageBytesMax,
    });
    if (error !== undefined) throw new UsageError(`tar could not read ${file}: ${error.message}`);
    if (status !== 0)
      throw new UsageError(`${file} does not contain ${each.name} ${each.version}. Nothing was changed.`);
    verify(each, stdout);
    writeFileSync(join(directory, fileNameOf(each)), stdout);
  }
}

/** Writes fetched packages into one file, for `--from` on a machine without a network. */
export function savePackages(directory: string, file: string): void {
  runTar(['-cf', file, '-C', directory, ...readdirSync(directory).sort()]);
}

/** Unpacks a fetched package into a new directory. */
export function unpackPackage(each: Package, from: string, into: string, keep?: string[]): void {
  createDirectories(into);
  runTar(['-xzf', join(from, fileNameOf(each)), '-C', into, '--strip-components=1', '-o']);
  for (const name of keep === undefined ? [] : readdirSync(into))
    if (!keep?.includes(name)) rmSync(join(into, name), { recursive: true });
  // Some packages contain files that only their author may read.
  spawnSync('chmod', ['-R', 'u+rwX,go+rX', into]);
}

/** Throws UsageError with what tar said if it fails. */
export function runTar(args: string[]): void {
  const { status, stderr, error } = spawnSync('tar', args, { encoding: 'utf8' });
  if (status !== 0) throw new UsageError(`tar failed: ${error?.message ?? stderr.trim()}`);
}

function verify({ name, version, integrity }: Package, bytes: Uint8Array): void {
  const found = `sha512-${hash('sha512', bytes, 'base64')}`;
  if (found !== integrity)
    throw new UsageError(
      `${name} ${version} is not the package of this release: its checksum is ${found}, not ${integrity}. Nothing was changed.`,
    );
}

/** The name that npm gives to the file of a package. */
function fileNameOf({ name, version }: Package): string {
  return `${name.replace(/^@/, '').replace('/', '-')}-${version}.tgz`;
}
