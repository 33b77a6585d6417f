import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sequences, tables } from '../../src/db/tables.ts';
import { readTables, type SchemaTable } from '../support/schema-tables.ts';
import { readProjectFile } from '../support/source.ts';

const schema = readProjectFile('migrations/schema.txt');
const example =
  'table a\n  app_id uuid not null\n  n bigint not null generated always as identity\n\nunlogged table b with (fillfactor=50)\n  id uuid\n\nsequence c\n';

/** Tables that the migrations do not create. */
const ownTables = ['schema_migrations', 'server_facts'];
/** Has the column, but says where the app is. */
const directoryOfApps = 'cell_apps';

const withoutApp = (found: SchemaTable[]) =>
  found.filter(({ text }) => !/^ {2}app_id /m.test(text)).map(({ name }) => name);

/** Sequences, and those of identity columns. */
function readSequences(text: string): string[] {
  const identities = readTables(text).flatMap((table) =>
    [...table.text.matchAll(/^ {2}(\w+) .* as identity$/gm)].map(([, column]) => `${table.name}_${column}_seq`),
  );
  return [...[...text.matchAll(/^sequence (\w+)/gm)].map(([, name = '']) => name), ...identities];
}

test('every table and every sequence says what moves and erasures do with it', () => {
  const names = [...readTables(schema).map(({ name }) => name), ...ownTables];
  assert.deepEqual(Object.keys(tables).sort(), names.sort(), 'Say in src/db/tables.ts what the table is.');
  assert.deepEqual(Object.keys(sequences).sort(), readSequences(schema).sort());
});

test('every table without app_id says which databases of an installation have it', () => {
  assert.deepEqual(
    Object.keys(tables).filter((name) => tables[name]?.place !== undefined),
    [...withoutApp(readTables(schema)), ...ownTables, directoryOfApps].sort(),
  );
});

/** Tables with a column that names a file. */
const namingFiles = (found: SchemaTable[]) =>
  found.filter(({ text }) => /^ {2}(?:\w+_)?file_id uuid/m.test(text)).map(({ name }) => name);

test('a file that a removed run made stays if a row of any other table names it', () => {
  const asked = readProjectFile('src/automations/retention/file-store.ts');
  // A grant is a change of its file, which then stays.
  const unasked = namingFiles(readTables(schema)).filter((name) => !asked.includes(name) && name !== 'file_grants');
  assert.deepEqual(unasked, [], 'Ask for the table in isOnlyTheirs.');
  assert.deepEqual(namingFiles(readTables('table a\n  logo_file_id uuid\n\ntable b\n  id uuid\n')), ['a']);
});

test('the rules find tables, logged or not, sequences of identity columns, and a missing app_id', () => {
  assert.deepEqual(
    readTables(example).map(({ name }) => name),
    ['a', 'b'],
  );
  assert.deepEqual(readSequences(example), ['c', 'a_n_seq']);
  assert.deepEqual(withoutApp(readTables(example)), ['b']);
});
