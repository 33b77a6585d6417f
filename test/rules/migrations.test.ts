import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AppliedMigration, type Migration, readMigrations } from '../../src/db/migrate.ts';
import { readProjectFile } from '../support/source.ts';
import { listReleases, loadRelease } from '../support/upgrade/released-database.ts';

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

test('the previous release can use the database after every migration of this one', () => {
  const servesFrom = Math.max(1, ...migrations.map((migration) => migration.servesFrom ?? 1));
  assert.ok(
    servesFrom <= lastReleased,
    `Expand now, contract in the next release: code of schema ${lastReleased} still runs while this release is rolled out.`,
  );
});

test('a migration that takes something away says whose code can use the rest', () => {
  const added = migrations.filter(({ version }) => version > lastReleased);
  assert.deepEqual(
    added.filter(({ name }) => !(name in keptForOlderCode)).flatMap((migration) => findUndeclared(migration)),
    [],
    'Add a line `-- serves-from: NNNN` with the number of the oldest schema whose code does without it.',
  );
});

test('the rules find what takes away from older code', () => {
  const migration = { version: 9, name: 'next', checksum: '' };
  for (const sql of [
    ...['drop table users;', 'alter table users drop column name;', 'alter table users drop name;'],
    ...['alter table users rename column name to title;', 'alter table users alter name type json;'],
    ...['alter table users alter name set not null;', 'drop function app_use;', 'alter table users rename to people;'],
    ...[
      'alter table users alter name drop default;',
      'alter table users add column nickname text not null, add x text;',
    ],
  ]) {
    assert.deepEqual(findUndeclared({ ...migration, sql }), ['next'], sql);
    assert.deepEqual(findUndeclared({ ...migration, sql, servesFrom: 3 }), [], sql);
  }
  assert.deepEqual(findUndeclared({ ...migration, sql: '-- drop table\nalter table users add nickname text;' }), []);
  assert.deepEqual(
    findUndeclared({ ...migration, sql: 'drop index users_name; alter table users drop constraint x;' }),
    [],
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

/** The last migration of the newest release. */
const lastReleased = Math.max(
  ...listReleases().map((version) => loadRelease(version).manifest.migrations.at(-1)?.version ?? 0),
);

/** What older code does not use, or uses in the same way afterwards. */
const keptForOlderCode: Record<string, string> = {
  '0019_learned_bytes.sql': 'not null with a trigger that fills the column',
  '0028_shares.sql': 'a table of counters, which triggers fill, is replaced by one with the same columns and one more',
  '0030_jobs.sql': 'drops only the table that a restore has made',
  '0031_jobs_of_0_1_0.sql': 'the table of jobs of 0.1.0 becomes a view with the same columns',
  '0024_ledger_digests.sql': 'the function was added in 0021, which no release contains without this one',
};

const takesAway =
  /\bdrop default\b|\badd column (?![^,;]*\b(default|generated)\b)[^,;]*\bnot null\b|\bdrop (table|column|function|view|type|trigger)\b|\bdrop (?!index|constraint|not null|default|identity|expression|trigger)\w+|\brename\b|\balter (column )?\w+ (set data )?type\b|\bset not null\b/i;

function findUndeclared({ name, sql, servesFrom }: Migration): string[] {
  const statements = sql.replace(/--.*$/gm, '');
  return takesAway.test(statements) && servesFrom === undefined ? [name] : [];
}

function findChanged(known: Record<string, string>, found: readonly AppliedMigration[]): string[] {
  const actual = new Map(found.map(({ name, checksum }) => [name, checksum]));
  return Object.keys(known).filter((name) => known[name] !== actual.get(name));
}

function findUnrecorded(known: Record<string, string>, found: readonly AppliedMigration[]): string[] {
  return found.filter(({ name }) => !(name in known)).map(({ name }) => name);
}
