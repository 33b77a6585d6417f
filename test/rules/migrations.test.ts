import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readMigrations } from '../../src/db/migrate.ts';
import { readProjectFile } from '../support/source.ts';

const migrations = await readMigrations();
const recorded: Record<string, string> = JSON.parse(readProjectFile('migrations/checksums.json'));

test('a migration that was recorded is never edited or removed', () => {
  const actual = Object.fromEntries(migrations.map(({ name, checksum }) => [name, checksum]));
  const changed = Object.keys(recorded).filter((name) => recorded[name] !== actual[name]);
  assert.deepEqual(
    changed,
    [],
    'Databases that have applied these would refuse to start. Put the old text back (git checkout), and make your change in a new migration with the next number. Only while no release has it: npm run migrations -- --again NAME.',
  );
});

test('every migration is recorded', () => {
  const missing = migrations.map(({ name }) => name).filter((name) => !(name in recorded));
  assert.deepEqual(missing, [], 'Record them with `npm run migrations`, when their text is final.');
});

test('every table of tenants has app_id first in its key', () => {
  const tables = migrations.flatMap(({ name, sql }) =>
    [...sql.matchAll(/create (?:unlogged )?table (?:if not exists )?(\w+) \(([\s\S]*?)\n\)/g)].map(
      ([, table = '', columns = '']) => ({ table: `${name}: ${table}`, columns }),
    ),
  );
  assert.ok(tables.length > 0);
  const wrong = tables.filter(
    ({ columns }) => /^\s*app_id\b/m.test(columns) && !/primary key \(app_id\b|app_id uuid primary key/.test(columns),
  );
  assert.deepEqual(
    wrong.map(({ table }) => table),
    [],
    'Begin the primary key with app_id, so that the database can be split by app and no query forgets its tenant.',
  );
});
