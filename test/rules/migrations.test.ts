import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AppliedMigration, readMigrations } from '../../src/db/migrate.ts';
import { readProjectFile } from '../support/source.ts';

const migrations = await readMigrations();
const recorded: Record<string, string> = JSON.parse(readProjectFile('migrations/checksums.json'));

test('a migration that was recorded is never edited or removed', () => {
  assert.deepEqual(
    findChanged(recorded, migrations),
    [],
    'Databases that have applied these would refuse to start. Put the old text back (git checkout), and make your change in a new migration with the next number. Only while no release has it: npm run migrations -- --again NAME.',
  );
});

test('the release that the recorded migrations belong to is the version of package.json', () => {
  const { version, released } = JSON.parse(readProjectFile('migrations/release.json'));
  const project = JSON.parse(readProjectFile('package.json'));
  assert.equal(typeof released, 'boolean');
  // The first release; later versions add migrations to it.
  assert.ok(released || version === project.version, 'Set `released` in migrations/release.json with the release.');
});

test('every migration is recorded', () => {
  assert.deepEqual(
    findUnrecorded(recorded, migrations),
    [],
    'Record them with `npm run migrations`, when their text is final.',
  );
});

test('the rules find an edited, a removed and an unrecorded migration', () => {
  const found = [
    { version: 1, name: 'kept', checksum: 'a' },
    { version: 2, name: 'edited', checksum: 'b' },
    { version: 3, name: 'added', checksum: 'c' },
  ];
  const known = { kept: 'a', edited: 'x', removed: 'y' };
  assert.deepEqual(findChanged(known, found), ['edited', 'removed']);
  assert.deepEqual(findUnrecorded(known, found), ['added']);
});

function findChanged(known: Record<string, string>, found: readonly AppliedMigration[]): string[] {
  const actual = new Map(found.map(({ name, checksum }) => [name, checksum]));
  return Object.keys(known).filter((name) => known[name] !== actual.get(name));
}

function findUnrecorded(known: Record<string, string>, found: readonly AppliedMigration[]): string[] {
  return found.filter(({ name }) => !(name in known)).map(({ name }) => name);
}
